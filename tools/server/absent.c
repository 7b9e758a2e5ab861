// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon serve of a build without libwebsockets.
#include "tools/common.h"

int cmd_serve(const options *o)
{
    (void)o;
    return fail(EXIT_FAILED,
                "this build has no server; install libwebsockets (Debian: libwebsockets-dev) and "
                "build again with -Dserver=enabled");
}
