// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// File mappings and positioned reads; temporary file, FlushFileBuffers and a rename that replaces for
// writing. Files are opened so that others may rename or remove them meanwhile.
#include "core/os/file_map.h"
#include "core/os/file_os.h"
#include "core/os/windows_text.h"

#include <stdio.h>
#include <string.h>
#include <windows.h>

enum {
    READ_MOST = 1 << 30, // bytes of one call, whose length has 32 bits
    RENAME_TRIES = 20,   // while a virus scanner has the file open, RENAME_WAIT_MS apart
    RENAME_WAIT_MS = 10,
};

static HANDLE handle_of(tn_os_file file)
{
    return (HANDLE)file;
}

// A file whose status is read only: of folders too.
static HANDLE open_status(const char *path)
{
    wchar_t *wide = tn_windows_path(NULL, path);
    if (!wide) return INVALID_HANDLE_VALUE;
    HANDLE h = CreateFileW(wide, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                           OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    tn_system_free(wide);
    return h;
}

bool tn_file_exists(const char *path)
{
    HANDLE h = open_status(path);
    if (h != INVALID_HANDLE_VALUE) CloseHandle(h);
    return h != INVALID_HANDLE_VALUE;
}

// A file is its volume and its number there, whatever it is called.
bool tn_same_file(const char *a, const char *b)
{
    BY_HANDLE_FILE_INFORMATION ia, ib;
    HANDLE ha = open_status(a), hb = open_status(b);
    bool same = ha != INVALID_HANDLE_VALUE && hb != INVALID_HANDLE_VALUE &&
                GetFileInformationByHandle(ha, &ia) && GetFileInformationByHandle(hb, &ib) &&
                ia.dwVolumeSerialNumber == ib.dwVolumeSerialNumber &&
                ia.nFileIndexHigh == ib.nFileIndexHigh && ia.nFileIndexLow == ib.nFileIndexLow;
    if (ha != INVALID_HANDLE_VALUE) CloseHandle(ha);
    if (hb != INVALID_HANDLE_VALUE) CloseHandle(hb);
    return same;
}

// Folders, and devices such as con or nul, whatever their ending.
static bool is_regular(HANDLE h)
{
    BY_HANDLE_FILE_INFORMATION info;
    return GetFileType(h) == FILE_TYPE_DISK && GetFileInformationByHandle(h, &info) &&
           !(info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY);
}

static HANDLE open_for_reading(tn_context *ctx, const char *name, tn_status *status)
{
    wchar_t *wide = tn_windows_path(ctx, name);
    if (!wide) {
        *status = TN_ERR_IO;
        return INVALID_HANDLE_VALUE;
    }
    // The flag is needed to open folders, which is_regular then refuses with a better message.
    HANDLE h = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                           OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    DWORD error = GetLastError();
    tn_system_free(wide);
    if (h == INVALID_HANDLE_VALUE) *status = tn_windows_fail(ctx, error, name, "cannot open");
    return h;
}

static HANDLE open_again(tn_context *ctx, const char *name, int32_t descriptor, tn_status *status)
{
    HANDLE h, self = GetCurrentProcess();
    if (DuplicateHandle(self, (HANDLE)(intptr_t)descriptor, self, &h, 0, FALSE, DUPLICATE_SAME_ACCESS))
        return h;
    *status = tn_windows_fail(ctx, GetLastError(), name, "cannot open");
    return INVALID_HANDLE_VALUE;
}

tn_status tn_os_file_open(tn_context *ctx, const char *name, int32_t descriptor, tn_os_file *out,
                          size_t *size)
{
    tn_status status = TN_OK;
    HANDLE h =
        descriptor < 0 ? open_for_reading(ctx, name, &status) : open_again(ctx, name, descriptor, &status);
    if (h == INVALID_HANDLE_VALUE) return status;
    tn_os_file file = (tn_os_file)h;
    if (!is_regular(h)) status = tn_fail(ctx, TN_ERR_IO, "%s: not a regular file", name);
    if (status == TN_OK) status = tn_os_file_size(ctx, name, file, size);
    if (status == TN_OK && *size == 0) status = tn_fail(ctx, TN_ERR_FORMAT, "%s: the file is empty", name);
    if (status == TN_OK)
        *out = file;
    else
        tn_os_file_close(file);
    return status;
}

void tn_os_file_close(tn_os_file file)
{
    if (file != TN_OS_FILE_NONE) CloseHandle(handle_of(file));
}

tn_status tn_os_file_size(tn_context *ctx, const char *name, tn_os_file file, size_t *size)
{
    LARGE_INTEGER n;
    if (!GetFileSizeEx(handle_of(file), &n)) return tn_windows_fail(ctx, GetLastError(), name, "cannot read");
    *size = (size_t)n.QuadPart;
    return TN_OK;
}

tn_status tn_os_file_read(tn_context *ctx, const char *name, tn_os_file file, size_t at, void *to, size_t n,
                          size_t *got)
{
    OVERLAPPED where = {.Offset = (DWORD)at, .OffsetHigh = (DWORD)((uint64_t)at >> 32)};
    DWORD k = 0;
    bool done = ReadFile(handle_of(file), to, (DWORD)TN_MIN(n, (size_t)READ_MOST), &k, &where);
    if (!done && GetLastError() != ERROR_HANDLE_EOF)
        return tn_windows_fail(ctx, GetLastError(), name, "cannot read");
    *got = done ? k : 0;
    return TN_OK;
}

// The system reads ahead of files that are read in order by itself, and has no call to ask for more.
void tn_os_file_ahead(tn_os_file file, size_t at, size_t n)
{
    TN_UNUSED(file);
    TN_UNUSED(at);
    TN_UNUSED(n);
}

tn_status tn_os_file_map(tn_context *ctx, const char *name, tn_os_file file, size_t size, void **out)
{
    TN_UNUSED(size); // the whole file is mapped
    HANDLE mapping = CreateFileMappingW(handle_of(file), NULL, PAGE_READONLY, 0, 0, NULL);
    void *p = mapping ? MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0) : NULL;
    DWORD error = GetLastError();
    if (mapping) CloseHandle(mapping); // the view keeps it
    if (!p) return tn_windows_fail(ctx, error, name, "cannot map");
    *out = p;
    return TN_OK;
}

void tn_os_file_unmap(void *base, size_t size)
{
    TN_UNUSED(size);
    UnmapViewOfFile(base);
}

// PrefetchVirtualMemory does not say whether a page could be read, so the caller reads through the file.
bool tn_os_file_populate(const uint8_t *base, size_t at, size_t n)
{
    WIN32_MEMORY_RANGE_ENTRY range = {(void *)(uintptr_t)(base + at), n};
    (void)PrefetchVirtualMemory(GetCurrentProcess(), 1, &range, 0);
    return false;
}

// --- writing ---------------------------------------------------------------------------------------

static bool exists_and_is_special(const wchar_t *path)
{
    HANDLE h = CreateFileW(path, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                           OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (h == INVALID_HANDLE_VALUE) return false;
    bool special = !is_regular(h);
    CloseHandle(h);
    return special;
}

// A link is replaced by the file: links need a right of the user here, and are rare.
tn_status tn_os_file_create(tn_context *ctx, const char *path, char **target, char **temp, tn_os_file *out)
{
    size_t n = strlen(path) + 32;
    char *name = tn_alloc(ctx, n), *copy = name ? tn_strdup(ctx, path) : NULL;
    wchar_t *wide_path = copy ? tn_windows_path(ctx, path) : NULL, *wide = NULL;
    HANDLE h = INVALID_HANDLE_VALUE;
    tn_status status = copy ? TN_ERR_IO : TN_ERR_MEMORY;
    if (wide_path && exists_and_is_special(wide_path)) {
        status = tn_fail(ctx, TN_ERR_IO, "%s: exists and is not a regular file", path);
    } else if (wide_path) {
        snprintf(name, n, "%s.tmp-%lu", path, (unsigned long)GetCurrentProcessId());
        wide = tn_windows_path(ctx, name);
    }
    if (wide) {
        // DELETE: the rename is one of the handle.
        h = CreateFileW(wide, GENERIC_WRITE | DELETE, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL,
                        CREATE_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
        status =
            h != INVALID_HANDLE_VALUE ? TN_OK : tn_windows_fail(ctx, GetLastError(), name, "cannot create");
    }
    tn_system_free(wide);
    tn_system_free(wide_path);
    if (status != TN_OK) {
        tn_free(ctx, copy);
        tn_free(ctx, name);
        return status;
    }
    *target = copy;
    *temp = name;
    *out = (tn_os_file)h;
    return TN_OK;
}

tn_status tn_os_file_write(tn_context *ctx, const char *path, tn_os_file file, const void *bytes, size_t n)
{
    for (const char *p = bytes; n > 0;) {
        DWORD k = 0;
        if (!WriteFile(handle_of(file), p, (DWORD)TN_MIN(n, (size_t)READ_MOST), &k, NULL))
            return tn_windows_fail(ctx, GetLastError(), path, "cannot write");
        p += k;
        n -= k;
    }
    return TN_OK;
}

// FILE_RENAME_INFORMATION_EX, which headers of mingw-w64 10 lack: replaces the target even while others have
// it open, from Windows 10 1607 on, on NTFS.
typedef struct rename_info {
    DWORD flags; // 1: replace, 2: as POSIX does
    HANDLE root;
    DWORD length; // of the name, in bytes
    wchar_t name[1];
} rename_info;

static bool rename_by_handle(tn_context *ctx, HANDLE h, const wchar_t *target)
{
    enum { FILE_RENAME_INFO_EX = 22 };
    size_t n = wcslen(target) * sizeof *target, size = offsetof(rename_info, name) + n + sizeof *target;
    rename_info *info = tn_calloc(ctx, 1, TN_MAX(size, sizeof *info));
    if (!info) return false;
    info->flags = 3;
    info->length = (DWORD)n;
    memcpy(info->name, target, n + sizeof *target);
    bool done =
        SetFileInformationByHandle(h, (FILE_INFO_BY_HANDLE_CLASS)FILE_RENAME_INFO_EX, info, (DWORD)size);
    tn_free(ctx, info);
    return done;
}

// On file systems without the above. A target that somebody has open cannot be replaced then.
static DWORD rename_by_name(const wchar_t *temp, const wchar_t *target)
{
    for (int i = 0;; i++) {
        if (MoveFileExW(temp, target, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH)) return 0;
        DWORD error = GetLastError();
        bool held = error == ERROR_ACCESS_DENIED || error == ERROR_SHARING_VIOLATION;
        if (!held || i == RENAME_TRIES) return error;
        Sleep(RENAME_WAIT_MS);
    }
}

tn_status tn_os_file_replace(tn_context *ctx, tn_os_file file, const char *temp, const char *target)
{
    HANDLE h = handle_of(file);
    wchar_t *from = tn_windows_path(ctx, temp), *to = from ? tn_windows_path(ctx, target) : NULL;
    tn_status status = to ? TN_OK : TN_ERR_MEMORY;
    bool renamed = false;
    if (status == TN_OK && !FlushFileBuffers(h))
        status = tn_windows_fail(ctx, GetLastError(), target, "cannot write");
    if (status == TN_OK) renamed = rename_by_handle(ctx, h, to);
    CloseHandle(h);
    if (status == TN_OK && !renamed) {
        DWORD error = rename_by_name(from, to);
        if (error) status = tn_windows_fail(ctx, error, target, "cannot rename to");
    }
    tn_system_free(to);
    tn_system_free(from);
    return status;
}

void tn_os_file_remove(const char *path)
{
    wchar_t *wide = tn_windows_path(NULL, path);
    if (!wide) return;
    DeleteFileW(wide);
    tn_system_free(wide);
}
