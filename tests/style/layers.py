# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Who may include whom, and which names may stand where. Every #include line is one check."""
import os
import re
import sys

from sources import LAYERS, Report, line_of, read, root, sources, strip_c

MAY = {
    "core": {"core"},
    "ops": {"core", "ops"},
    "backends": {"core", "ops"},  # and the folder of the same backend, see below
    "graph": {"core", "ops", "graph"},
    "models": {"core", "ops", "graph", "models"},
    "tools": {"tools"},
    "tests": set(LAYERS),
}
C_HEADERS = set("""assert.h complex.h ctype.h errno.h fenv.h float.h inttypes.h limits.h locale.h math.h
setjmp.h signal.h stdalign.h stdarg.h stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h
stdnoreturn.h string.h tgmath.h threads.h time.h uchar.h wchar.h wctype.h""".split())
# Headers of a compiler or a library, and the only places that may see them.
SPECIAL = {
    "omp.h": ("core/", "backends/"),
    "immintrin.h": ("backends/cpu/x86/", "tests/check/x86/"),
    "arm_neon.h": ("backends/cpu/arm/", "tests/check/arm/"),
    "cpuid.h": ("core/cpu_features.c",),
    "sys/auxv.h": ("core/cpu_features.c",),
    "cuda.h": ("backends/cuda/runtime/driver.h",),
    "cuda_bf16.h": ("backends/cuda/",),
    "cuda_fp16.h": ("backends/cuda/",),
    "cuda_fp8.h": ("backends/cuda/",),
    "vulkan/vulkan.h": ("backends/vulkan/runtime/loader.h",),
}
# Made by the build, in the same place below its folder.
GENERATED = ("backends/vulkan/constants.glsl",)
# Macros of systems, and what may ask for them: how a compiler exports functions and checks formats.
SYSTEM = re.compile(r"\b(?:_WIN32|_WIN64|__MINGW32__|__linux__|__APPLE__)\b")
SYSTEM_ALLOWED = ("core/include/tenon/base.h", "core/compiler.h", "tools/common.h")
OS_FILE = re.compile(r"_(posix|win32)\.c$")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
BACKEND_NAME = re.compile(r"cuda|vulkan|nvidia|radeon|spir-?v|\b(?:avx|sse|neon|amx|intel|amd)[0-9a-z]*\b",
                          re.I)
ARCH_NAME = re.compile(r"\b(?:llama|qwen|gemma|mistral|mixtral|falcon|starcoder|deepseek|gptneox|granite|"
                       r"exaone|bert|"
                       r"gpt2|phi[23])[0-9a-z]*\b", re.I)
# Names of instruction sets are what this file is about.
BACKEND_NAME_ALLOWED = ("core/cpu_features.c", "core/cpu_features.h")
# A backend as a string or an identifier: what a layer needs of one is a property (core/backend.h:
# tn_backend_role).
BACKEND_USE = re.compile(r'"(?:cpu|cuda|vulkan)(?::\d+)?"|\btn_backend_(?:cpu|cuda|vulkan|null)\b|'
                         r'device_by_name\(\s*[^,()]+,\s*"')


def layer_of(path):
    return path.split("/")[0]


def backend_of(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "backends" and len(parts) > 2 else None


def public_headers(top):
    """Name after tenon/ -> layer."""
    found = {}
    for layer in LAYERS:
        folder = os.path.join(top, layer, "include", "tenon")
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            found[name] = layer
    return found


def check_public(path, name, headers):
    """Problem with #include <tenon/name>, or None."""
    layer = layer_of(path)
    if name not in headers:
        return f"<tenon/{name}> does not exist"
    if layer not in ("tools", "tests") and headers[name] not in MAY[layer] | {layer}:
        return f"{layer} may not include <tenon/{name}> of {headers[name]}"
    return None


def check_system(path, name):
    layer = layer_of(path)
    if "/include/tenon/" in path and name not in ("stddef.h", "stdint.h"):
        return f"a public header includes <{name}>; only stddef.h and stdint.h are allowed"
    if name == "windows.h" and not path.endswith("_win32.c"):
        return "<windows.h> renames functions and constants of others; only *_win32.c may include it"
    if name in C_HEADERS or OS_FILE.search(path) or layer in ("tools", "tests"):
        return None
    places = SPECIAL.get(name)
    if places is None:
        return f"<{name}> is not of the C standard; such calls belong into core/*_posix.c"
    return None if path.startswith(places) else f"<{name}> may be included in {', '.join(places)} only"


def check_quoted(top, path, name):
    layer, target = layer_of(path), layer_of(name)
    if not os.path.exists(os.path.join(top, name)) and name not in GENERATED:
        return f'"{name}" is no path from the root of the repository'
    if target not in LAYERS:
        return f'"{name}" lies outside of the layers'
    if layer == "backends":
        mine, other = backend_of(path), backend_of(name)
        if target == "backends" and (mine is None or other in (mine, None)):
            return None  # backends/registry.c sees all of them; what lies beside it is for all
    return None if target in MAY[layer] else f'{layer} may not include "{name}"'


def check_includes(top, path, text, headers, report):
    for match in INCLUDE.finditer(text):
        kind, name = match.groups()
        if kind == '"':
            problem = check_quoted(top, path, name)
        elif name.startswith("tenon/"):
            problem = check_public(path, name[len("tenon/"):], headers)
        else:
            problem = check_system(path, name)
        report.ok(f"{path}:{line_of(text, match.start())}", problem is None, problem)


def check_systems(path, text, report):
    """Which system it is: asked only in pairs of files, and where compilers differ."""
    found = SYSTEM.search(strip_c(text))
    report.ok(path, not found or bool(OS_FILE.search(path)) or path in SYSTEM_ALLOWED,
              found and f"line {line_of(text, found.start())}: asks for {found.group(0)}; calls of the "
                        "system belong into pairs of *_posix.c and *_win32.c")


def check_names(path, text, report):
    """Code and strings; comments may cite where an idea comes from."""
    layer, text = layer_of(path), strip_c(text, keep_strings=True)
    if layer in ("core", "ops", "graph", "models") and path not in BACKEND_NAME_ALLOWED:
        found = BACKEND_NAME.search(text)
        report.ok(path, not found,
                  found and f"line {line_of(text, found.start())}: names a backend or vendor: "
                            f"{found.group(0)}")
    if layer in ("core", "ops", "graph", "models"):
        found = BACKEND_USE.search(text)
        report.ok(path, not found,
                  found and f"line {line_of(text, found.start())}: names a backend: {found.group(0)}")
    if layer in ("core", "ops", "graph", "backends"):
        found = ARCH_NAME.search(text)
        report.ok(path, not found,
                  found and f"line {line_of(text, found.start())}: names an architecture: {found.group(0)}")


def main():
    top, report = root(), Report()
    headers = public_headers(top)
    for path in sources(top, (".c", ".h", ".def", ".cu", ".cuh", ".comp", ".glsl"), LAYERS):
        text = read(top, path)
        check_includes(top, path, text, headers, report)
        check_systems(path, text, report)
        check_names(path, text, report)
    return report.done()


sys.exit(main())
