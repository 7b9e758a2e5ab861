// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon pull of a build without the headers of libcurl.
#include "tools/common.h"

int cmd_pull(const options *o)
{
    if (o->n_args != 1)
        return fail(EXIT_USAGE, "tenon pull takes one ORG/NAME, ORG/NAME:TYPE or https:// address");
    return fail(EXIT_FAILED,
                "this tenon was built without libcurl, which downloads; install libcurl4-openssl-dev and "
                "build it with -Dpull=enabled, or get the file with another program");
}
