#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Tokens that a device of Vulkan selects are those that the processor selects from its logits, which it does
# where a text is banned.
#     sampling.sh TENON MODEL
set -u
tenon=$1 model=$2 failed=0
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME="$dir"

"$tenon" devices | grep -q 'vulkan:0' || { echo "SKIP: no Vulkan device" && exit 77; }
printf 'Once upon a time\nThe dog\nA little girl named\n' >"$dir/prompts"

# The answers with these flags, if that share of the tokens was selected on the device.
answers() { # FILE PERCENT FLAGS...
    file=$1 percent=$2
    shift 2
    "$tenon" batch "$model" -f "$dir/prompts" -n 24 --seed 7 --backend vulkan --report "$@" >"$dir/lines" \
        2>"$dir/report" && sort "$dir/lines" >"$file" &&
        grep -q " $percent % of the tokens were selected on the device" "$dir/report" && return 0
    cat "$dir/report"
    return 1
}

for flags in "--temp 0.8 --top-k 40" "--temp 1.5 --top-k 0 --top-p 1 --min-p 0" \
    "--temp 1.2 --top-k 0 --top-p 0.9 --repeat-penalty 1.3 --presence-penalty 0.4" \
    "--temp 2 --grammar root::=[a-z]{8,40}"; do
    # shellcheck disable=SC2086
    if ! answers "$dir/device" 100.0 $flags || ! answers "$dir/host" 0.0 $flags --ban-string qqzzqx ||
        ! cmp "$dir/device" "$dir/host"; then
        echo "failed: $flags"
        failed=1
    fi
done
exit $failed
