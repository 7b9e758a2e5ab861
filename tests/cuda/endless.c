// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Work that does not end, on a real card: a library to preload, which stands before cuGraphLaunch. In front
// of the graph of launch TN_ENDLESS_AT (default 5) it puts a kernel that runs for TN_ENDLESS_SECONDS (default
// 20), far longer than the program is told to wait. The program must say that the device is lost, and end:
//
//     cc -shared -fPIC -o endless.so tests/cuda/endless.c -ldl
//     LD_PRELOAD=./endless.so tenon run MODEL -p Hello -n 20 --backend cuda --device-timeout 3
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*graph_launch_fn)(void *exec, void *stream);
typedef int (*load_fn)(void **module, const void *image);
typedef int (*function_fn)(void **function, void *module, const char *name);
typedef int (*launch_fn)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                         unsigned bz, unsigned shared, void *stream, void **params, void **extra);
typedef void *(*dlsym_fn)(void *library, const char *name);

void *dlvsym(void *library, const char *name, const char *version); // a GNU extension
#define NEXT ((void *)-1L)                                          // RTLD_NEXT, which is one too

static graph_launch_fn real_graph_launch;
static void *driver;
static long n_launches;

static const char image[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                            ".visible .entry endless(.param .u64 ns)\n{\n"
                            ".reg .u64 %t<3>;\n.reg .pred %p;\n"
                            "ld.param.u64 %t1, [ns];\nmov.u64 %t0, %globaltimer;\nadd.u64 %t1, %t0, %t1;\n"
                            "again:\nmov.u64 %t2, %globaltimer;\nsetp.lt.u64 %p, %t2, %t1;\n@%p bra again;\n"
                            "ret;\n}\n";

static dlsym_fn real_dlsym(void)
{
    void *found = dlvsym(NEXT, "dlsym", "GLIBC_2.34");
    if (!found) found = dlvsym(NEXT, "dlsym", "GLIBC_2.2.5");
    dlsym_fn fn;
    memcpy(&fn, &found, sizeof fn);
    return fn;
}

static long from_environment(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

static int launch_endless(void *stream)
{
    dlsym_fn find = real_dlsym();
    void *load = find(driver, "cuModuleLoadData"), *get = find(driver, "cuModuleGetFunction"),
         *launch = find(driver, "cuLaunchKernel"), *module = NULL, *function = NULL;
    load_fn module_load;
    function_fn module_get;
    launch_fn kernel_launch;
    memcpy(&module_load, &load, sizeof load);
    memcpy(&module_get, &get, sizeof get);
    memcpy(&kernel_launch, &launch, sizeof launch);
    unsigned long long ns = (unsigned long long)from_environment("TN_ENDLESS_SECONDS", 20) * 1000000000ull;
    void *params[] = {&ns};
    int result = module_load(&module, image);
    if (!result) result = module_get(&function, module, "endless");
    if (!result) result = kernel_launch(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
    fprintf(stderr, "endless: before launch %ld, result %d\n", n_launches, result);
    return result;
}

static int graph_launch(void *exec, void *stream)
{
    if (++n_launches == from_environment("TN_ENDLESS_AT", 5)) {
        int result = launch_endless(stream);
        if (result) return result;
    }
    return real_graph_launch(exec, stream);
}

void *dlsym(void *restrict library, const char *restrict name)
{
    void *found = real_dlsym()(library, name);
    if (!found || strcmp(name, "cuGraphLaunch") != 0) return found;
    driver = library;
    memcpy(&real_graph_launch, &found, sizeof found);
    graph_launch_fn own = graph_launch;
    memcpy(&found, &own, sizeof own);
    return found;
}
