// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Opening the library, and when it must not be used.
//
// The number of threads of OpenBLAS belongs to the process. A library that this file loads itself is set to
// one thread, and back when the device closes. One that the program had loaded before is used only if the
// program has set it to one thread already; its settings stay as they are. Were it to compute with more, its
// threads would fight those of the pool, and calls of several threads would wait for each other.
#include "backends/cpu/openblas/openblas.h"

#include "backends/cpu/openblas/library.h"
#include "backends/cpu/openblas/state.h"
#include "core/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERIAL, OPENMP = 2 }; // of openblas_get_parallel

static const struct {
    const char *symbol;
    size_t offset;
} symbols[] = {
#define TN_OPENBLAS_FN(result, member, symbol, params) {#symbol, offsetof(tn_openblas_api, member)},
#include "backends/cpu/openblas/openblas.def"
};

void tn_openblas_lock(tn_openblas *b)
{
    while (atomic_flag_test_and_set_explicit(&b->lock, memory_order_acquire)) {
    }
}

void tn_openblas_unlock(tn_openblas *b)
{
    atomic_flag_clear_explicit(&b->lock, memory_order_release);
}

// --- opening ---------------------------------------------------------------------------------------------

static bool symbols_find(tn_openblas *b, void *library, const char *name)
{
    for (size_t i = 0; i < TN_COUNT(symbols); i++) {
        void *address = tn_cpu_library_symbol(library, symbols[i].symbol);
        if (!address) {
            snprintf(b->why_not, sizeof b->why_not, "%s is no OpenBLAS that can be used: it has no %s", name,
                     symbols[i].symbol);
            return false;
        }
        // Systems with shared libraries give functions as data pointers of the same size.
        memcpy((char *)&b->api + symbols[i].offset, &address, sizeof address);
    }
    return true;
}

// The number behind "MAX_THREADS=" of its configuration, 0 if there is none.
static long most_callers(const char *config)
{
    static const char word[] = "MAX_THREADS=";
    const char *at = strstr(config, word);
    return at ? strtol(at + sizeof word - 1, NULL, 10) : 0;
}

// The reason why the library cannot be called from every thread of the pool, computing on that thread; NULL:
// it can. was_loaded: it may not be set to one thread.
static const char *refusal(const tn_openblas *b, bool was_loaded)
{
    const tn_openblas_api *api = &b->api;
    const char *config = api->get_config();
    int32_t n_threads = tn_context_n_threads(b->ctx);
    long most = most_callers(config);
    int now = api->get_num_threads();
    if (strstr(config, "USE64BITINT")) return "its integers have 64 bits";
    if (most > 0 && n_threads > most) return "it was built for fewer threads than this context has";
    if (api->get_parallel() == SERIAL && n_threads > 1)
        return "it was built for one thread, and need not bear calls of several";
    // Its number of threads is that of the program's OpenMP, or of the thread that sets it.
    if (api->get_parallel() == OPENMP && now != 1)
        return "it computes on threads of OpenMP; a build with threads of its own can be used";
    if (was_loaded && now != 1)
        return "the program has loaded it for itself and computes with several threads; after "
               "openblas_set_num_threads(1) it can be used";
    return NULL;
}

static bool open_name(tn_openblas *b, const char *name)
{
    bool was_loaded;
    void *library = tn_cpu_library_open(name, &was_loaded);
    if (!library) return false;
    const char *why = NULL;
    if (symbols_find(b, library, name)) {
        why = refusal(b, was_loaded);
        if (why) snprintf(b->why_not, sizeof b->why_not, "%s: %s", name, why);
        if (!why) b->library = library;
    }
    if (!b->library) {
        tn_cpu_library_close(library);
        return true; // it is there
    }
    snprintf(b->name, sizeof b->name, "%s", name);
    int now = b->api.get_num_threads();
    if (now == 1) return true;
    b->threads_before = now;
    b->api.set_num_threads(1);
    return true;
}

static void open_library(tn_openblas *b)
{
    b->tried = true;
    bool there = false;
    snprintf(b->why_not, sizeof b->why_not, "%s cannot be loaded", b->wanted[0] ? b->wanted : "libopenblas");
    if (b->wanted[0]) {
        (void)open_name(b, b->wanted);
    } else {
        const char *name;
        for (size_t i = 0; (name = tn_openblas_name(i)) != NULL && !there; i++) there = open_name(b, name);
    }
    if (!b->library) {
        tn_log(b->ctx, TN_LOG_INFO, "cpu: no OpenBLAS: %s", b->why_not);
        return;
    }
    tn_log(b->ctx, TN_LOG_INFO, "cpu: %s, core %s, can multiply many rows", b->api.get_config(),
           b->api.get_corename());
}

bool tn_openblas_is_open(tn_openblas *b)
{
    tn_openblas_lock(b);
    if (!b->tried) open_library(b);
    bool usable = b->library != NULL;
    tn_openblas_unlock(b);
    return usable;
}

bool tn_openblas_is_alone(const tn_openblas *b)
{
    return b->api.get_num_threads() == 1;
}

const tn_openblas_api *tn_openblas_api_get(const tn_openblas *b)
{
    return b && b->library ? &b->api : NULL;
}

void tn_openblas_destroy(tn_openblas *b)
{
    if (!b) return;
    if (b->library) {
        if (b->threads_before > 0 && b->api.get_num_threads() == 1) b->api.set_num_threads(b->threads_before);
        tn_cpu_library_close(b->library);
    }
    tn_free(b->ctx, b->choices);
    tn_free(b->ctx, b);
}
