// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// "Futexes Are Tricky", Ulrich Drepper, 2011, chapter 5 ("mutex2").
#include "core/threads/mutex.h"

#include "core/context.h"

void tn_mutex_lock(tn_mutex *m)
{
    uint32_t was = 0;
    if (atomic_compare_exchange_strong_explicit(&m->word, &was, 1, memory_order_acquire,
                                                memory_order_relaxed))
        return;
    if (was != 2) was = atomic_exchange_explicit(&m->word, 2, memory_order_acquire);
    while (was != 0) {
        tn_wait_while(&m->word, 2);
        was = atomic_exchange_explicit(&m->word, 2, memory_order_acquire);
    }
}

void tn_mutex_unlock(tn_mutex *m)
{
    if (atomic_fetch_sub_explicit(&m->word, 1, memory_order_release) == 1) return;
    atomic_store_explicit(&m->word, 0, memory_order_release);
    tn_wake(&m->word, 1);
}
