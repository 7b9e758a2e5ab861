#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# The SPIR-V of shaders, next to their objects, is valid. This includes modules that no driver of the tests
# accepts (VK_NV_cooperative_matrix).
#     spirv.sh SPIRV-VAL OBJECT...
set -u
tool=$1 failed=0
shift
[ $# -gt 0 ] || exit 1
for object; do
    "$tool" --target-env vulkan1.2 --scalar-block-layout "$object.spv" || { echo "$object.spv" && failed=1; }
done
exit $failed
