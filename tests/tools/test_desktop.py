# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""The desktop program under Xvfb: each step of its script ends as it should, the main loop does not stall.

    test_desktop.py PROGRAM MODEL [SECONDS [DRIVER]]

DRIVER is the folder of a libcuda.so.1 that can lose its device (tests/cuda/fake_driver.c).
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

LIMIT_MS = 16
QUIET_MS = 4  # how late a thread that only sleeps may be on a machine that is not busy
LIMIT_CLASS = 5  # classes of gaps from this one on are above the limit
STEPS_LATE = 8  # one step in so many: the clock of processor time also counts what a host takes away


def main():
    program, model = sys.argv[1:3]
    seconds = sys.argv[3] if len(sys.argv) > 3 else "10"
    driver = sys.argv[4] if len(sys.argv) > 4 else None
    if not shutil.which("Xvfb"):
        print("SKIP: no Xvfb")
        return 77
    read, write = os.pipe()
    with tempfile.TemporaryDirectory(prefix="tenon-desktop-") as folder:
        server = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "900x640x24"],
                                  pass_fds=[write], stderr=subprocess.DEVNULL)
        os.close(write)
        try:
            display = os.read(read, 16).decode().strip()
            env = {**os.environ, "DISPLAY": ":" + display, "GDK_BACKEND": "x11", "GSK_RENDERER": "cairo",
                   "GTK_A11Y": "none", "VK_ICD_FILENAMES": "/none", "VK_DRIVER_FILES": "/none",
                   "HOME": folder, "XDG_RUNTIME_DIR": folder, "GSETTINGS_BACKEND": "memory"}
            command = [program, "--script", seconds]
            if driver:
                env["LD_LIBRARY_PATH"] = driver
                env["TN_FAKE_LOST"] = os.path.join(folder, "lost")
                command += ["--lose", env["TN_FAKE_LOST"]]
            p = subprocess.run([*command, model], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               timeout=240, check=False)
        finally:
            server.kill()
            server.wait()
    print(p.stdout.decode().strip())
    try:
        d = json.loads(p.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        print("FAIL: no result:", p.stderr.decode()[-600:])
        return 1
    good = p.returncode == 0 and not d["failed"] and d["rounds"] >= 1
    if d["machine_stalled_ms"] <= QUIET_MS:
        good = good and d["longest_ms"] <= LIMIT_MS
    else:
        loop, control = (sum(d[name + "_up_to_1_2_4_ms"][LIMIT_CLASS:]) for name in ("loop", "control"))
        print(f"the machine is busy: {loop} gaps of the main loop and {control} of a thread that only sleeps "
              f"were above {LIMIT_MS} ms")
        good = good and d["late_by_work"] * STEPS_LATE <= d["steps"] and loop <= d["steps"] + 2 * control
    print("passed" if good else "FAIL: a step, or the main loop stalled")
    return 0 if good else 1


sys.exit(main())
