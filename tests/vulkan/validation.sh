#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tool on the Vulkan backend under the Khronos validation layer with synchronisation validation: any
# message is a failure.
#     validation.sh TENON MODEL
set -u
tenon=$1 model=$2
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cat >"$dir/vk_layer_settings.txt" <<END
khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.report_flags = error,warn,perf,info
khronos_validation.log_filename = $dir/log
END
export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation XDG_CACHE_HOME="$dir"
export VK_LAYER_SETTINGS_PATH="$dir/vk_layer_settings.txt"

"$tenon" devices | grep -q 'vulkan:0' || { echo "SKIP: no Vulkan device" && exit 77; }
# Twice: the second start finds its pipelines in the cache.
for pass in 1 2; do
    rm -f "$dir/log"
    if ! "$tenon" bench "$model" --backend vulkan --no-peaks -p 24 -n 3 -r 1 --profile "$dir/profile.json" \
        >"$dir/out" 2>&1; then
        cat "$dir/out"
        exit 1
    fi
    if ! grep -q 'Khronos Validation Layer Active' "$dir/log" 2>/dev/null; then
        echo "SKIP: the validation layer is not installed (vulkan-validationlayers)"
        exit 77
    fi
    if grep -E '\((ERROR|WARN|PERF)[^)]*\)' "$dir/log" >"$dir/found"; then
        head -n 20 "$dir/found"
        echo "start $pass: $(wc -l <"$dir/found") messages"
        exit 1
    fi
done
echo "no messages in two starts"
