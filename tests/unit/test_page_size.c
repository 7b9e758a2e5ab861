// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Pages of 16 and 64 KiB, which some systems have: the question for their size and the request for pages
// arrive here (-Wl,--wrap). Requests must begin at such a page and hold all bytes asked for.
#include "core/os/file_map.h"
#include "tests/unit/model_files.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

long __real_sysconf(int name);
long __wrap_sysconf(int name);
int __wrap_madvise(void *at, size_t n, int advice);

static long page;      // of the system that is played
static uint8_t *first; // requested last
static size_t n_bytes; // of them
static int n_requests;

long __wrap_sysconf(int name)
{
    return name == _SC_PAGESIZE ? page : __real_sysconf(name);
}

int __wrap_madvise(void *at, size_t n, int advice)
{
    (void)advice;
    first = at;
    n_bytes = n;
    n_requests++;
    return 0;
}

enum { FILE_BYTES = 300001 };

static void fetch(const tn_file_map *map, size_t at, size_t n)
{
    n_requests = 0;
    TEST_CHECK_STATUS(tn_file_map_fetch(ctx, map, at, n), TN_OK);
    TEST_CHECK(n_requests == 1);
    if (n_requests != 1) return;
    size_t start = (size_t)(first - map->data);
    TEST_CHECK(first >= map->data && start % (size_t)page == 0);
    TEST_CHECK(start <= at && at - start < (size_t)page && start + n_bytes == at + n);
}

static void test_fetch(const char *path)
{
    static const size_t places[] = {0, 1, 4095, 4096, 4097, 16383, 16384, 65535, 65536, 131072, 262145};
    tn_file_map map;
    must(tn_file_map_open(ctx, path, &map));
    for (size_t i = 0; i < TN_COUNT(places); i++) {
        fetch(&map, places[i], 1);
        fetch(&map, places[i], FILE_BYTES - places[i]);
    }
    tn_file_map_close(ctx, &map);
}

int main(void)
{
    if (!mkdtemp(folder)) return 1;
    ctx = counting_context(&count);
    tn_file_writer *w = NULL;
    uint8_t *bytes = calloc(FILE_BYTES, 1);
    if (!bytes) return 1;
    must(tn_file_writer_open(ctx, path_of("pages"), &w));
    must(tn_file_writer_write(w, bytes, FILE_BYTES));
    must(tn_file_writer_commit(&w));
    free(bytes);
    static const long sizes[] = {4096, 16384, 65536};
    for (size_t i = 0; i < TN_COUNT(sizes); i++) {
        page = sizes[i];
        test_fetch(path_of("pages"));
    }
    unlink(path_of("pages"));
    TEST_CHECK(rmdir(folder) == 0);
    tn_context_destroy(&ctx);
    return test_done();
}
