# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Whether two builds give the same bits: hashes of the logits of every golden model on every device.

    same_bits.py BUILD --out FILE         write the hashes of one build, one line "case hash" each, sorted
    same_bits.py BUILD_A BUILD_B          compute both and compare
    same_bits.py FILE BUILD               the same, A from a file written before
    same_bits.py --compare FILE_A FILE_B  compare two such files

A change that only moves or renames code must not change a bit. Tests with bounds do not notice that a sum has
another order or that another kernel was chosen; this script does. Hashes hold for one machine only: another
compiler, mathematical library or processor may round differently.

Without --all a part of the models runs on the slow devices. Exit code: 0 the same, 1 something differs or
failed, 77 nothing could be compared.
"""
import argparse
import concurrent.futures
import glob
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GOLDEN = os.path.join(ROOT, "..", "shared", "golden", "models")
EXIT_DEVICE = 5  # of the tool: no such device, or a CPU level that this processor does not have
TIMEOUT_S = 900
LAVAPIPE_PLACES = ("/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d")

# Tokens and arguments. The lengths lead to different kernels: matrix-vector kernels for one token, those for
# small batches up to 64 rows, and GEMM above. A batch that does not divide the tokens gives two lengths in
# one run: 40 tokens and then one behind them, 7 and then 2.
RUNS = {
    "prefill100": (100, []),
    "prefill40-token": (41, ["-b", "40"]),
    "batches7-2": (9, ["-b", "7"]),
    "decode": (4, ["-b", "1"]),
}
ENCODER_RUNS = {"tokens": (40, []), "pooled": (40, ["--pooled"])}

# Further arguments: how a session is set up.
WAYS = {
    "fused": [],
    "unfused": ["--fusion", "off"],
    "f32": ["--precision", "f32", "-ctk", "f32", "-ctv", "f32"],
    "tf32": ["--precision", "tf32"],
    "bf16": ["--precision", "bf16"],
    "f16": ["--precision", "f16"],
    "fp8": ["--precision", "fp8"],
    "int8": ["--precision", "int8", "-ctk", "q8_0", "-ctv", "q8_0"],
    "cache-bf16": ["-ctk", "bf16", "-ctv", "bf16"],
    "cache-q4": ["-ctk", "q4_0", "-ctv", "q4_0"],
    "deterministic": ["--deterministic"],
}
EVERYWHERE = ("f32", "int8", "cache-bf16", "cache-q4")

# One model of each kind of layer and several block types, for what is slow.
FEW = ("bert", "deepseek2", "gemma3", "gpt2", "llama_q4_k_m", "qwen2moe", "qwen3_iq4_xs", "qwen3moe_q8_0")
SAMPLE = ("llama_q4_k_m", "qwen3_f16", "qwen3moe_q8_0")


class Device:
    """Where logits are computed: arguments, environment and a library of the build folder that must be there.

    `models`: the names of the models that run by default, None for all; `all_models`: those with --all.
    `ways` are for each of these models, `more` only for those of SAMPLE; with a slow device only with --all.
    """

    def __init__(self, args, env=None, library=None, ways=("fused",), more=(), models=None, all_models=None):
        self.args, self.env, self.library = args, env or {}, library
        self.ways, self.more = ways, more
        self.models, self.all_models = models, all_models
        self.is_slow = "cpu" not in args


def cpu(level, **how):
    return Device(["--backend", "cpu", "--isa", level], **how)


def cuda(**how):
    """On the CUDA device of the tests, never on a real one."""
    return Device(["--backend", "cuda"], library="tests/cuda/emulated/libcuda.so.1", **how)


def vulkan(library=None, **how):
    return Device(["--backend", "vulkan"], library=library, **how)


BOTH = ("fused", "unfused")
BETWEEN = "tests/libvulkan.so.1"  # pretends abilities that lavapipe does not have, see tests/vulkan/between.c
DEVICES = {
    "cpu-reference": cpu("reference", models=FEW),
    "cpu-generic": cpu("generic", ways=BOTH),
    "cpu-avx2": cpu("avx2", ways=BOTH, more=EVERYWHERE),
    "cpu-avx512": cpu("avx512", ways=BOTH),
    "cpu-avx512vnni": cpu("avx512vnni", ways=BOTH, more=EVERYWHERE + ("deterministic",)),
    "cuda": cuda(models=FEW, more=("unfused", "tf32", "bf16", "f16", "fp8") + EVERYWHERE),
    "cuda-capability80": cuda(env={"TN_EMULATED_COMPUTE": "80"}, models=SAMPLE, all_models=FEW),
    "cuda-capability75": cuda(env={"TN_EMULATED_COMPUTE": "75"}, models=(), all_models=SAMPLE),
    "cuda-multiprocessors2": cuda(env={"TN_EMULATED_SMS": "2"}, models=SAMPLE, all_models=FEW),
    "vulkan": vulkan(models=FEW, more=("unfused",) + EVERYWHERE),
    "vulkan-matrices": vulkan(BETWEEN, env={"TN_BETWEEN_MATRICES": "1"}, more=("f32", "bf16", "f16"),
                              models=(), all_models=SAMPLE),
    "vulkan-as-gpu": vulkan(BETWEEN, env={"TN_BETWEEN_AS_GPU": "1", "GALLIVM_PERF": "nopt"}, models=(),
                            all_models=SAMPLE),
}


class Case:
    def __init__(self, device, way, model, run, n_tokens, args):
        self.device, self.model, self.n_tokens, self.args = device, model, n_tokens, args
        self.name = f"{device}/{way}/{model.name}/{run}"


class Model:
    def __init__(self, path):
        self.path, self.name = path, os.path.splitext(os.path.basename(path))[0]
        self.n_vocab, self.is_encoder = 0, False

    def inspect(self, tenon):
        done = subprocess.run([tenon, "inspect", self.path, "--json"], capture_output=True, timeout=TIMEOUT_S)
        about = json.loads(done.stdout)["model"] if done.returncode == 0 else None
        if about:
            self.n_vocab, self.is_encoder = about["vocabulary"], about["encoder"]
        return about is not None

    def tokens(self, n):
        """The same ones in every run; a longer list starts with the shorter one."""
        draw = random.Random(self.name)
        return ",".join(str(int(draw.random() * self.n_vocab)) for _ in range(n))


def find_models(folders, tenon):
    paths = [os.path.join(ROOT, "models", "bundled", "tenon-tiny.gguf")]
    for folder in folders:
        found = sorted(glob.glob(os.path.join(folder, "*.gguf")))
        if not found:
            print(f"SKIP: no models in {folder}", file=sys.stderr)
        paths += found
    models = [Model(p) for p in paths]
    return [m for m in models if m.inspect(tenon)]


def cases_of(models, options):
    """All cases that the options select, whether or not a build can run them."""
    cases = []
    for name, device in DEVICES.items():
        chosen = device.models if not options.all else device.all_models
        for model in models:
            wanted = chosen is None or model.name in chosen or os.path.dirname(model.path) in options.models
            if not wanted:
                continue
            further = model.name in SAMPLE and (options.all or not device.is_slow)
            ways = device.ways + (device.more if further else ())
            for way in ways:
                for run, (n, args) in (ENCODER_RUNS if model.is_encoder else RUNS).items():
                    cases.append(Case(name, way, model, run, n, WAYS[way] + args))
    return [c for c in cases if all(word in c.name for word in options.only)]


def lavapipe():
    """Manifest of the software driver: a real GPU must not run instead of it."""
    found = [f for place in LAVAPIPE_PLACES for f in sorted(glob.glob(f"{place}/lvp_icd*.json"))]
    return found[0] if found else None


class Build:
    """One build folder: runs cases of it and remembers which devices it does not have."""

    def __init__(self, folder, scratch, threads):
        self.folder, self.threads, self.absent = os.path.abspath(folder), threads, {}
        self.tenon = os.path.join(self.folder, "tools", "tenon")
        self.scratch = tempfile.mkdtemp(dir=scratch)
        self.driver = lavapipe()
        for name, device in DEVICES.items():
            if device.library and not os.path.exists(os.path.join(self.folder, device.library)):
                self.absent[name] = f"{device.library} is not built"
            elif "vulkan" in device.args and not self.driver:
                self.absent[name] = "no lavapipe"

    def environment(self, device):
        # The user's own cache may hold choices of kernels (bench --tune), which would lead to other bits.
        env = {**os.environ, "XDG_CACHE_HOME": self.scratch,
               "VK_ICD_FILENAMES": "/none", "VK_DRIVER_FILES": "/none"}
        env.update(device.env)
        if device.library:
            env["LD_LIBRARY_PATH"] = os.path.join(self.folder, os.path.dirname(device.library))
        if "vulkan" in device.args:
            env.update(VK_ICD_FILENAMES=self.driver, VK_DRIVER_FILES=self.driver)
            env.update(LP_NUM_THREADS=str(self.threads))
        return env

    def hash_of(self, case):
        """Hash of the logits of a case, "failed: why" without logits, None without the device."""
        device = DEVICES[case.device]
        if case.device in self.absent:
            return None
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            out = os.path.join(folder, "logits.f32")
            command = [self.tenon, "logits", case.model.path, "--tokens", case.model.tokens(case.n_tokens),
                       "--out", out, "-t", str(self.threads), *device.args, *case.args]
            env = self.environment(device)
            try:
                done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, env=env)
            except subprocess.TimeoutExpired:
                return f"failed: no end after {TIMEOUT_S} s"
            if done.returncode == EXIT_DEVICE:
                self.absent[case.device] = done.stderr.decode("utf-8", "replace").strip()
                return None
            if done.returncode != 0:
                why = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
                return f"failed: exit code {done.returncode}: {why}"
            with open(out, "rb") as f:
                data = f.read()
        return hashlib.sha256(data).hexdigest() if data else "failed: no logits"

    def hashes(self, cases, processes):
        with concurrent.futures.ThreadPoolExecutor(max_workers=processes) as pool:
            results = dict(zip((c.name for c in cases), pool.map(self.hash_of, cases)))
        for name, why in sorted(self.absent.items()):
            if any(c.device == name for c in cases):
                print(f"SKIP: {self.folder}: {name}: {why}", file=sys.stderr)
        return {name: value for name, value in results.items() if value}


def read_hashes(path):
    with open(path, encoding="utf-8") as f:
        return dict(line.rstrip("\n").split(" ", 1) for line in f if line.strip())


def write_hashes(hashes, path):
    text = "".join(f"{name} {value}\n" for name, value in sorted(hashes.items()))
    if path:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    else:
        sys.stdout.write(text)


def failures_of(hashes):
    """A case that fails twice in the same way proves nothing: each one is named."""
    failed = {name: value for name, value in sorted(hashes.items()) if value.startswith("failed")}
    for name, value in failed.items():
        print(f"{name}: {value}", file=sys.stderr)
    return len(failed)


def compare(a, b, selection):
    """Names each case of `selection` whose bits differ, or which one side does not have."""
    differing = failed = 0
    for name in sorted(selection):
        if name not in a or name not in b:
            print(f"{name}: only in {'B' if name in b else 'A'}")
            differing += 1
        elif a[name] != b[name]:
            print(f"{name}: differs: {a[name][:60]} and {b[name][:60]}")
            differing += 1
        elif a[name].startswith("failed"):
            print(f"{name}: {a[name]}, in both")
            failed += 1
    same = len(selection) - differing - failed
    print(f"{same} cases are the same, {differing} differ, {failed} failed in both")
    return 1 if differing or failed else 0 if same else 77


def arguments():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    add = parser.add_argument
    add("sides", nargs="+", metavar="BUILD|FILE", help="a build folder, or a file that --out wrote")
    add("--compare", action="store_true", help="both are files: compare all of their cases, run nothing")
    add("--out", metavar="FILE", help="where the hashes of one build go; otherwise standard output")
    add("--all", action="store_true", help="more models and ways on the slow devices")
    add("--only", action="append", default=[], metavar="TEXT", help="cases whose names have TEXT; repeatable")
    add("--models", action="append", default=[], metavar="DIR", help="the models of DIR too, on all devices")
    add("--golden", default=GOLDEN, metavar="DIR", help="the golden models, beside the checkout by default")
    add("--processes", type=int, default=2, metavar="N", help="programs that run at the same time, 2")
    add("--threads", type=int, default=1, metavar="N", help="threads of each, 1; they change no hash")
    options = parser.parse_args()
    if len(options.sides) > 2 or (options.compare and len(options.sides) != 2):
        parser.error("one build, or two sides to compare")
    if len(options.sides) == 1 and not os.path.isdir(options.sides[0]):
        parser.error("a file alone: name a build, or a second file")
    if options.compare and any(os.path.isdir(s) for s in options.sides):
        parser.error("--compare takes two files")
    return options


def main():
    options = arguments()
    builds = [s for s in options.sides if os.path.isdir(s)]
    if not builds:
        a, b = (read_hashes(s) for s in options.sides)
        return compare(a, b, {n for n in a.keys() | b.keys() if all(word in n for word in options.only)})
    with tempfile.TemporaryDirectory(prefix="tenon-bits-") as scratch:
        tenon = os.path.join(builds[0], "tools", "tenon")
        cases = cases_of(find_models([options.golden, *options.models], tenon), options)
        sides = []
        for side in options.sides:
            run = os.path.isdir(side)
            build = Build(side, scratch, options.threads) if run else None
            sides.append(build.hashes(cases, options.processes) if run else read_hashes(side))
    if len(sides) == 2:
        return compare(*sides, {c.name for c in cases})
    write_hashes(sides[0], options.out)
    failed = failures_of(sides[0])
    return 1 if failed else 0 if sides[0] else 77


sys.exit(main())
