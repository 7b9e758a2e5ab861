// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The only place of the version; the build reads it from here.
#ifndef TENON_VERSION_H
#define TENON_VERSION_H

#include <tenon/base.h>

#define TENON_VERSION_MAJOR 0
#define TENON_VERSION_MINOR 1
#define TENON_VERSION_PATCH 0
#define TENON_VERSION "0.1.0"

TN_EXTERN_C_BEGIN
// Version of the library in use, "major.minor.patch"; may differ from TENON_VERSION of the headers.
TN_API const char *tn_version(void);
TN_EXTERN_C_END
#endif
