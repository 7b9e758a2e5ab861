# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""The chat of `tenon run` on a pseudo-terminal and on pipes: commands, files, pasting, Ctrl-C, history."""
import json
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time

TENON, MODEL = sys.argv[1], sys.argv[2]
passed = failed = 0


def ok(name, good, why=""):
    global passed, failed
    passed += bool(good)
    failed += not good
    if not good:
        print(f"failed: {name}: {why}")


class Terminal:
    """tenon run on a terminal of its own; what it prints comes together in `seen`."""

    def __init__(self, *args, **env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            for key, value in env.items():
                os.environ[key] = value
            os.execv(TENON, [TENON, "run", MODEL, "--temp", "0", *args])
        self.seen = b""
        self.status = None

    def read(self, seconds):
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.seen += data
        return bool(data)

    def wait(self, text, seconds=30):
        """Reads until the text came; what comes before it is forgotten."""
        end = time.time() + seconds
        while text not in self.seen and time.time() < end:
            if not self.read(0.2) and self.exited():
                break
        found, before, rest = text in self.seen, *self.seen.partition(text)[::2]
        self.before = before
        if found:
            self.seen = rest
        return found

    def send(self, data):
        while data:
            done = os.write(self.fd, data[:1024])
            data = data[done:]
            self.read(0.002)  # or its echo fills the line

    def exited(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def end(self, seconds=15):
        end = time.time() + seconds
        while not self.exited() and time.time() < end:
            self.read(0.1)
        if not self.exited():
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.status = "no end"
        return self.status


def pipe(text, *args, timeout=60):
    return subprocess.run([TENON, "run", MODEL, "--chat", "--temp", "0", *args], input=text,
                          capture_output=True, timeout=timeout)


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def test_files(folder):
    path = os.path.join(folder, "talk.json")
    r = pipe(f"/system Be kind.\n/set top-k 7\nHello!\n/save {path}\n/exit\n".encode())
    ok("save", r.returncode == 0 and os.path.exists(path), r.stderr)
    talk = load(path)
    roles = [m["role"] for m in talk["messages"]]
    ok("saved roles", roles == ["system", "user", "assistant"], talk)
    ok("saved settings", talk["settings"].get("top-k") == 7, talk["settings"])
    again = os.path.join(folder, "again.json")
    r = pipe(f"/load {path}\n/save {again}\n".encode())
    ok("load", r.returncode == 0 and load(again)["messages"] == talk["messages"]
       and load(again)["settings"] == talk["settings"], r.stderr)
    text = 'é "x" \\ \t\n<|im_end|> \U0001f600'
    messages = [{"role": "user", "content": text},
                {"role": "assistant", "content": None,
                 "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {"a": [1, "]"]}}}]},
                {"role": "tool", "tool_call_id": "1", "name": "f", "content": "r"},
                {"role": "user", "content": [{"type": "text", "text": "p"}]}]
    with open(path, "w", encoding="utf-8") as f:
        json.dump(messages, f)
    r = pipe(f"/load {path}\n/save {again}\n".encode())
    ok("any message", load(again)["messages"] == messages, (load(again), r.stderr))
    for name, bad in (("broken", b'{"messages": ['), ("no role", b'[{"content": "x"}]'),
                      ("no JSON", b"hello"), ("deep", b"[" * 5000), ("missing", None)):
        if bad is not None:
            with open(path, "wb") as f:
                f.write(bad)
        else:
            os.unlink(path)
        r = pipe(f"Hello!\n/load {path}\n/save {again}\n".encode())
        ok(name, r.returncode == 0 and len(load(again)["messages"]) == 2 and b"tenon: " in r.stderr, r.stderr)
    r = pipe(b"/set\n/set nothing 1\n/set temp x\n/set temp\n/save\n/load\n/nothing\n/regen\n")
    ok("wrong commands",
       r.returncode == 0 and r.stdout == b""
       and r.stderr.count(b"\ntenon: ") + r.stderr.startswith(b"tenon: ") >= 7, r.stderr)


def test_reasoning(folder):
    """What a model thinks is kept apart from what it says: here the text of the prompt is the model's
    answer."""
    path = os.path.join(folder, "think.json")
    r = pipe(f"Hello!\n/regen\n/save {path}\n".encode())
    messages = load(path)["messages"]
    ok("regen", len(messages) == 2 and messages[1]["role"] == "assistant" and r.stdout.count(b"\n") == 2,
       (messages, r.stdout))
    channels = "{{ messages[-1].content }}<|start|>assistant"
    plain, opened = ("{{ messages[-1].content }}<|im_start|>assistant\n",
                     "{{ messages[-1].content }}<|im_start|>assistant\n<think>\n")
    final = "<|start|>assistant<|channel|>final<|message|>Yes."
    # name, template, what the model writes, shown, answer alone, thought that is saved
    cases = (("channels", channels, "<|channel|>analysis<|message|>a < b?<|end|>" + final,
              "<think>\na < b?\n</think>\n\nYes.", "Yes.", "a < b?"),
             ("two thoughts", channels,
              "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary"
              "<|message|>b<|end|>" + final,
              "<think>\na\n</think>\n\n<think>\nb\n</think>\n\nYes.", "Yes.", "a"),
             ("no thought", channels, final[len("<|start|>assistant"):], "Yes.", "Yes.", None),
             ("no channels", channels, "Just <|end| text", None, None, None),
             ("call", channels, " to=functions.f<|channel|>commentary json<|message|>{}<|end|>", None, None,
              None),
             ("thought only", channels, "<|channel|>analysis<|message|>a", "<think>\na", "", "a"),
             ("think", plain, "<think>\na <b>\n</think>\n\nYes: <think>.", None, "Yes: <think>.", "a <b>"),
             ("no think", plain, " <thin", None, None, None),
             ("think begun", opened, "a\n</think>\n\nYes.", None, "Yes.", "a"),
             ("think only", plain, "<think>a", None, "", "a"))
    for name, template, text, shown, answer, thought in cases:
        grammar = "root ::= " + json.dumps(text)
        content = answer if answer is not None else text
        for flag, want in (("show", text if shown is None else shown), ("hide", content)):
            r = pipe(f"Hello!\n/save {path}\n".encode(), "--chat-template", template, "--grammar", grammar,
                     "--thoughts", flag)
            said = load(path)["messages"][-1]
            ok(f"thoughts, {name}, {flag}", r.stdout.decode() == want + "\n", (want, r.stdout, r.stderr))
            ok(f"kept thoughts, {name}",
               said["content"] == content and said.get("reasoning_content") == thought, said)


def test_terminal(folder):
    home = {"XDG_STATE_HOME": os.path.join(folder, "state"), "TERM": "xterm"}
    path = os.path.join(folder, "pty.json")
    t = Terminal(**home)
    before = termios.tcgetattr(t.fd)
    ok("prompt", t.wait(b">>> "), t.seen)
    t.send(b"Where does Mia live?\r")
    ok("answer", t.wait(b"blue house by the river") and t.wait(b">>> "), t.seen)
    t.send(b"\"\"\"one\r")
    ok("block goes on", t.wait(b"... "), t.seen)
    t.send(b"two\"\"\"\r")
    ok("block", t.wait(b"generated", 60) and t.wait(b">>> "), t.seen)
    line = "line {}\twith \U0001f600 and é\n"
    t.send(b"\033[200~" + "".join(line.format(i) for i in range(2000)).replace("\n", "\r").encode()
           + b"\033[201~\r")
    ok("a long paste is one text", t.wait(b"the context holds", 60) and t.wait(b">>> "), t.seen[-500:])
    pasted = "".join(line.format(i) for i in range(12))
    t.send(b"\033[200~" + pasted.replace("\n", "\r").encode() + b"\033[201~\r")
    ok("paste", t.wait(b"generated", 120) and t.wait(b">>> "), t.seen[-500:])
    t.send(f"/save {path}\r".encode())
    ok("saved", t.wait(b"saved") and t.wait(b">>> "), t.seen)
    said = [m["content"] for m in load(path)["messages"]
            if m["role"] == "user"] if os.path.exists(path) else []
    ok("messages", len(said) == 3 and said[1] == "one\ntwo", said[:2])
    ok("pasted text", len(said) == 3 and said[2].rstrip("\n") == pasted.rstrip("\n"),
       said[2][:100] if len(said) > 2 else said)
    t.send(b"\003")
    ok("Ctrl-C at the prompt", t.wait(b"leaves") and t.wait(b">>> "), t.seen)
    time.sleep(1.1)
    t.send(b"\004")
    ok("Ctrl-D", t.end() == 0, t.status)
    ok("terminal as before", termios.tcgetattr(t.fd)[3] == before[3])
    return home


def test_plain(folder):
    """A terminal that cannot be edited on."""
    path = os.path.join(folder, "plain.json")
    t = Terminal(XDG_STATE_HOME=os.path.join(folder, "no-state"), TERM="dumb")
    ok("plain prompt", t.wait(b">>> "), t.seen)
    t.send(b"\033[200~a\nb\n\nc d\033[201~\n")
    ok("plain paste", t.wait(b"generated", 60) and t.wait(b">>> "), t.seen)
    t.send(b"\033[200~x\033[201~ y\n")
    ok("plain short paste", t.wait(b"generated", 60) and t.wait(b">>> "), t.seen)
    t.send(f"/save {path}\n".encode())
    ok("plain saved", t.wait(b"saved") and t.wait(b">>> "), t.seen)
    said = [m["content"] for m in load(path)["messages"] if m["role"] == "user"]
    ok("plain messages", said == ["a\nb\n\nc d", "x y"], said)
    t.send(b"/bye\n")
    ok("plain end", t.end() == 0, t.status)
    ok("no history of a plain terminal", not os.path.exists(os.path.join(folder, "no-state")))


def test_long_talk():
    """A chat that is many times longer than its context goes on, and tells once that it forgets."""
    lines = [f"What comes after the number {i}?" for i in range(200)]
    small = ["-c", "512", "-n", "24", "-sys", "You are kind."]
    r = pipe("\n".join(lines).encode(), *small, timeout=240)  # sanitizers take over a minute
    ok("200 turns", r.returncode == 0, f"{r.returncode} {r.stderr}")
    ok("200 turns: answers", r.stdout.count(b"\n") >= 200, r.stdout.count(b"\n"))
    ok("200 turns: told once", r.stderr.count(b"the context is full") == 1, r.stderr)
    r = pipe("\n".join(lines[:60]).encode(), *small, "--context-full", "stop")
    ok("a full context stops", r.returncode == 6 and b"/clear" in r.stderr, f"{r.returncode} {r.stderr}")
    r = pipe("\n".join(lines[:60]).encode(), *small, "--context-shift", "--keep", "20")
    ok("a shifted context", r.returncode == 0 and not r.stderr, f"{r.returncode} {r.stderr}")
    r = pipe(b"word " * 2000, *small)
    ok("a message that is too long", r.returncode == 6 and b"too long" in r.stderr,
       f"{r.returncode} {r.stderr}")


def test_interrupt(home):
    t = Terminal("--ignore-eos", "-n", "100000", "-c", "100000", **home)
    ok("prompt again", t.wait(b">>> "), t.seen)
    t.send(b"Tell me a story.\r")
    time.sleep(1.0)
    t.send(b"\003")
    ok("Ctrl-C stops", t.wait(b">>> ", 10), t.seen[-300:])
    time.sleep(1.1)
    t.send(b"Another one.\r")
    time.sleep(1.0)
    t.send(b"\003")
    time.sleep(0.05)
    t.send(b"\003")
    ok("twice leaves", t.end() == 130, t.status)


def test_history(home):
    path = os.path.join(home["XDG_STATE_HOME"], "tenon", "history")
    if not os.path.exists(path):
        print("SKIP history: built without libedit")
        return
    ok("history is private", os.stat(path).st_mode & 0o777 == 0o600, oct(os.stat(path).st_mode))
    t = Terminal(**home)
    ok("prompt with history", t.wait(b">>> "), t.seen)
    t.send(b"kept however it ends\r")
    t.wait(b">>> ")
    os.kill(t.pid, signal.SIGKILL)
    t.end()
    with open(path, "rb") as f:
        ok("kept line", b"kept\\040however" in f.read())
    size = os.path.getsize(path)
    t = Terminal("--no-history", **home)
    t.wait(b">>> ")
    t.send(b"secret words\r")
    t.wait(b">>> ")
    t.send(b"\033[A\033[A\005 again\r")
    t.wait(b">>> ")
    t.send(b"/exit\r")
    ok("leaves", t.end() == 0, t.status)
    ok("--no-history", os.path.getsize(path) == size)


def main():
    with tempfile.TemporaryDirectory() as folder:
        test_files(folder)
        test_reasoning(folder)
        home = test_terminal(folder)
        test_plain(folder)
        test_long_talk()
        test_interrupt(home)
        test_history(home)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
