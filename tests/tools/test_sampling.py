# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""The flags of sampling, with the bundled model.

    test_sampling.py TENON [--quick]
"""
import json
import re
import sys
import time

from cli import arguments, token_bytes

STORY = "Once upon a time"

# Flag, least and largest value: the library takes both.
RANGES = [("--temp", 0, 100), ("--top-k", 0, 2147483647), ("--top-p", 0, 1), ("--min-p", 0, 1),
          ("--typical", 0, 1),
          ("--top-nsigma", -1, 100), ("--xtc-probability", 0, 1), ("--xtc-threshold", 0, 1),
          ("--dynatemp-range", 0, 100),
          ("--dynatemp-exp", 0, 100), ("--repeat-penalty", 0.01, 100), ("--presence-penalty", -100, 100),
          ("--frequency-penalty", -100, 100), ("--repeat-last-n", -1, 1000000), ("--dry-multiplier", 0, 100),
          ("--dry-base", 1, 100), ("--dry-allowed-length", 1, 1000000), ("--dry-penalty-last-n", -1, 1000000),
          ("--mirostat-ent", 0, 100), ("--mirostat-lr", 0, 1), ("--logprobs", 0, 1024)]


def check_ranges(t):
    base = ["run", t.model, "-p", STORY, "-n", 2, "--seed", 1, "--mirostat", 2]
    for flag, low, high in RANGES:
        for value in (low, high):
            r = t.run(*base, flag, value)
            t.ok(f"{flag} {value}", r.code == 0 and r.out, r.err)
        for value in (low - 1, high + 1):
            r = t.run(*base, flag, value)
            t.ok(f"{flag} {value}", r.code == 2 and flag in r.err, r.err)


def check_order(t):
    base = ["run", t.model, "-p", STORY, "-n", 60, "--seed", 1, "--ids"]
    plain = t.run(*base).ids
    for flags in (["--samplers", "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature"],
                  ["--sampling-seq", "edskypmxt"], ["--samplers", "top-k;nucleus;min-p;temp"]):
        r = t.run(*base, *flags)
        t.ok(f"default order: {flags}", r.code == 0 and r.ids == plain, r.err)
    base += ["--temp", 2]
    plain = t.run(*base).ids
    for flags in (["--samplers", ""], ["--sampling-seq", "t"], ["--mirostat", 2, "--mirostat-ent", 8],
                  ["--xtc-probability", 1],
                  ["--top-nsigma", 0.1], ["--typical", 0.1], ["--dynatemp-range", 2],
                  ["--dry-multiplier", 90, "--dry-sequence-breaker", "none", "--dry-allowed-length", 1]):
        r = t.run(*base, *flags)
        t.ok(f"another text: {flags}", r.code == 0 and r.ids != plain, f"{r.err} {r.ids}")
    for flags, word in ((["--samplers", "top_k;top_q"], "top_q"), (["--samplers", "top_k;top_k"], "twice"),
                        (["--sampling-seq", "kq"], "'q'"),
                        (["--sampling-seq", "k", "--samplers", "top_k"], "both"),
                        (["--mirostat", 1], "0|2"), (["--dry-sequence-breaker", ""], "1..64")):
        r = t.run(*base, *flags)
        t.ok(f"refused: {flags}", r.code in (1, 2) and word in r.err, r.err)


def check_logprobs(t):
    flags = ["run", t.model, "-p", STORY, "-n", 30, "--seed", 3]
    one = json.loads(t.run(*flags, "--json", "--logprobs", 3).out)
    rows = one["logprobs"]
    t.ok("--logprobs: ids", [row["id"] for row in rows] == one["tokens"], rows[:2])
    t.ok("--logprobs: text", "".join(row["text"] for row in rows).strip() == one["text"].strip(), one["text"])
    for row in rows:
        values = [x["logprob"] for x in row["top"]]
        t.ok("--logprobs: order",
             len(values) == 3 and values == sorted(values, reverse=True) and values[0] >= row["logprob"], row)
        same = [x["logprob"] for x in row["top"] if x["id"] == row["id"]]
        t.ok("--logprobs: of the chosen one", same in ([], [row["logprob"]]), row)
    events = [json.loads(line) for line in t.run(*flags, "--jsonl", "--logprobs", 3).out.splitlines()]
    t.ok("--logprobs: --jsonl", [e["top"] for e in events if "id" in e] == [row["top"] for row in rows],
         events[:3])
    t.ok("--logprobs: without it", "logprobs" not in json.loads(t.run(*flags, "--json").out), "")
    greedy = [json.loads(t.run(*flags, "--temp", 0, "--json", *more).out)["tokens"]
              for more in ([], ["--logprobs", 1])]
    t.ok("--logprobs: greedy stays the same", greedy[0] == greedy[1] and len(greedy[0]) > 3, greedy)


def check_grammar(t):
    base = ["run", t.model, "-p", STORY, "-n", 100, "--temp", 1]
    for seed in range(5):
        r = t.run(*base, "--seed", seed, "--grammar", 'root ::= ("yes" | "no") [0-9]{2,4} "."')
        t.ok("--grammar", re.fullmatch(r"(yes|no)[0-9]{2,4}\.", r.text), r.text)
    file = t.temp("list.gbnf")
    with open(file, "w", encoding="utf-8") as f:
        f.write('# a list\nroot ::= ("- " item "\\n"){3}\nitem ::= [A-Z] [a-z ]{3,30}\n')
    for flags in ([], ["--temp", 0], ["--samplers", "top_k;temperature"], ["--mirostat", 2],
                  ["--xtc-probability", 1]):
        r = t.run(*base, *flags, "--seed", 1, "--grammar-file", file)
        t.ok(f"--grammar-file {flags}", re.fullmatch(r"(- [A-Z][a-z ]{3,30}\n){3}", r.text), r.text)
    r = t.run(*base, "--grammar-file", "-", stdin=b'root ::= "\xc3\xa9t\xc3\xa9"')
    t.ok("--grammar-file -", r.text == "\u00e9t\u00e9", r.text)
    one = json.loads(t.run(*base, "--grammar", 'root ::= "abc"', "--json").out)
    t.ok("--grammar ends by itself", one["text"] == "abc" and one["stop"] == "end", one)
    one = json.loads(t.run(*base, "--grammar", 'root ::= "abc"', "--json", "--ignore-eos").out)
    t.ok("--grammar ends with --ignore-eos", one["text"] == "abc" and one["stop"] == "end", one)
    one = json.loads(t.run(*base[:-4], "-n", 2, "--grammar", 'root ::= [a-z]{30}', "--json").out)
    t.ok("--grammar: not complete", one["stop"] == "limit", one)
    for text, word in (("root ::= ", ""), ("root ::= (", "column 10"), ("a ::= b", "line 1"),
                       ("root ::= root", "left recursion"), ("", "root")):
        r = t.run(*base, "--grammar", text)
        t.ok(f"refused: {text}", not word or (r.code not in (0, 139, 134) and word in r.err and not r.out),
             r.err)
    r = t.run(*base, "--grammar", 'root ::= "a"', "--grammar-file", file)
    t.ok("refused: both", r.code == 2 and "exclude" in r.err, r.err)
    with open(file, "wb") as f:
        f.write(b'root ::= "a"\0 "b"')
    t.ok("refused: zero byte", t.run(*base, "--grammar-file", file).code not in (0, 139), "")


def check_texts(t):
    """A run prints the bytes of its tokens; `detokenize` also cleans up blanks, if the vocabulary asks."""
    for grammar, cleaned in ((" = .", " =."), ("It ' s", "It's"), ("a  ,", "a ,")):
        flags = ["run", t.model, "-p", STORY, "--temp", 0, "--json", "--grammar", f'root ::= "{grammar}"']
        one = json.loads(t.run(*flags).out)
        t.ok(f"text {grammar!r}", one["text"] == grammar and joined(t, one["tokens"]) == grammar, one)
        r = t.run("detokenize", t.model, "--tokens", ",".join(map(str, one["tokens"])))
        t.ok(f"detokenize {grammar!r}", r.text.rstrip("\n") == cleaned, r.text)


def joined(t, tokens):
    texts = token_bytes(t.model)
    return b"".join(texts[token] for token in tokens).decode("utf-8", "replace")


def check_bans(t):
    base = ["run", t.model, "-p", STORY, "-n", 120, "--json"]
    for seed, words in ((1, ["the"]), (4, ["e"]), (5, ["ing", "the", " was"])):
        flags = [x for w in words for x in ("--ban-string", w)]
        for more in (["--temp", 0], ["--temp", 1, "--seed", seed],
                     ["--temp", 1, "--seed", seed, "--logprobs", 2]):
            plain, one = (json.loads(t.run(*base, *more, *f).out) for f in ([], flags))
            clean = not any(w in one["text"] for w in words)
            changed = one["text"] != plain["text"] or not any(w in plain["text"] for w in words)
            t.ok(f"--ban-string {words} {more}", clean and changed and len(one["text"]) > 20, one["text"])
            # Of tokens that were taken back no byte may be left in the text.
            want = joined(t, one["tokens"])
            t.ok(f"--ban-string {words}: tokens", one["text"] == want, f"{one['text']!r}, tokens: {want!r}")
            # Apart from blanks, of which it cleans some up, that is what `detokenize` says.
            r = t.run("detokenize", t.model, "--tokens", ",".join(map(str, one["tokens"])))
            said, text = ("".join(x.split()) for x in (r.text, one["text"]))
            t.ok(f"--ban-string {words}: detokenize", said == text, f"{r.text!r} {one['text']!r}")
    same = [json.loads(t.run(*base, "--temp", 1, "--seed", 7, *f).out)["text"]
            for f in ([], ["--ban-string", "Zebra crossing"])]
    t.ok("--ban-string that never comes", same[0] == same[1], same)
    events = [json.loads(line)
              for line in t.run(*base[:-1], "--temp", 0, "--jsonl", "--ban-string", "the").out.splitlines()]
    text = "".join(e.get("text", "") for e in events)
    t.ok("--ban-string: --jsonl", "the" not in text and len(text) > 20, text)
    one = json.loads(t.run(*base, "--temp", 1, "--seed", 1, "--ban-string", "the", "-r", "and").out)
    t.ok("--ban-string with --stop", "the" not in one["text"] and "and" not in one["text"], one)
    one = json.loads(t.run(*base, "--grammar", 'root ::= "cat" | "dog"', "--ban-string", "cat").out)
    t.ok("--ban-string with --grammar", one["text"] == "dog" and one["stop"] == "end", one)
    one = json.loads(t.run(*base, "--grammar", 'root ::= "cat" | "cats"', "--ban-string", "cat").out)
    t.ok("--ban-string: nothing is left", one["stop"] == "blocked" and "cat" not in one["text"], one)
    one = json.loads(t.run(*base, "--temp", 0, "--ban-string", "the", "--spec", "ngram:2").out)
    two = json.loads(t.run(*base, "--temp", 0, "--ban-string", "the").out)
    t.ok("--ban-string with guesses", one["text"] == two["text"], f"{one} {two}")
    r = t.run(*base, "--ban-string", "")
    t.ok("refused: empty ban", r.code not in (0, 139) and "bans[0]" in r.err, r.err)


def main():
    t, _, _ = arguments()
    for part, args in ((check_ranges, ()), (check_order, ()), (check_logprobs, ()), (check_grammar, ()),
                       (check_texts, ()), (check_bans, ())):
        start = time.monotonic()
        try:
            part(t, *args)
        except (OSError, KeyError, TypeError, ValueError, IndexError) as e:
            t.ok(part.__name__, False, f"{type(e).__name__}: {e}")
        print(f"{part.__name__}: {time.monotonic() - start:.1f} s", flush=True)
    return t.done()


sys.exit(main())
