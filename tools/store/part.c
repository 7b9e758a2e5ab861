// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/store/part.h"

#include "tools/common.h"
#include "tools/json/json.h"
#include "tools/json/json_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INFO_MAX = 16384, LOCK_TRIES = 100 };

// --- opening -----------------------------------------------------------------------------------------------

static int make_folders(const char *folder)
{
    char path[PART_PATH];
    snprintf(path, sizeof path, "%s", folder);
    for (char *p = path + 1;; p++) {
        char c = *p;
        if (c && c != '/') continue;
        *p = 0;
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return fail(EXIT_FAILED, "cannot make the folder %s: %s", path, strerror(errno));
        *p = c;
        if (!c) return 0;
    }
}

// Whether the open file is still the one that the path names: the program that had the lock may have renamed
// or removed it.
static bool is_current(const part *p)
{
    struct stat open_file, named;
    return fstat(p->fd, &open_file) == 0 && stat(p->path, &named) == 0 && open_file.st_dev == named.st_dev &&
           open_file.st_ino == named.st_ino;
}

int part_open(part *p, const char *folder, const char *name)
{
    int code = make_folders(folder);
    p->fd = -1;
    if (code) return code;
    if (snprintf(p->target, PART_PATH, "%s/%s", folder, name) >= PART_PATH - 16)
        return fail(EXIT_FAILED, "%.200s...: the path is too long", folder);
    snprintf(p->path, PART_PATH, "%.*s.part", PART_PATH - 16, p->target);
    snprintf(p->info, PART_PATH, "%.*s.json", PART_PATH - 8, p->path);
    for (int i = 0; i < LOCK_TRIES; i++) {
        p->fd = open(p->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (p->fd < 0) return fail(EXIT_FAILED, "cannot open %s: %s", p->path, strerror(errno));
        if (part_lock(p->fd) && is_current(p)) return 0;
        int error = errno;
        bool current = is_current(p);
        close(p->fd);
        p->fd = -1;
        if (current && error == EWOULDBLOCK)
            return fail(EXIT_FAILED, "another program is getting this file: %s is locked", p->path);
        if (current) return fail(EXIT_FAILED, "cannot lock %s: %s", p->path, strerror(error));
    }
    return fail(EXIT_FAILED, "cannot lock %s: it is replaced again and again", p->path);
}

bool part_truncate(part *p)
{
    return ftruncate(p->fd, 0) == 0 && lseek(p->fd, 0, SEEK_SET) == 0;
}

// --- what it belongs to ------------------------------------------------------------------------------------

bool part_read_origin(const part *p, part_origin *o)
{
    char text[INFO_MAX], *key;
    *o = (part_origin){0};
    FILE *f = fopen(p->info, "rb");
    size_t n = f ? fread(text, 1, sizeof text, f) : 0;
    if (f) fclose(f);
    json_in in = {.p = text, .end = text + n};
    if (n == 0 || n == sizeof text || !json_open(&in, '{')) return false;
    while (json_key(&in, &key)) {
        struct {
            const char *name;
            char *to;
            size_t size;
        } fields[] = {{"url", o->url, sizeof o->url},
                      {"validator", o->validator, sizeof o->validator},
                      {"sha256", o->sha256, sizeof o->sha256}};
        char *value = json_is(&in, '"') ? json_string(&in) : NULL;
        if (!value) json_skip(&in);
        for (size_t i = 0; value && i < sizeof fields / sizeof *fields; i++)
            if (strcmp(key, fields[i].name) == 0) snprintf(fields[i].to, fields[i].size, "%s", value);
        free(value);
        free(key);
    }
    clean_text(o->validator); // it becomes a line of a request
    return !in.failed;
}

// Complete or not at all: by another name first.
bool part_write_origin(const part *p, const part_origin *o)
{
    char temp[PART_PATH + 8];
    json j;
    snprintf(temp, sizeof temp, "%s.new", p->info);
    FILE *f = fopen(temp, "wb");
    if (!f) return false;
    json_init(&j, f);
    json_object(&j, NULL);
    json_text(&j, "url", o->url);
    json_text(&j, "validator", o->validator);
    json_text(&j, "sha256", o->sha256);
    json_end_object(&j);
    bool good = !ferror(f);
    good = fclose(f) == 0 && good;
    if (good && rename(temp, p->info) == 0) return true;
    int error = errno;
    unlink(temp);
    errno = error;
    return false;
}

// --- the end -----------------------------------------------------------------------------------------------

int part_commit(part *p)
{
    char folder[PART_PATH];
    if (fsync(p->fd) != 0 || rename(p->path, p->target) != 0)
        return fail(EXIT_FAILED, "cannot finish %s: %s", p->target, strerror(errno));
    unlink(p->info);
    snprintf(folder, sizeof folder, "%s", p->target);
    *strrchr(folder, '/') = 0;
    int fd =
        open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC); // the new name, too, should survive a power cut
    if (fd < 0) return 0;
    if (fsync(fd) != 0) note("warning: %s: %s", folder, strerror(errno));
    close(fd);
    return 0;
}

void part_close(part *p, bool drop)
{
    if (p->fd < 0) return;
    if (drop && is_current(p)) {
        unlink(p->info);
        unlink(p->path);
    }
    close(p->fd);
    p->fd = -1;
}
