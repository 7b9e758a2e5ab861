// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One file from the network. Bytes go to FILE.part, which is locked while somebody writes it, and becomes
// FILE by a rename when it is complete, checked, and on the disk. FILE.part.json says what the bytes belong
// to: a later run goes on behind them if that is still what the server has. The program may end at any
// moment.
#include "tools/interrupt.h"
#include "tools/json/json.h"
#include "tools/json/json_read.h"
#include "tools/store/part.h"
#include "tools/store/pull.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RESTARTS_MAX = 3, PIECE = 1 << 20 };

typedef struct transfer {
    pull *p;
    pull_file *f;
    part part;
    part_origin origin; // of the bytes in the part
    uint64_t have;      // bytes in it
    sha256 hash;        // of them
    bool mixed;         // they came in more than one response
    bool restart;       // the response does not fit them: begin anew
    bool done;          // the file is there already
    int code;           // exit code after a message
} transfer;

// --- the bar -----------------------------------------------------------------------------------------------

static void show(const transfer *t, const char *what, uint64_t done)
{
    pull *p = t->p;
    char a[32], b[32], left[48] = "", speed[48] = "", part_text[64] = "";
    uint64_t total = p->total;
    double seconds = (double)(now_ns() - p->start_ns) * 1e-9;
    if (p->downloaded && seconds > 0.5) {
        double rate = (double)p->downloaded / seconds;
        snprintf(speed, sizeof speed, ", %s/s", size_text((uint64_t)rate, a, sizeof a));
        uint64_t missing = total > done ? total - done : 0;
        int s = rate > 1 && (double)missing / rate < 1e8 ? (int)((double)missing / rate) : 0;
        if (s >= 60)
            snprintf(left, sizeof left, ", %d min %d s left", s / 60, s % 60);
        else if (s > 0)
            snprintf(left, sizeof left, ", %d s left", s);
    }
    if (p->n_files > 1) snprintf(part_text, sizeof part_text, "file %zu of %zu, ", p->at + 1, p->n_files);
    progress_show(&p->line, total ? (double)done / (double)total : -1, "%s %s%s of %s%s%s", what, part_text,
                  size_text(done, a, sizeof a), total ? size_text(total, b, sizeof b) : "?", speed, left);
}

// --- failures ----------------------------------------------------------------------------------------------

// What a later run can use.
static const char *kept_text(const transfer *t, char *buf, size_t size)
{
    char bytes[32];
    buf[0] = 0;
    if (t->have)
        snprintf(buf, size, "; %s are kept, the same command goes on from there",
                 size_text(t->have, bytes, sizeof bytes));
    return buf;
}

static int fail_write(const transfer *t, const char *what, const char *path)
{
    int error = errno;
    char kept[160];
    return fail(EXIT_FAILED, "cannot %s %s: %s%s", what, path, strerror(error),
                kept_text(t, kept, sizeof kept));
}

static int stopped(const transfer *t)
{
    char kept[160];
    return fail(EXIT_INTERRUPTED, "%s: interrupted%s", t->f->name, kept_text(t, kept, sizeof kept));
}

// --- bytes -------------------------------------------------------------------------------------------------

static bool begin_anew(transfer *t)
{
    t->have = 0;
    t->mixed = false;
    sha256_init(&t->hash);
    if (part_truncate(&t->part)) return true;
    t->code = fail_write(t, "empty", t->part.path);
    return false;
}

// A page that says "sign in", or an archive, is found at its first bytes.
static bool check_magic(transfer *t, const char *data, size_t n)
{
    static const char magic[] = "GGUF";
    for (size_t i = 0; i < n && t->have + i < 4; i++)
        if (data[i] != magic[t->have + i]) {
            t->code =
                fail(EXIT_MODEL, "%s is no GGUF file; is the address that of the file itself?", t->f->name);
            begin_anew(t);
            return false;
        }
    return true;
}

static bool on_data(void *user, const void *data, size_t n)
{
    transfer *t = user;
    if (t->f->size >= 0 && n > (uint64_t)t->f->size - t->have) {
        t->code = fail(EXIT_FAILED, "%s: the server sends more than the %lld bytes that it announced",
                       t->f->name, (long long)t->f->size);
        begin_anew(t);
        return false;
    }
    if (!check_magic(t, data, n)) return false;
    for (size_t done = 0; done < n;) {
        ssize_t k = write(t->part.fd, (const char *)data + done, n - done);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) {
            t->code = fail_write(t, "write", t->part.path);
            return false;
        }
        sha256_add(&t->hash, (const char *)data + done, (size_t)k);
        t->have += (uint64_t)k;
        t->p->downloaded += (uint64_t)k;
        done += (size_t)k;
    }
    show(t, "getting", t->p->before + t->have);
    return true;
}

// The hash of bytes that are on the disk. `label` is for the bar. 0 or an exit code.
static int hash_bytes(transfer *t, int fd, uint64_t n, sha256 *hash)
{
    char *buf = malloc(PIECE);
    int code = buf ? 0 : fail(EXIT_MEMORY, "out of memory while checking %s", t->f->name);
    sha256_init(hash);
    for (uint64_t done = 0; done < n && !code;) {
        size_t want = n - done < PIECE ? (size_t)(n - done) : PIECE;
        ssize_t k = pread(fd, buf, want, (off_t)done);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0)
            code =
                fail(EXIT_FAILED, "cannot read %s: %s", t->f->name, k ? strerror(errno) : "it is too short");
        else if (interrupted())
            code = stopped(t);
        if (code) break;
        sha256_add(hash, buf, (size_t)k);
        done += (uint64_t)k;
        show(t, "checking", t->p->before + done);
    }
    free(buf);
    return code;
}

// --- the response ------------------------------------------------------------------------------------------

static bool refuse(transfer *t, int code)
{
    t->code = code;
    return false;
}

static bool start_over(transfer *t)
{
    t->restart = true;
    return false;
}

// Size and hash that the response names, against what is known.
static bool learn(transfer *t, const http_head *head, int64_t total)
{
    pull_file *f = t->f;
    if (head->linked_sha256[0] && !f->sha256[0])
        memcpy(f->sha256, head->linked_sha256, sizeof f->sha256);
    else if (head->linked_sha256[0] && strcmp(head->linked_sha256, f->sha256) != 0)
        return refuse(t, fail(EXIT_MODEL,
                              "%s: the server has another file than was asked for (SHA-256 %.12s "
                              "instead of %.12s)",
                              f->name, head->linked_sha256, f->sha256));
    if (total < 0) total = head->linked_size;
    if (f->size < 0) f->size = total;
    if (total >= 0 && (total != f->size || (head->linked_size >= 0 && head->linked_size != total)))
        return refuse(t, fail(EXIT_FAILED, "%s: the server announces %lld bytes, and %lld for the same file",
                              f->name, (long long)f->size,
                              (long long)(total != f->size ? total : head->linked_size)));
    if (f->size < 0 && !f->sha256[0])
        return refuse(t, fail(EXIT_FAILED,
                              "%s: %s gives neither size nor checksum, so a break would pass for "
                              "the end; give --sha256",
                              f->name, head->host));
    return true;
}

// A file of this name is there, and nothing but its size can be compared.
static bool is_same_size(const transfer *t)
{
    struct stat st;
    return !t->f->sha256[0] && t->f->size >= 0 && stat(t->part.target, &st) == 0 && S_ISREG(st.st_mode) &&
           st.st_size == t->f->size;
}

static bool on_head(void *user, const http_head *head)
{
    transfer *t = user;
    if (head->status != 200 && head->status != 206) return true; // judged when it has ended
    bool partial = head->status == 206;
    bool known = t->f->size >= 0;
    if (partial && (!t->have || head->first != (int64_t)t->have)) return start_over(t);
    if (!learn(t, head, partial ? head->total : head->length)) return false;
    if (!known && t->f->size >= 0) {
        t->p->total = (uint64_t)t->f->size;
        t->code = pull_check_space(t->p, (uint64_t)t->f->size - (partial ? t->have : 0));
        if (t->code) return false;
    }
    if (!partial && is_same_size(t)) {
        t->done = true;
        return false;
    }
    if (partial && (strcmp(t->origin.sha256, t->f->sha256) != 0 || // the file behind the address changed
                    (!t->f->sha256[0] && strcmp(t->origin.validator, head->validator) != 0)))
        return start_over(t);
    if (!partial && t->have && !begin_anew(t)) return false;
    t->mixed = partial;
    if (partial) return true;
    snprintf(t->origin.url, sizeof t->origin.url, "%s", t->f->url);
    snprintf(t->origin.validator, sizeof t->origin.validator, "%s", head->validator);
    memcpy(t->origin.sha256, t->f->sha256, sizeof t->origin.sha256);
    if (part_write_origin(&t->part, &t->origin)) return true;
    return refuse(t, fail_write(t, "write", t->part.info));
}

// --- attempts ----------------------------------------------------------------------------------------------

// What an earlier run left, if it is of the file that is wanted now.
static int resume(transfer *t)
{
    const pull_file *f = t->f;
    struct stat st;
    if (fstat(t->part.fd, &st) != 0) return fail_write(t, "read", t->part.path);
    bool fits =
        part_read_origin(&t->part, &t->origin) && (f->size < 0 || (uint64_t)st.st_size <= (uint64_t)f->size);
    if (fits && f->sha256[0])
        fits = strcmp(t->origin.sha256, f->sha256) == 0;
    else if (fits)
        fits = strcmp(t->origin.url, f->url) == 0 && (t->origin.validator[0] || t->origin.sha256[0]);
    if (!fits) {
        t->origin = (part_origin){0};
        return begin_anew(t) ? 0 : t->code;
    }
    t->have = (uint64_t)st.st_size;
    sha256_init(&t->hash);
    t->mixed = t->have > 0;
    t->p->resumed += t->have;
    int code = t->have ? hash_bytes(t, t->part.fd, t->have, &t->hash) : 0;
    if (!code && lseek(t->part.fd, (off_t)t->have, SEEK_SET) < 0) code = fail_write(t, "read", t->part.path);
    return code;
}

static bool is_complete(const transfer *t)
{
    return t->f->size >= 0 && t->have == (uint64_t)t->f->size;
}

// Requests until all bytes are there.
static int fetch(transfer *t)
{
    int tries = 0, restarts = 0;
    while (!is_complete(t)) {
        http_head head;
        uint64_t before = t->have;
        http_request r = {.url = t->f->url,
                          .token = *t->p->token ? t->p->token : NULL,
                          .token_origin = t->p->endpoint_origin,
                          .plain = t->p->plain,
                          .first = t->have,
                          .validator = t->origin.validator,
                          .timeout = opt_int(t->p->opt, OPT_TIMEOUT),
                          .on_head = on_head,
                          .on_data = on_data,
                          .user = t};
        http_result result = http_get(t->p->http, &r, &head, t->p->why);
        if (t->code || t->done) return t->code;
        if (result == HTTP_INTERRUPTED || interrupted()) return stopped(t);
        if (result == HTTP_REFUSED) return pull_fail_result(t->p, result);
        if (t->restart || (result == HTTP_DONE && head.status == 416)) {
            t->restart = false;
            if (restarts++ == RESTARTS_MAX)
                return fail(EXIT_FAILED, "%s: %s answers with other bytes than it is asked for", t->f->name,
                            head.host);
            if (!begin_anew(t)) return t->code;
            continue;
        }
        bool good = result == HTTP_DONE && (head.status == 200 || head.status == 206);
        if (good && (t->f->size < 0 || is_complete(t))) return 0;
        if (result == HTTP_DONE && !good && head.status < 500 && head.status != 408 && head.status != 429)
            return pull_fail_status(t->p, &head, t->f->name);
        if (t->have > before) tries = 0;
        if (pull_wait_again(&head, &tries)) continue;
        if (interrupted()) return stopped(t);
        char kept[160];
        if (result == HTTP_DONE && !good) return pull_fail_status(t->p, &head, t->f->name);
        return fail(EXIT_FAILED, "%s, %d times in a row%s",
                    result == HTTP_DONE ? "the server ends before the file does" : t->p->why, PULL_ATTEMPTS,
                    kept_text(t, kept, sizeof kept));
    }
    return 0;
}

// All bytes, with the right hash. Bytes of several responses that do not fit together are fetched anew once.
static int fetch_checked(transfer *t)
{
    char hex[SHA256_HEX];
    for (int again = 0; again < 2; again++) {
        int code = fetch(t);
        if (code || t->done) return code;
        if (t->have < 4)
            return fail(EXIT_MODEL, "%s is no GGUF file: it has %d bytes", t->f->name, (int)t->have);
        sha256 hash = t->hash;
        sha256_hex(&hash, hex);
        if (!t->f->sha256[0] || strcmp(hex, t->f->sha256) == 0) {
            memcpy(t->f->sha256, hex, sizeof hex);
            return 0;
        }
        bool mixed = t->mixed;
        if (!begin_anew(t)) return t->code;
        if (!mixed) break;
        note("%s: what was kept does not fit what came now; it is fetched anew", t->f->name);
    }
    return fail(EXIT_MODEL,
                "%s: SHA-256 is %.12s..., not %.12s...: the file was damaged or replaced on the "
                "way; nothing of it is kept",
                t->f->name, hex, t->f->sha256);
}

// Whether the file is there already; *same.
static int compare_target(transfer *t, bool *same)
{
    struct stat st;
    char hex[SHA256_HEX];
    sha256 hash;
    *same = false;
    if (!t->f->sha256[0] || stat(t->part.target, &st) != 0 || !S_ISREG(st.st_mode) ||
        (t->f->size >= 0 && st.st_size != t->f->size))
        return 0;
    int fd = open(t->part.target, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    int code = hash_bytes(t, fd, (uint64_t)st.st_size, &hash);
    close(fd);
    sha256_hex(&hash, hex);
    *same = !code && strcmp(hex, t->f->sha256) == 0;
    if (*same) t->f->size = st.st_size;
    return code;
}

int pull_transfer(pull *p, pull_file *f)
{
    transfer t = {.p = p, .f = f, .part = {.fd = -1}};
    bool same = false;
    int code = part_open(&t.part, p->folder, f->name);
    if (!code) code = compare_target(&t, &same);
    t.done = same;
    if (!code && !same) code = resume(&t);
    if (!code && !same) code = fetch_checked(&t);
    if (!code && !t.done) code = part_commit(&t.part);
    if (!code && f->size < 0) f->size = (int64_t)t.have;
    part_close(&t.part, t.have == 0 || t.done);
    return code;
}

uint64_t pull_kept(const pull *p, const pull_file *f)
{
    char path[PULL_PATH + PULL_NAME + 8];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", p->folder, f->name);
    if (stat(path, &st) == 0 && st.st_size == f->size) return (uint64_t)f->size;
    snprintf(path, sizeof path, "%s/%s.part", p->folder, f->name);
    bool usable = stat(path, &st) == 0 && st.st_size <= f->size;
    return usable ? (uint64_t)st.st_size : 0;
}
