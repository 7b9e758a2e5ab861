#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Packs the fuzz targets for a machine with many cores that has neither this source nor clang.

    bundle.py BUILD THREADS FOLDER [TARGET...]

BUILD is one with -Dfuzz=true and `-Dc_link_args=-static-libstdc++`, THREADS one with -Db_sanitize=thread,
whose program of the target api runs unguided. FOLDER gets fuzz.tar.xz, many.py and fuzz.sh. There:

    sh fuzz.sh SECONDS CORES OUT

OUT/results.json is what `run.py --add` takes, OUT/inputs.tar.gz what `run.py BUILD --inputs` takes.
"""
import argparse
import json
import lzma
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile

import run

HERE = pathlib.Path(__file__).resolve().parent
EACH, SEQUENCES = 10 ** 7, 10 ** 6  # executions that are wanted, of api: sequences of calls
# Executions in a second of one core, 2026-11-27 (docs/reliability.md). Only the shares depend on them.
RATES = {"adapter": 5200, "api": 150, "api-threads": 110, "caches": 6200, "forward": 1400, "gguf": 7000,
         "grammar": 17000, "graph": 1500, "json": 60000, "model": 7500, "quantize": 16000, "routes": 3900,
         "state": 9600, "template": 20000, "tokenizer": 4700, "tools": 5200}
START = """#!/bin/sh
# fuzz.sh SECONDS CORES OUT: runs the fuzz targets quietly and ends by itself.
begin=$(date +%s)
seconds=${1:?} cores=${2:?} out=${3:?}
here=$(cd "$(dirname "$0")" && pwd)
to=$(mktemp -d /tmp/fuzz-XXXXXX) && mkdir -p "$out" || exit 1
ulimit -c 0
unpack='import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])'
python3 -c "$unpack" "$here/fuzz.tar.xz" "$to" 2>"$to/log"
left=$((seconds - $(date +%s) + begin))
LD_LIBRARY_PATH="$to/lib" nice -n 19 timeout -k 5 $((left + 20)) python3 -B "$here/many.py" "$to" \\
    --seconds "$left" --cores "$cores" --out "$out" >>"$to/log" 2>&1
code=$?
if [ $code != 0 ]; then tail -c 20000 "$to/log" >"$out/log.txt"; fi
rm -rf "$to"
exit $code
"""
SYSTEM = r"/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux-x86-64)\.so"


def copy_program(source, folder, libraries):
    """Without symbols, and the libraries that not every Linux has."""
    to = folder / "bin" / source.name
    subprocess.run(["strip", "-s", "-o", to, source], check=True)
    needs = subprocess.run(["ldd", source], capture_output=True, text=True).stdout
    for path in re.findall(r"=> (/\S+)", needs):
        if not re.search(SYSTEM, path):
            shutil.copy(path, libraries)
    return f"bin/{to.name}"


def pack(folder, archive):
    """The programs differ by little, so the window of the compressor holds several of them."""
    filters = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 4, "dict_size": 64 << 20}]
    with lzma.open(archive, "wb", filters=filters) as out, tarfile.open(fileobj=out, mode="w") as tar:
        tar.add(folder, arcname=".")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("threads", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("targets", nargs="*")
    opt = parser.parse_args()
    known = json.loads(run.EDGES.read_text())
    rows = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for part in ("bin", "lib", "words", "corpora"):
            (folder / part).mkdir()
        for t in opt.targets or run.targets(opt.build):
            program = copy_program(opt.build / "tests" / f"fuzz_{t}", folder, folder / "lib")
            with open(folder / "words" / t, "w") as words:
                subprocess.run([opt.build / "tests/fuzz_words", t], stdout=words, check=True)
            run.unpack(t, folder / "corpora" / t)
            done = known["targets"].get(t, {"executions": 0})["executions"]
            rows[t] = {"program": program, "guided": True, "max_len": run.MAX_LENGTH.get(t, 2048),
                       "options": run.OPTIONS.get(t, []), "rate": RATES.get(t, 1000),
                       "lacks": (SEQUENCES if t == "api" else EACH) - done}
        api = folder / "fuzz_api-threads"
        shutil.copy(opt.threads / "tests/fuzz_api", api)
        rows["api-threads"] = {"program": copy_program(api, folder, folder / "lib"), "guided": False,
                               "rate": RATES["api-threads"], "options": [], "max_len": 0,
                               "lacks": SEQUENCES - known.get("unguided", {}).get("api-threads", 0)}
        api.unlink()
        (folder / "plan.json").write_text(json.dumps({"targets": rows}, indent=1))
        opt.folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "many.py", opt.folder)
        (opt.folder / "fuzz.sh").write_text(START)
        pack(folder, opt.folder / "fuzz.tar.xz")
    print(f"{(opt.folder / 'fuzz.tar.xz').stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main()
