# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""The desktop program under Xvfb: each step of its script ends as it should, the main loop does not stall.

    test_desktop.py PROGRAM MODEL [SECONDS [DRIVER]]

DRIVER is the folder of a libcuda.so.1 that can lose its device (tests/cuda/fake_driver.c). On a machine that
is busy with other work the gaps of the main loop say little, so the script is run again, up to three times.
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
RUNS = 3


def run(program, model, seconds, driver):
    """The exit code of the program and the result it printed, None without one."""
    read, write = os.pipe()
    with tempfile.TemporaryDirectory(prefix="tenon-desktop-") as folder:
        server = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "900x640x24"],
                                  pass_fds=[write], stderr=subprocess.DEVNULL)
        os.close(write)
        try:
            with os.fdopen(read) as line:  # a whole line: a pipe closed before would end the server
                display = line.readline().strip()
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
        return p.returncode, json.loads(p.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        print("FAIL: no result:", p.stderr.decode()[-600:])
        return p.returncode, None


def main():
    program, model = sys.argv[1:3]
    seconds = sys.argv[3] if len(sys.argv) > 3 else "10"
    driver = sys.argv[4] if len(sys.argv) > 4 else None
    if not shutil.which("Xvfb"):
        print("SKIP: no Xvfb")
        return 77
    for _ in range(RUNS):
        code, d = run(program, model, seconds, driver)
        if code != 0 or d is None or d["failed"] or d["rounds"] < 1:
            print("FAIL: a step")
            return 1
        if d["late_by_work"] * STEPS_LATE > d["steps"]:
            print("FAIL: the main loop worked too long")
            return 1
        if d["machine_stalled_ms"] <= QUIET_MS:
            print("passed" if d["longest_ms"] <= LIMIT_MS else "FAIL: the main loop stalled")
            return 0 if d["longest_ms"] <= LIMIT_MS else 1
        loop, control = (sum(d[name + "_up_to_1_2_4_ms"][LIMIT_CLASS:]) for name in ("loop", "control"))
        print(f"the machine is busy: {loop} gaps of the main loop and {control} of a thread that only sleeps "
              f"were above {LIMIT_MS} ms")
        if loop <= d["steps"] + 2 * control:
            print("passed")
            return 0
    print("passed, but the gaps were not judged: too little of the machine was free")
    return 0


sys.exit(main())
