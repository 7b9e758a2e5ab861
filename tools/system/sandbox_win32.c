// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// --sandbox is not there on Windows.
#include "tools/common.h"
#include "tools/system/system.h"

int sys_sandbox_enter(sys_sandbox_stage stage)
{
    (void)stage;
    return fail(EXIT_FAILED, "--sandbox is not available on this system");
}
