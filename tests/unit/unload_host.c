// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A program whose plugin uses tenon: it loads the plugin, lets it compute, also in a forked child, and
// unloads it again with the library, which must leave nothing behind that still runs. Arguments: the plugin,
// the library, rounds, whose threads compute (0: those of the context, 1: OpenMP's).
#define _GNU_SOURCE
#include "tests/unit/test.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef int (*compute_fn)(int32_t threads_by);

// Ends the program if the plugin says that this build cannot do it.
static bool computes(void *plugin, int32_t threads_by)
{
    compute_fn compute;
    void *symbol = dlsym(plugin, "compute");
    if (!symbol) return false;
    memcpy(&compute, &symbol, sizeof compute);
    int code = compute(threads_by);
    if (code != 77) return code == 0;
    printf("SKIP: this build has no OpenMP\n");
    exit(77);
}

static bool child_computes(const char *path)
{
    pid_t child = fork();
    if (child == 0) {
        void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        _exit(plugin && computes(plugin, 0) ? 0 : 1);
    }
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool is_loaded(const char *path)
{
    void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (library) dlclose(library);
    return library != NULL;
}

int main(int argc, char **argv)
{
    if (argc < 5) return 2;
    int rounds = atoi(argv[3]);
    int32_t threads_by = atoi(argv[4]);
    for (int i = 0; i < rounds && test_failed == 0; i++) {
        void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!TEST_CHECK(plugin != NULL)) printf("    %s\n", dlerror());
        if (!plugin) break;
        TEST_CHECK(is_loaded(argv[2]));
        TEST_CHECK(computes(plugin, threads_by));
        // OpenMP's own threads are lost in a child.
        if (threads_by == 0) TEST_CHECK(child_computes(argv[1]));
        dlclose(plugin);
        TEST_CHECK(!is_loaded(argv[2]));
    }
    // A thread whose code is gone would run into nothing about now.
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return test_done();
}
