# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line share: running the tool, counting checks, changing GGUF files."""
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time


class Result:
    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    @property
    def text(self):
        return self.out.decode("utf-8", "replace")

    @property
    def ids(self):
        return [int(w) for w in self.out.split()]


class Tests:
    """The tool, a folder that is removed at the end, and the count of checks."""

    def __init__(self, tenon, root):
        self.tenon, self.root = os.path.abspath(tenon), root
        self.bundled = os.path.join(root, "models", "bundled")
        self.model = os.path.join(self.bundled, "tenon-tiny.gguf")
        self.folder = tempfile.TemporaryDirectory(prefix="tenon-cli-")
        self.passed = self.failed = self.skipped = 0
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("TENON_")}
        # No Vulkan driver: what the tests say of devices holds on every machine.
        self.env.update(VK_ICD_FILENAMES="/none", VK_DRIVER_FILES="/none")
        # No configuration, history or models of the person who runs the tests.
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
            self.env[name] = os.path.join(self.folder.name, "home", name)
        for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "OLLAMA_MODELS"):
            self.env.pop(name, None)

    def temp(self, name):
        return os.path.join(self.folder.name, name)

    def run(self, *args, stdin=b"", stdout=subprocess.PIPE, timeout=300, **env):
        start = time.monotonic()
        try:
            p = subprocess.run([self.tenon, *map(str, args)], input=stdin, stdout=stdout,
                               stderr=subprocess.PIPE,
                               timeout=timeout, env={**self.env, **env}, cwd=self.folder.name)
        except subprocess.TimeoutExpired as e:
            return Result(-999, e.stdout or b"", "no end after %d s" % timeout, timeout)
        return Result(p.returncode, p.stdout or b"", p.stderr.decode("utf-8", "replace"),
                      time.monotonic() - start)

    def ok(self, name, condition, detail=""):
        """Counts one check."""
        if condition:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAIL {name}: {str(detail)[:600]}", flush=True)
        return bool(condition)

    def done_well(self, name, result):
        """Counts one check: the command succeeded."""
        return self.ok(name, result.code == 0, f"exit code {result.code}, stderr {result.err!r}")

    def skip(self, name, why):
        self.skipped += 1
        print(f"SKIP {name}: {why}", flush=True)

    def done(self):
        self.folder.cleanup()
        print(f"{self.passed} passed, {self.failed} failed" + (f", {self.skipped} skipped" if self.skipped
                                                               else ""))
        return 1 if self.failed or not self.passed else 0


def arguments():
    """TENON [--quick] [GOLDEN_MODELS] -> tests, quick, folder or None."""
    args = [a for a in sys.argv[1:] if a != "--quick"]
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    golden = os.path.abspath(args[1]) if len(args) > 1 and os.path.isdir(args[1]) else None
    return Tests(args[0], root), "--quick" in sys.argv, golden


def as_json(t, name, text):
    try:
        return json.loads(text)
    except ValueError as e:
        t.ok(name, False, f"no valid JSON: {e}: {text[:200]}")
        return {}


TYPED_AGAIN = 2  # seconds


def reads_lines(fd):
    """Whether the terminal collects lines itself, as before a line editor reads and without one."""
    return bool(termios.tcgetattr(fd)[3] & termios.ICANON)


def on_terminal(t, args, until=None, send=b"", seconds=60, delay=0, **env):
    """Runs the tool on a pseudo-terminal. When `until` (a pattern) was seen, and after `delay` seconds,
    `send` is typed. Ctrl-D waits up to two seconds for a line editor that has printed its prompt but does not
    read yet, because the terminal would keep it, and is typed again. What was printed, and the exit code."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update({**t.env, "TERM": "xterm", **env})
        os.chdir(t.folder.name)
        os.execv(t.tenon, [t.tenon, *map(str, args)])
    seen, end, typed, found = b"", time.monotonic() + seconds, not send, None
    start = time.monotonic()
    while time.monotonic() < end:
        ready, _, _ = select.select([fd], [], [], 0.05)
        if ready:
            try:
                data = os.read(fd, 65536)
            except OSError:
                break
            if not data:
                break
            seen += data
        if not typed and time.monotonic() - start >= delay and re.search(until, seen):
            found = found or time.monotonic()
            if send == b"\x04" and reads_lines(fd) and time.monotonic() - found < 2:
                continue
            typed = time.monotonic()
            os.write(fd, send)
        if send == b"\x04" and typed and time.monotonic() - typed > TYPED_AGAIN:
            typed = time.monotonic()
            os.write(fd, send)
    else:
        os.kill(pid, 9)
    status = os.waitpid(pid, 0)[1]
    os.close(fd)
    return seen, os.waitstatus_to_exitcode(status)


# --- GGUF files ------------------------------------------------------------------------------------------

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # value type -> bytes
STRING, ARRAY = 8, 9


class Gguf:
    """Keys as raw bytes, so that a test can drop, change and add them; the rest stays as it is."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        _, self.version, self.n_tensors, n_keys = struct.unpack_from("<IIQQ", self.data)
        at, self.keys = 24, {}
        for _ in range(n_keys):
            name, value = self._string(at)
            end = self._value(value + 4, struct.unpack_from("<I", self.data, value)[0])
            self.keys[name] = self.data[value:end]
            at = end
        infos = at
        for _ in range(self.n_tensors):
            at = self._string(at)[1]
            at += 4 + 8 * struct.unpack_from("<I", self.data, at)[0] + 4 + 8
        self.infos = self.data[infos:at]
        self.tensors = self.data[(at + 31) // 32 * 32:]

    def _string(self, at):
        n = struct.unpack_from("<Q", self.data, at)[0]
        return self.data[at + 8:at + 8 + n].decode(), at + 8 + n

    def _value(self, at, kind):
        if kind in SIZES:
            return at + SIZES[kind]
        if kind == STRING:
            return self._string(at)[1]
        element, n = struct.unpack_from("<IQ", self.data, at)
        at += 12
        if element in SIZES:
            return at + n * SIZES[element]
        for _ in range(n):
            at = self._value(at, element)
        return at

    def set_u32(self, name, value):
        self.keys[name] = struct.pack("<II", 4, value)

    def set_text(self, name, value):
        self.keys[name] = struct.pack("<IQ", STRING, len(value.encode())) + value.encode()

    def set_texts(self, name, values):
        self.keys[name] = struct.pack("<IIQ", ARRAY, STRING, len(values))
        for v in values:
            self.keys[name] += struct.pack("<Q", len(v.encode())) + v.encode()

    def text(self, name):
        return self.keys[name][12:].decode()

    def texts(self, name):
        """The strings of an array, as bytes."""
        data, at, out = self.keys[name], 16, []
        for _ in range(struct.unpack_from("<Q", data, 8)[0]):
            n = struct.unpack_from("<Q", data, at)[0]
            out.append(data[at + 8:at + 8 + n])
            at += 8 + n
        return out

    def u32(self, name):
        return struct.unpack_from("<I", self.keys[name], 4)[0]

    def set_type(self, name, number):
        """Another type of a tensor; its values take the same bytes."""
        at = self.infos.index(struct.pack("<Q", len(name)) + name.encode()) + 8 + len(name)
        at += 4 + 8 * struct.unpack_from("<I", self.infos, at)[0]
        self.infos = self.infos[:at] + struct.pack("<I", number) + self.infos[at + 4:]

    def add_f32(self, name, sizes, values):
        """A tensor; sizes fastest first."""
        self.tensors += bytes(-len(self.tensors) % 32)
        self.infos += struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", len(sizes))
        self.infos += struct.pack(f"<{len(sizes)}QIQ", *sizes, 0, len(self.tensors))
        self.tensors += struct.pack(f"<{len(values)}f", *values)
        self.n_tensors += 1

    def write(self, path):
        out = struct.pack("<4sIQQ", b"GGUF", self.version, self.n_tensors, len(self.keys))
        for name, value in self.keys.items():
            out += struct.pack("<Q", len(name.encode())) + name.encode() + value
        out += self.infos
        out += bytes(-len(out) % 32)
        with open(path, "wb") as f:
            f.write(out + self.tensors)
        return path


def token_bytes(path):
    """The bytes of each token of a byte-level BPE vocabulary, which has a character per byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    byte = {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}
    return [bytes(byte[c] for c in text.decode()) for text in Gguf(path).texts("tokenizer.ggml.tokens")]


def read_f32(path):
    with open(path, "rb") as f:
        data = f.read()
    return struct.unpack(f"<{len(data) // 4}f", data[:len(data) // 4 * 4])


def rel_l2(got, want):
    diff = sum((a - b) ** 2 for a, b in zip(got, want))
    return (diff / max(sum(b * b for b in want), 1e-300)) ** 0.5 if len(got) == len(want) else float("inf")
