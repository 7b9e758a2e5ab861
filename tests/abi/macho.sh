#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# What can be tried of macOS without its headers: data of the devices is embedded into objects of Mach-O, and
# a dylib with our list of exports has the public functions and nothing else.
#     macho.sh FOLDER HEADER...
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
folder=$1
shift
linker=
for name in ld64.lld ld64.lld-14; do
    [ -n "$linker" ] || linker=$(command -v $name) || true
done
for name in clang llvm-nm; do
    command -v $name >/dev/null 2>&1 || { echo "SKIP: $name is not installed" && exit 77; }
done
[ -n "$linker" ] || { echo "SKIP: ld64.lld is not installed" && exit 77; }
mkdir -p "$folder"
cd "$folder"
python3 -B "$here/dist/dylib_exports.py" exports "$@"
sed 's/^_\(.*\)/int \1(void); int \1(void) { return 0; }/' exports >functions.c
echo '__attribute__((visibility("hidden"))) int tn_inner(void); int tn_inner(void) { return 1; }
int outer(void); int outer(void) { return tn_inner(); }' >>functions.c
# Stands for glslangValidator: -o FILE, --depfile FILE.
cat >compiler <<'END'
#!/bin/sh
while [ $# -gt 1 ]; do
    case $1 in
    -o) printf code >"$2" ;;
    --depfile) echo "x: y" >"$2" ;;
    esac
    shift
done
END
chmod +x compiler
: >shader.comp
for arch in arm64 x86_64; do
    cc="clang --target=$arch-apple-macos13"
    sh "$here/backends/cuda/runtime/embed.sh" image.o image.d tn_image none.cu "$cc" none
    sh "$here/backends/vulkan/shaders/embed.sh" code.o code.d some shader.comp "$cc" ./compiler python3
    $cc -ffreestanding -c functions.c -o functions.o
    "$linker" -dylib -arch $arch -platform_version macos 13.0 13.0 -exported_symbols_list exports \
        -install_name @rpath/libtenon.0.dylib -undefined dynamic_lookup -o lib.dylib \
        functions.o image.o code.o
    llvm-nm --extern-only --defined-only --format=just-symbols lib.dylib | LC_ALL=C sort >exported
    LC_ALL=C sort exports | diff - exported
    llvm-nm lib.dylib | grep -q ' _tn_image$'
    llvm-nm lib.dylib | grep -q ' _tn_vk_code_end_some$'
    echo "$arch: $(wc -l <exported) functions exported"
done
