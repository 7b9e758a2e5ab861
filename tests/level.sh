#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs a test as if this processor had no more than LEVEL (cpu_cap.c says which levels there are).
#     level.sh LEVEL TENON-CAPPED COMMAND...
# A processor that has less than that already: SKIP, before the test starts, because a script would take what
# the tool answers then for a failure.
set -u
export TN_TEST_CPU="$1"
tool=$2
shift 2
said=$("$tool" devices)
if [ $? -eq 77 ]; then
    echo "$said"
    exit 77
fi
exec "$@"
