// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/output.h"

#include "tools/common.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// The first failure of standard output. It belongs to the process, as stdout does.
static int stdout_errno;

// The stream may have failed earlier, inside a printf: then errno is lost, but a pipe can still be checked.
static bool keep_error(void)
{
    if (stdout_errno) return false;
    int error = errno;
    if (!error) error = sys_output_is_lost() ? EPIPE : EIO;
    stdout_errno = error;
    return false;
}

bool out_flush(void)
{
    if (stdout_errno) return false;
    fflush(stderr); // in the order in which they were written
    errno = 0;
    return (fflush(stdout) == 0 && !ferror(stdout)) || keep_error();
}

bool out_write(const void *data, size_t n)
{
    if (stdout_errno) return false;
    errno = 0;
    if (fwrite(data, 1, n, stdout) != n) return keep_error();
    return out_flush();
}

int out_close(int code)
{
    out_flush();
    errno = 0;
    if (fclose(stdout) != 0) keep_error();
    if (!stdout_errno || stdout_errno == EPIPE) return code;
    int failed = fail(EXIT_FAILED, "cannot write to standard output: %s", strerror(stdout_errno));
    return code ? code : failed;
}

// --- files -----------------------------------------------------------------------------------------------

static int out_fail(out_file *out, const char *what, const char *path)
{
    // A failure inside an earlier printf left its mark on the stream, but not its reason.
    int code =
        fail(EXIT_FAILED, "cannot %s %s: %s", what, path, errno ? strerror(errno) : "is the disk full?");
    out_file_abort(out);
    return code;
}

bool out_is_special(const char *path)
{
    sys_status st;
    return sys_file_status(path, &st) && st.kind != SYS_FILE && st.kind != SYS_FOLDER;
}

int out_file_open(out_file *out, const char *path)
{
    *out = (out_file){0};
    if (strcmp(path, "-") == 0) {
        out->f = stdout;
        return 0;
    }
    sys_status st;
    if (sys_file_status(path, &st) && st.kind == SYS_FOLDER)
        return fail(EXIT_FAILED, "cannot write %s: it is a directory", path);
    char *real = sys_real_path(path); // a link keeps pointing at the file that changes
    const char *target = real ? real : path;
    bool special = out_is_special(target);
    size_t n = strlen(target) + 16;
    out->path = malloc(n);
    char *start = special ? NULL : malloc(n);
    if (out->path) snprintf(out->path, n, "%s", target);
    if (start) snprintf(start, n, "%s.tmp-", target);
    free(real);
    if (!out->path || (!special && !start)) {
        free(start);
        out_file_abort(out);
        return fail(EXIT_MEMORY, "out of memory while opening %s", path);
    }
    errno = 0;
    out->f = special ? sys_open(out->path, "wb") : sys_open_new(start, &out->temp);
    free(start);
    return out->f ? 0 : out_fail(out, special ? "open" : "create", path);
}

bool out_file_floats(out_file *out, const float *values, size_t n)
{
    enum { PIECE = 1024 };
    unsigned char bytes[4 * PIECE];
    for (size_t first = 0, k; first < n; first += k) {
        k = n - first < PIECE ? n - first : PIECE;
        for (size_t i = 0; i < k; i++) {
            uint32_t bits;
            memcpy(&bits, &values[first + i], sizeof bits);
            for (int b = 0; b < 4; b++) bytes[4 * i + (size_t)b] = (unsigned char)(bits >> (8 * b));
        }
        if (!(out->f == stdout ? out_write(bytes, 4 * k) : fwrite(bytes, 4, k, out->f) == k)) return false;
    }
    return true;
}

int out_file_commit(out_file *out)
{
    if (out->f == stdout) {
        out->f = NULL;
        out_flush(); // out_close reports
        return 0;
    }
    errno = 0;
    if (fflush(out->f) != 0 || ferror(out->f)) return out_fail(out, "write", out->path);
    if (out->temp && !sys_sync(out->f)) return out_fail(out, "write", out->path);
    int closed = fclose(out->f);
    out->f = NULL;
    if (closed != 0) return out_fail(out, "write", out->path);
    if (out->temp && !sys_rename(out->temp, out->path)) return out_fail(out, "replace", out->path);
    free(out->temp);
    out->temp = NULL;
    out_file_abort(out);
    return 0;
}

void out_file_abort(out_file *out)
{
    if (out->f && out->f != stdout) fclose(out->f);
    if (out->temp) sys_remove(out->temp);
    free(out->temp);
    free(out->path);
    *out = (out_file){0};
}
