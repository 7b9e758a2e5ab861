// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/system/system.h"
#include "tools/system/wide_win32.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <windows.h>

enum { NEW_TRIES = 100, RENAME_TRIES = 20, RENAME_WAIT_MS = 10, NAME_BYTES = 1024 };

struct sys_folder {
    _WDIR *dir;
    char name[NAME_BYTES];
};

// What functions of the C runtime do with the error of a call of the system.
static bool failed(DWORD error)
{
    errno = error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND || error == ERROR_INVALID_NAME
                ? ENOENT
            : error == ERROR_ACCESS_DENIED || error == ERROR_SHARING_VIOLATION ? EACCES
            : error == ERROR_DISK_FULL                                         ? ENOSPC
                                                                               : EIO;
    return false;
}

// --- status ------------------------------------------------------------------------------------------------

static bool handle_status(HANDLE h, sys_status *out)
{
    BY_HANDLE_FILE_INFORMATION info;
    DWORD type = GetFileType(h);
    *out = (sys_status){.kind = type == FILE_TYPE_PIPE ? SYS_PIPE : SYS_DEVICE};
    if (type != FILE_TYPE_DISK) return true;
    if (!GetFileInformationByHandle(h, &info)) return failed(GetLastError());
    out->kind = info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY ? SYS_FOLDER : SYS_FILE;
    out->is_link = (info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0;
    out->size = (uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow;
    return true;
}

// For its status only; of folders too. flags: whether a link is followed.
static HANDLE open_status(const char *path, DWORD flags)
{
    wchar_t *wide = wide_of(path);
    if (!wide) return INVALID_HANDLE_VALUE;
    HANDLE h = CreateFileW(wide, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                           OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS | flags, NULL);
    free(wide);
    if (h == INVALID_HANDLE_VALUE) failed(GetLastError());
    return h;
}

static bool path_status(const char *path, DWORD flags, sys_status *out)
{
    HANDLE h = open_status(path, flags);
    if (h == INVALID_HANDLE_VALUE) return false;
    bool done = handle_status(h, out);
    CloseHandle(h);
    return done;
}

bool sys_file_status(const char *path, sys_status *out)
{
    return path_status(path, 0, out);
}

bool sys_link_status(const char *path, sys_status *out)
{
    bool done = path_status(path, FILE_FLAG_OPEN_REPARSE_POINT, out);
    if (done && out->is_link) out->kind = SYS_DEVICE; // neither file nor folder
    return done;
}

bool sys_stream_status(FILE *f, sys_status *out)
{
    HANDLE h = (HANDLE)_get_osfhandle(_fileno(f));
    if (h != INVALID_HANDLE_VALUE && (intptr_t)h != -2) return handle_status(h, out);
    errno = EBADF;
    return false;
}

bool sys_is_readable(const char *path)
{
    wchar_t *wide = wide_of(path);
    bool readable = wide && _waccess(wide, 4) == 0;
    free(wide);
    return readable;
}

// --- files -------------------------------------------------------------------------------------------------

FILE *sys_open(const char *path, const char *mode)
{
    wchar_t *wide = wide_of(path), *wide_mode = wide ? wide_of(mode) : NULL;
    FILE *f = wide_mode ? _wfopen(wide, wide_mode) : NULL;
    free(wide_mode);
    free(wide);
    return f;
}

FILE *sys_open_new(const char *start, char **path)
{
    size_t n = strlen(start) + 32;
    char *name = malloc(n);
    FILE *f = NULL;
    for (int i = 0; name && !f && i < NEW_TRIES; i++) {
        snprintf(name, n, "%s%lu-%d", start, GetCurrentProcessId(), i);
        wchar_t *wide = wide_of(name);
        int fd = wide ? _wopen(wide, _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY, _S_IREAD | _S_IWRITE) : -1;
        free(wide);
        if (fd >= 0) f = _fdopen(fd, "wb");
        if (fd < 0 && errno != EEXIST) break;
    }
    if (f)
        *path = name;
    else
        free(name);
    return f;
}

bool sys_sync(FILE *f)
{
    return _commit(_fileno(f)) == 0;
}

// A virus scanner may have the file open for a moment.
bool sys_rename(const char *from, const char *to)
{
    wchar_t *a = wide_of(from), *b = a ? wide_of(to) : NULL;
    bool done = false;
    for (int i = 0; b && !done && i <= RENAME_TRIES; i++) {
        done = MoveFileExW(a, b, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH);
        if (done || failed(GetLastError()) || errno != EACCES) break;
        Sleep(RENAME_WAIT_MS);
    }
    free(b);
    free(a);
    return done;
}

bool sys_remove(const char *path)
{
    wchar_t *wide = wide_of(path);
    bool done = wide && _wunlink(wide) == 0;
    free(wide);
    return done;
}

bool sys_truncate(const char *path, uint64_t size)
{
    wchar_t *wide = wide_of(path);
    int fd = wide ? _wopen(wide, _O_RDWR | _O_BINARY) : -1;
    free(wide);
    if (fd < 0) return false;
    int error = _chsize_s(fd, (int64_t)size);
    _close(fd);
    if (error) errno = error;
    return error == 0;
}

char *sys_real_path(const char *path)
{
    wchar_t *wide = wide_of(path), *full = NULL;
    if (wide && _waccess(wide, 0) == 0) full = _wfullpath(NULL, wide, 0);
    char *real = full ? utf8_path_of(full) : NULL;
    free(full);
    free(wide);
    return real;
}

// --- folders -----------------------------------------------------------------------------------------------

// Folders below the user's are for the user only here.
bool sys_make_folder(const char *path, bool shared)
{
    (void)shared;
    wchar_t *wide = wide_of(path);
    bool done = wide && (_wmkdir(wide) == 0 || errno == EEXIST);
    free(wide);
    return done;
}

bool sys_remove_folder(const char *path)
{
    wchar_t *wide = wide_of(path);
    bool done = wide && _wrmdir(wide) == 0;
    free(wide);
    return done;
}

bool sys_free_space(const char *folder, uint64_t *bytes)
{
    ULARGE_INTEGER available;
    wchar_t *wide = wide_of(folder);
    bool done = wide && GetDiskFreeSpaceExW(wide, &available, NULL, NULL);
    free(wide);
    if (!done) return failed(GetLastError());
    *bytes = available.QuadPart;
    return true;
}

sys_folder *sys_folder_open(const char *path)
{
    wchar_t *wide = wide_of(path);
    sys_folder *f = wide ? calloc(1, sizeof *f) : NULL;
    if (f) f->dir = _wopendir(wide);
    free(wide);
    if (f && f->dir) return f;
    free(f);
    return NULL;
}

const char *sys_folder_next(sys_folder *f)
{
    for (struct _wdirent *e; (e = _wreaddir(f->dir)) != NULL;)
        if (utf8_into(e->d_name, f->name, sizeof f->name) > 0) return f->name;
    return NULL;
}

void sys_folder_close(sys_folder *f)
{
    _wclosedir(f->dir);
    free(f);
}

// --- paths -------------------------------------------------------------------------------------------------

static bool has_drive(const char *path)
{
    return ((path[0] >= 'a' && path[0] <= 'z') || (path[0] >= 'A' && path[0] <= 'Z')) && path[1] == ':';
}

bool sys_is_absolute(const char *path)
{
    return path[0] == '/' || path[0] == '\\' || has_drive(path);
}

bool sys_looks_like_path(const char *text)
{
    return sys_is_absolute(text) || text[0] == '.' || text[0] == '~' || strchr(text, '\\');
}

char sys_list_separator(void)
{
    return ';';
}

const char *sys_home(void)
{
    const char *home = sys_env("USERPROFILE");
    return home && sys_is_absolute(home) ? home : NULL;
}

// APPDATA goes with the user to other machines, LOCALAPPDATA stays.
bool sys_place_get(sys_place place, char *path, size_t size)
{
    const char *base = sys_env(place == SYS_CONFIG ? "APPDATA" : "LOCALAPPDATA");
    int n = base && sys_is_absolute(base) ? snprintf(path, size, "%s", base) : -1;
    return n > 0 && (size_t)n < size;
}
