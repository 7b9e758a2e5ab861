// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TOOLS_INSPECT_H
#define TENON_TOOLS_INSPECT_H

#include "tools/common.h"

// tenon inspect --memory: 0, or an exit code after a message (inspect_memory.c).
int inspect_memory(tool *t, const char *path);

#endif
