#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Lines and branches that the tests reach, by clang's counters (llvm-cov): a row for each part of the source,
# and a file for each file and each line.
#     sh tests/coverage.sh [FOLDER [ARGUMENT OF MESON TEST...]]   default: build-coverage, suites unit, graph,
#                                                                 model, tools and headers
# Counts add up over calls with the same folder; remove FOLDER/counts to start anew. What was not reached
# stands in FOLDER/lines.txt (a 0 behind the number of the line), the totals of files in FOLDER/files.txt.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-build-coverage}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- --suite unit --suite graph --suite model --suite tools --suite headers
version=$(clang -dumpversion | sed 's/\..*//')
for tool in llvm-profdata llvm-cov; do
    command -v "$tool-$version" >/dev/null || { echo "SKIP: $tool-$version is not installed" && exit 77; }
done
if [ ! -f "$folder/build.ninja" ]; then
    CC=clang meson setup "$folder" -Ddevice_archs=none -Dopenmp=disabled -Dexamples=disabled -Dpage=disabled \
        -Dhardening=false -Dbuildtype=debug -Doptimization=1 \
        "-Dc_args=-fprofile-instr-generate -fcoverage-mapping" -Dc_link_args=-fprofile-instr-generate
fi
# Programs write their counts when they end: one file for each program, into which all its runs are merged.
folder=$(cd "$folder" && pwd)
LLVM_PROFILE_FILE=$folder/counts/%4m.profraw
export LLVM_PROFILE_FILE
ninja -C "$folder"
code=0
meson test -C "$folder" --no-rebuild --num-processes 2 --timeout-multiplier 4 "$@" || code=$?
"llvm-profdata-$version" merge -sparse "$folder"/counts/*.profraw -o "$folder/counts.profdata"
library=$(ls -d "$folder"/libtenon.so.*.*.* | grep -v '\.p$')

# Sums of the files of each part, and a row for each file in files.txt.
for object in "$library" "$folder/tools/tenon"; do
    "llvm-cov-$version" export -summary-only -instr-profile "$folder/counts.profdata" "$object"
    echo
done | python3 -c '
import collections, json, os, sys
HOST = "host sides of backends/"
sums, files, seen = collections.defaultdict(lambda: [0] * 4), [], set()
for text in filter(str.strip, sys.stdin):
    for f in json.loads(text)["data"][0]["files"]:
        name = os.path.relpath(os.path.join(sys.argv[2], f["filename"]))
        if name in seen or name.startswith(("tests", "..", os.path.basename(sys.argv[2]))):
            continue
        seen.add(name)
        parts = name.split("/")
        part = parts[0] if parts[0] != "backends" else HOST + parts[1]
        if parts[:2] == ["backends", "cpu"] and len(parts) > 3 and parts[2] != "openblas":
            part = "backends/cpu, kernels"
        lines, branches = f["summary"]["lines"], f["summary"]["branches"]
        row = [lines["covered"], lines["count"], branches["covered"], branches["count"]]
        sums[part] = [a + b for a, b in zip(sums[part], row)]
        files.append((name, *row))
print("| Part | Lines | Branches |\n|---|---|---|")
for part, (a, b, c, d) in sorted(sums.items()):
    print(f"| {part} | {100 * a / max(b, 1):.1f} % of {b} | {100 * c / max(d, 1):.1f} % of {d} |")
with open(sys.argv[1], "w") as out:
    for name, a, b, c, d in sorted(files):
        print(f"{b - a:5} of {b:5} lines, {d - c:5} of {d:5} branches not reached: {name}", file=out)
' "$folder/files.txt" "$folder"
"llvm-cov-$version" show -instr-profile "$folder/counts.profdata" "$library" >"$folder/lines.txt"
rm -f default.profraw # of programs that tests start without an environment
exit $code
