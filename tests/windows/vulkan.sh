#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# The Vulkan backend under wine, on a software driver. Without a display wine's Vulkan is one of version 1.0,
# and a display that comes later is not noticed: so the test has folders of wine of its own.
#     vulkan.sh TENON.exe MODEL FOLDER
set -u
driver=
for file in /usr/share/vulkan/icd.d/lvp_icd*.json; do
    [ ! -f "$file" ] || driver=$file
done
if [ -z "$driver" ] || ! command -v xvfb-run >/dev/null 2>&1; then
    echo "SKIP: no software driver (mesa-vulkan-drivers), or no xvfb-run"
    exit 77
fi
export WINEPREFIX="$3" VK_ICD_FILENAMES="$driver" VK_DRIVER_FILES="$driver"
said=$(xvfb-run -a wine "$1" run "$2" --backend vulkan -st -p "Where does Mia live?" --temp 0)
echo "$said"
[ "$said" = "Mia lives in the blue house by the river." ]
