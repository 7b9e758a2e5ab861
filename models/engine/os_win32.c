// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// An event that stays set until it is cleared. Handles have 32 significant bits ("Interprocess Communication
// Between 32-bit and 64-bit Applications" in the documentation of Windows), so they fit into a descriptor.
#include "models/engine/os.h"

#include <windows.h>

static HANDLE handle_of(int32_t descriptor)
{
    return (HANDLE)(intptr_t)descriptor;
}

tn_status tn_os_signal_open(tn_context *ctx, tn_os_signal *out)
{
    HANDLE event = CreateEventW(NULL, TRUE, FALSE, NULL);
    if (!event) return tn_fail(ctx, TN_ERR_IO, "cannot make an event: error %lu", GetLastError());
    int32_t descriptor = (int32_t)(intptr_t)event;
    *out = (tn_os_signal){descriptor, descriptor};
    return TN_OK;
}

void tn_os_signal_close(tn_os_signal *s)
{
    if (s->read >= 0) CloseHandle(handle_of(s->read));
    *s = (tn_os_signal){-1, -1};
}

void tn_os_signal_raise(const tn_os_signal *s)
{
    SetEvent(handle_of(s->write));
}

void tn_os_signal_clear(const tn_os_signal *s)
{
    ResetEvent(handle_of(s->read));
}
