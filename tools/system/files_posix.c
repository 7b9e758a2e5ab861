// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/system/system.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct sys_folder {
    DIR *dir;
};

static bool take_status(int failed, const struct stat *st, sys_status *out)
{
    if (failed) return false;
    *out = (sys_status){.size = (uint64_t)st->st_size, .is_link = S_ISLNK(st->st_mode)};
    out->kind = S_ISREG(st->st_mode)                             ? SYS_FILE
                : S_ISDIR(st->st_mode)                           ? SYS_FOLDER
                : S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode) ? SYS_PIPE
                                                                 : SYS_DEVICE;
    return true;
}

bool sys_file_status(const char *path, sys_status *out)
{
    struct stat st;
    return take_status(stat(path, &st), &st, out);
}

bool sys_link_status(const char *path, sys_status *out)
{
    struct stat st;
    return take_status(lstat(path, &st), &st, out);
}

bool sys_stream_status(FILE *f, sys_status *out)
{
    struct stat st;
    return take_status(fstat(fileno(f), &st), &st, out);
}

bool sys_is_readable(const char *path)
{
    return access(path, R_OK) == 0;
}

FILE *sys_open(const char *path, const char *mode)
{
    return fopen(path, mode);
}

FILE *sys_open_new(const char *start, char **path)
{
    size_t n = strlen(start) + 8;
    char *name = malloc(n);
    if (!name) return NULL;
    snprintf(name, n, "%sXXXXXX", start);
    int fd = mkstemp(name);
    mode_t mask = umask(0);
    umask(mask);
    if (fd >= 0 && fchmod(fd, 0666 & ~mask) != 0) mask = 0; // the file stays private, which is no failure
    FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (f) {
        *path = name;
        return f;
    }
    int error = errno;
    if (fd >= 0) {
        close(fd);
        unlink(name);
    }
    free(name);
    errno = error;
    return NULL;
}

bool sys_sync(FILE *f)
{
    return fsync(fileno(f)) == 0;
}

bool sys_rename(const char *from, const char *to)
{
    return rename(from, to) == 0;
}

bool sys_remove(const char *path)
{
    return unlink(path) == 0;
}

bool sys_truncate(const char *path, uint64_t size)
{
    return truncate(path, (off_t)size) == 0;
}

char *sys_real_path(const char *path)
{
    return realpath(path, NULL);
}

// --- folders -----------------------------------------------------------------------------------------------

bool sys_make_folder(const char *path, bool shared)
{
    return mkdir(path, shared ? 0777 : 0700) == 0 || errno == EEXIST;
}

bool sys_remove_folder(const char *path)
{
    return rmdir(path) == 0;
}

bool sys_free_space(const char *folder, uint64_t *bytes)
{
    struct statvfs fs;
    if (statvfs(folder, &fs) != 0) return false;
    *bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    return true;
}

sys_folder *sys_folder_open(const char *path)
{
    sys_folder *f = malloc(sizeof *f);
    if (f) f->dir = opendir(path);
    if (f && f->dir) return f;
    free(f);
    return NULL;
}

const char *sys_folder_next(sys_folder *f)
{
    const struct dirent *e = readdir(f->dir);
    return e ? e->d_name : NULL;
}

void sys_folder_close(sys_folder *f)
{
    closedir(f->dir);
    free(f);
}

// --- paths -------------------------------------------------------------------------------------------------

bool sys_is_absolute(const char *path)
{
    return path[0] == '/';
}

bool sys_looks_like_path(const char *text)
{
    return text[0] == '/' || text[0] == '.' || text[0] == '~';
}

char sys_list_separator(void)
{
    return ':';
}

const char *sys_home(void)
{
    const char *home = getenv("HOME");
    return home && sys_is_absolute(home) ? home : NULL;
}

// XDG Base Directory Specification.
bool sys_place_get(sys_place place, char *path, size_t size)
{
    static const struct {
        const char *variable, *below_home;
    } places[] = {[SYS_CONFIG] = {"XDG_CONFIG_HOME", "/.config"},
                  [SYS_CACHE] = {"XDG_CACHE_HOME", "/.cache"},
                  [SYS_DATA] = {"XDG_DATA_HOME", "/.local/share"}};
    const char *base = getenv(places[place].variable), *below = "";
    if (!base || !sys_is_absolute(base)) {
        base = sys_home();
        below = places[place].below_home;
    }
    int n = base ? snprintf(path, size, "%s%s", base, below) : -1;
    return n > 0 && (size_t)n < size;
}
