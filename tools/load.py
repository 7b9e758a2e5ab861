#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Loads a server that speaks OpenAI's chat interface, and measures what its users see.

    python3 tools/load.py http://127.0.0.1:8080 --users 32 --seconds 60
    python3 tools/load.py URL --rate 4 --seconds 60 --prompt 220 --answer 200 --turns 3
    python3 tools/load.py URL --users 8 --shared 2000 --disturb 16000 --json out.json

--users: a closed loop, in which each user sends the next request when the answer to the last one is
complete. --rate: an open loop, in which conversations begin at random times (Poisson), so many a second,
however long the answers take. Lengths are log-normal, texts are random words. A conversation has --turns
requests; each repeats all messages before it, so that its prompt grows at its end. --shared: words that all
prompts begin with. --disturb: one more user, whose prompts have so many tokens; its requests are reported
apart. Answers do not end before their length (`ignore_eos`). --key: what the header X-Prefix-Key says, by
which a balancer chooses the server: nothing, an id of the conversation, or what the first answer of the
conversation returned.

A request counts as good if its first token comes within --first-ms and its mean gap is at most --gap-ms;
goodput is the rate of these. Gaps are the times between the events of one stream. Everything is measured
between the end of --warm seconds and the end of the last request that began within --seconds. It needs
Python 3.8 and nothing else.
"""
import argparse
import asyncio
import json
import math
import os
import random
import ssl
import sys
import time
import urllib.parse

WORDS = ("stone river garden winter silver candle forest window market letter bridge summer castle island "
         "thunder feather harbor lantern meadow orchard pebble quarry raven saddle timber valley walnut "
         "yarrow zephyr anchor basket copper dagger ember falcon goblet hollow ivory jacket kettle ladder "
         "mirror needle oyster pillow quiver ribbon shovel tunnel velvet wagon").split()
CONNECT_SECONDS = 10
SILENT_SECONDS = 120  # without any byte of an answer
PAUSE_SECONDS = 0.5   # after a request that failed, so that a server that is gone is not flooded


# --- one request -----------------------------------------------------------------------------------------

class Failure(Exception):
    """Why a request failed: "status 429", "closed"."""


class Record:
    """What was seen of one request. Times are in seconds of time.monotonic()."""

    def __init__(self, begin, disturbs=False):
        self.begin, self.disturbs = begin, disturbs
        self.times = []  # of the events with text
        self.end, self.failure = None, None
        self.prompt_tokens = self.cached_tokens = self.tokens = 0
        self.text = ""
        self.prefix_key = None  # of the answer

    def first(self):
        return self.times[0] - self.begin

    def gaps(self):
        return [b - a for a, b in zip(self.times, self.times[1:])]

    def mean_gap(self):
        return (self.times[-1] - self.times[0]) / (self.tokens - 1) if self.tokens > 1 else 0.0

    def take(self, event):
        """One object of the stream."""
        if "error" in event:
            raise Failure("error in the stream")
        for choice in event.get("choices", []):
            delta = choice.get("delta", {})
            text = delta.get("content") or delta.get("reasoning_content")
            if text:
                self.times.append(time.monotonic())
                self.text += text
        usage = event.get("usage")
        if usage:
            self.prompt_tokens = usage.get("prompt_tokens", 0)
            self.tokens = usage.get("completion_tokens", 0)
            self.cached_tokens = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)


class Target:
    """The server: its address and what all requests have in common."""

    def __init__(self, url, key, model):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SystemExit(f"load: {url} is no http address")
        self.tls = ssl.create_default_context() if parts.scheme == "https" else None
        self.host, self.port = parts.hostname, parts.port or (443 if self.tls else 80)
        self.base, self.key, self.model = parts.path.rstrip("/"), key, model

    async def send(self, path, body, prefix_key=None):
        """The connection, and the status and the headers of the answer."""
        reader, writer = await asyncio.wait_for(
            asyncio.open_connection(self.host, self.port, ssl=self.tls), CONNECT_SECONDS)
        data = json.dumps(body).encode()
        key = f"Authorization: Bearer {self.key}\r\n" if self.key else ""
        key += f"X-Prefix-Key: {prefix_key}\r\n" if prefix_key else ""
        writer.write(f"POST {self.base}{path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n{key}"
                     f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
                     "Connection: close\r\n\r\n".encode() + data)
        try:
            await writer.drain()
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SILENT_SECONDS)
            lines = head.decode("latin-1").split("\r\n")
            headers = {}
            for line in lines[1:]:
                name, _, value = line.partition(":")
                headers[name.strip().lower()] = value.strip()
            return reader, writer, int(lines[0].split()[1]), headers
        except BaseException:
            writer.close()
            raise

    async def lines(self, reader, headers):
        """The lines of the body, whether it comes in chunks or until the end of the connection."""
        rest = b""
        chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        while True:
            if chunked:
                line = await asyncio.wait_for(reader.readline(), SILENT_SECONDS)
                size = int(line.split(b";")[0] or b"0", 16)
                data = (await asyncio.wait_for(reader.readexactly(size + 2), SILENT_SECONDS))[:size]
            else:
                data = await asyncio.wait_for(reader.read(65536), SILENT_SECONDS)
            if not data:
                break
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                yield line
        if rest:
            yield rest

    async def chat(self, messages, n_tokens, record, prefix_key=None):
        """Fills the record. A failure is part of it."""
        body = {"messages": messages, "max_tokens": n_tokens, "ignore_eos": True, "stream": True,
                "stream_options": {"include_usage": True}, "temperature": 0.8}
        if self.model:
            body["model"] = self.model
        writer, done = None, False
        try:
            reader, writer, status, headers = await self.send("/v1/chat/completions", body, prefix_key)
            record.prefix_key = headers.get("x-prefix-key")
            if status != 200:
                raise Failure(f"status {status}")
            async for line in self.lines(reader, headers):
                done = done or line.strip() == b"data: [DONE]"
                if line.startswith(b"data: {"):
                    record.take(json.loads(line[6:]))
            if not done or not record.times:
                raise Failure("ended early" if record.times else "no text")
        except Failure as failure:
            record.failure = str(failure)
        except asyncio.TimeoutError:
            record.failure = "time-out"
        except (OSError, EOFError, ValueError, IndexError) as error:
            record.failure = type(error).__name__
        finally:
            record.end = time.monotonic()
            record.tokens = record.tokens or len(record.times)
            if writer:
                writer.close()

    async def tokens_per_word(self):
        """By the server's own tokenizer where it offers it."""
        text = " ".join(WORDS * 10)
        try:
            reader, writer, status, headers = await self.send("/tokenize", {"content": text})
            body = b"\n".join([line async for line in self.lines(reader, headers)])
            writer.close()
            return len(json.loads(body)["tokens"]) / (10 * len(WORDS)) if status == 200 else None
        except (OSError, EOFError, ValueError, LookupError, TypeError, asyncio.TimeoutError):
            return None


# --- the load --------------------------------------------------------------------------------------------

class Load:
    def __init__(self, args, target, ratio):
        self.args, self.target, self.ratio = args, target, ratio
        self.random = random.Random(args.seed)
        self.records, self.tasks = [], set()
        self.start = time.monotonic()
        self.stop = self.start + args.warm + args.seconds
        self.shared = self.text(args.shared) if args.shared else ""
        self.n_left = args.requests or math.inf

    def length(self, mean):
        """A log-normal number of tokens with this mean."""
        sigma = self.args.sigma
        return max(1, round(self.random.lognormvariate(math.log(mean) - sigma * sigma / 2, sigma)))

    def text(self, n_tokens):
        return " ".join(self.random.choices(WORDS, k=max(1, round(n_tokens / self.ratio))))

    def ended(self):
        return time.monotonic() >= self.stop or self.n_left <= 0

    async def request(self, messages, n_tokens, disturbs=False, prefix_key=None):
        if not disturbs:
            self.n_left -= 1
        record = Record(time.monotonic(), disturbs)
        self.records.append(record)
        await self.target.chat(messages, n_tokens, record, prefix_key)
        if record.failure:
            await asyncio.sleep(PAUSE_SECONDS)
        return record

    async def conversation(self):
        messages = [{"role": "system", "content": self.shared}] if self.shared else []
        key = f"{self.random.getrandbits(64):016x}" if self.args.key == "own" else None
        for _ in range(self.args.turns):
            if self.ended():
                return
            messages = messages + [{"role": "user", "content": self.text(self.length(self.args.prompt))}]
            record = await self.request(messages, self.length(self.args.answer), prefix_key=key)
            if record.failure:
                return
            if self.args.key == "returned":
                key = key or record.prefix_key
            messages = messages + [{"role": "assistant", "content": record.text}]

    async def user(self):
        while not self.ended():
            await self.conversation()

    async def arrivals(self):
        while not self.ended():
            task = asyncio.ensure_future(self.conversation())
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
            await asyncio.sleep(self.random.expovariate(self.args.rate))
        while self.tasks:
            await asyncio.wait(self.tasks)

    async def disturber(self):
        while not self.ended():
            await self.request([{"role": "user", "content": self.text(self.args.disturb)}], 1, True)
            await asyncio.sleep(self.args.disturb_pause)

    async def run(self):
        loops = [self.arrivals()] if self.args.rate else [self.user() for _ in range(self.args.users)]
        disturber = asyncio.ensure_future(self.disturber()) if self.args.disturb else None
        await asyncio.gather(*loops)
        if disturber:
            disturber.cancel()


# --- the report ------------------------------------------------------------------------------------------

def percentile(values, share):
    """Linear between the neighbours; None without values."""
    ordered = sorted(values)
    if not ordered:
        return None
    at = share * (len(ordered) - 1)
    low = ordered[math.floor(at)]
    return low + (ordered[math.ceil(at)] - low) * (at - math.floor(at))


def spread(seconds):
    """In milliseconds."""
    marks = {"median": .5, "p90": .9, "p99": .99, "max": 1}
    return {name: None if not seconds else round(percentile(seconds, share) * 1e3, 3)
            for name, share in marks.items()}


def busy_rate(load, begin):
    """Tokens a second from the warm-up until no further request begins. Behind that users fall silent one by
    one, and the rate of the whole time is that of fewer users. An event may be several tokens: those of a
    request are counted by the share of its events."""
    users = [r for r in load.records if not r.disturbs]
    until = max([r.begin for r in users], default=begin)
    if until <= begin:
        return None
    tokens = sum(r.tokens * sum(begin <= t < until for t in r.times) / len(r.times) for r in users if r.times)
    return round(tokens / (until - begin), 3)


def summary(load):
    """The figures of the requests that began behind the warm-up."""
    args, begin = load.args, load.start + load.args.warm
    seen = [r for r in load.records if r.end is not None and r.begin >= begin]
    users = [r for r in seen if not r.disturbs]
    good = [r for r in users if not r.failure]
    failures = {}
    for r in users:
        if r.failure:
            failures[r.failure] = failures.get(r.failure, 0) + 1
    seconds = max([r.end for r in users], default=begin) - begin
    per_second = (lambda n: round(n / seconds, 3)) if seconds > 0 else (lambda n: 0.0)
    within = [r for r in good if r.first() * 1e3 <= args.first_ms and r.mean_gap() * 1e3 <= args.gap_ms]
    prompts = sum(r.prompt_tokens for r in good)
    result = {
        "requests": len(good), "failures": failures,
        "failures_before_text": sum(bool(r.failure) and not r.times for r in users),
        "seconds": round(seconds, 3),
        "requests_per_second": per_second(len(good)),
        "output_tokens": sum(r.tokens for r in good),
        "output_tokens_per_second": per_second(sum(r.tokens for r in good)),
        "busy_tokens_per_second": busy_rate(load, begin),
        "prompt_tokens": prompts, "prompt_tokens_per_second": per_second(prompts),
        "cached_share": round(sum(r.cached_tokens for r in good) / prompts, 4) if prompts else None,
        "first_token_ms": spread([r.first() for r in good]),
        "gap_ms": spread([gap for r in good for gap in r.gaps()]),
        "request_ms": spread([r.end - r.begin for r in good]),
        "goodput_per_second": per_second(len(within)),
        "goodput_share": round(len(within) / len(users), 4) if users else None,
    }
    if args.disturb:
        others = [r for r in seen if r.disturbs]
        result["disturber"] = {"requests": sum(not r.failure for r in others),
                               "failures": sum(bool(r.failure) for r in others),
                               "first_token_ms": spread([r.first() for r in others if not r.failure])}
    return result


def show(result, args):
    def row(name, values):
        cells = "  ".join(f"{mark} {value:.1f}" for mark, value in values.items() if value is not None)
        print(f"{name:22}{cells or '-'}")
    failed = ", ".join(f"{n} x {why}" for why, n in sorted(result["failures"].items())) or "0"
    print(f"{'requests':22}{result['requests']} in {result['seconds']:.1f} s, "
          f"{result['requests_per_second']:.2f}/s; failed: {failed}")
    busy = result["busy_tokens_per_second"]
    print(f"{'output tokens/s':22}{result['output_tokens_per_second']:.1f}"
          + (f"; {busy:.1f} while requests began" if busy is not None else ""))
    cached = result["cached_share"]
    print(f"{'prompt tokens/s':22}{result['prompt_tokens_per_second']:.1f}"
          + (f", {100 * cached:.1f} % from the cache" if cached is not None else ""))
    row("first token, ms", result["first_token_ms"])
    row("gap, ms", result["gap_ms"])
    row("request, ms", result["request_ms"])
    if result["goodput_share"] is not None:
        print(f"{'goodput':22}{result['goodput_per_second']:.2f}/s, {100 * result['goodput_share']:.1f} % "
              f"within {args.first_ms:g} ms and {args.gap_ms:g} ms for each token")
    if "disturber" in result:
        other = result["disturber"]
        row(f"disturber, {other['requests']}", other["first_token_ms"])


def arguments(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("url")
    loop = p.add_mutually_exclusive_group()
    loop.add_argument("--users", type=int, default=8, help="closed loop: users (8)")
    loop.add_argument("--rate", type=float, help="open loop: conversations a second")
    p.add_argument("--seconds", type=float, default=30, help="how long requests begin (30)")
    p.add_argument("--warm", type=float, default=0, help="seconds before that which are not measured (0)")
    p.add_argument("--requests", type=int, help="at most so many")
    p.add_argument("--prompt", type=float, default=220, help="mean tokens of a message (220)")
    p.add_argument("--answer", type=float, default=200, help="mean tokens of an answer (200)")
    p.add_argument("--sigma", type=float, default=0.7, help="of the logarithm of lengths (0.7)")
    p.add_argument("--turns", type=int, default=1, help="requests of a conversation (1)")
    p.add_argument("--shared", type=int, default=0, help="tokens that all prompts begin with (0)")
    p.add_argument("--disturb", type=int, default=0, help="tokens of the prompts of one more user (0: none)")
    p.add_argument("--disturb-pause", type=float, default=1, help="seconds between its requests (1)")
    p.add_argument("--key", choices=["none", "own", "returned"], default="none",
                   help="X-Prefix-Key of requests (none)")
    p.add_argument("--first-ms", type=float, default=500, help="a good first token (500)")
    p.add_argument("--gap-ms", type=float, default=50, help="a good mean gap (50)")
    p.add_argument("--model", help="name in requests (none)")
    p.add_argument("--tokens-per-word", type=float, help="of the texts (asks /tokenize, else 1.5)")
    p.add_argument("--seed", type=int, default=1, help="of lengths and texts (1)")
    p.add_argument("--json", metavar="FILE", help="writes the figures there, too")
    args = p.parse_args(argv)
    least = {"users": 1, "turns": 1, "prompt": 1, "answer": 1, "seconds": 0, "warm": 0, "sigma": 0,
             "shared": 0, "disturb": 0, "disturb_pause": 0}
    for name, value in least.items():
        if getattr(args, name) < value:
            p.error(f"--{name.replace('_', '-')} is at least {value}")
    if args.rate is not None and args.rate <= 0:
        p.error("--rate is above 0")
    return args


async def measure(args):
    target = Target(args.url, os.environ.get("TENON_API_KEY"), args.model)
    ratio = args.tokens_per_word or await target.tokens_per_word() or 1.5
    load = Load(args, target, ratio)
    await load.run()
    return summary(load)


def main(argv=None):
    args = arguments(argv)
    result = asyncio.run(measure(args))
    show(result, args)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            given = {k: v for k, v in vars(args).items() if k != "json"}
            json.dump({"arguments": given, **result}, f, indent=2)
    return 0 if result["requests"] else 1


if __name__ == "__main__":
    sys.exit(main())
