# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Template expansion for the corpus of the bundled model.

A template is plain text with two constructs:

    [one|two|three]   a choice, may be nested, an empty branch is allowed
    {key}             a value from the state of the story; {a key} puts "a" or "an" before it,
                      {Key} is the value of "key" with a capital first letter

Templates are compiled once and walked many times: the corpus needs hundreds of megabytes, so an
expansion must cost microseconds. The walk draws from `random.random` only, which keeps a shard a
pure function of its seed.
"""

import random
import re
from functools import lru_cache

_VOWEL_SOUND = re.compile(r"^(?:[aeiou]|hour|honest)", re.I)
_CONSONANT_SOUND = re.compile(r"^(?:uni|use|one|eu)", re.I)


def article(noun):
    """noun phrase without article -> "a red ball", "an old map", "a unicorn"."""
    if _CONSONANT_SOUND.match(noun):
        return "a " + noun
    return ("an " if _VOWEL_SOUND.match(noun) else "a ") + noun


def cap(text):
    return text[:1].upper() + text[1:]


def _parse_sequence(text, pos, in_choice):
    """Parses up to the end of text, or to a '|' or ']' when inside a choice."""
    parts, literal = [], []

    def flush():
        if literal:
            parts.append("".join(literal))
            literal.clear()

    while pos < len(text):
        ch = text[pos]
        if in_choice and ch in "|]":
            break
        if ch == "[":
            flush()
            branches = []
            pos += 1
            while True:
                branch, pos = _parse_sequence(text, pos, True)
                branches.append(branch)
                if pos >= len(text):
                    raise ValueError("unclosed [ in template: " + text)
                pos += 1
                if text[pos - 1] == "]":
                    break
            parts.append((None, branches))
        elif ch == "{":
            flush()
            end = text.index("}", pos)
            key = text[pos + 1 : end]
            wants_article = key.startswith("a ")
            parts.append((key[2:] if wants_article else key, wants_article))
            pos = end + 1
        else:
            literal.append(ch)
            pos += 1
    flush()
    return parts, pos


@lru_cache(maxsize=None)
def _compiled(template):
    return _parse_sequence(template, 0, False)[0]


class Writer:
    """One random stream with the few drawing operations the corpus uses."""

    def __init__(self, seed):
        self.random = random.Random(seed).random

    def pick(self, seq):
        return seq[int(self.random() * len(seq))]

    def chance(self, p):
        return self.random() < p

    def between(self, lo, hi):
        """Uniform integer, both ends included."""
        return lo + int(self.random() * (hi - lo + 1))

    def some(self, seq, n):
        """n distinct values of seq, in random order."""
        pool = list(seq)
        out = []
        for _ in range(n):
            k = int(self.random() * len(pool))
            out.append(pool[k])
            pool[k] = pool[-1]
            pool.pop()
        return out

    def other(self, seq, *taken):
        """A value of seq that is none of `taken`."""
        while True:
            value = self.pick(seq)
            if value not in taken:
                return value

    def say(self, template, state=None):
        out = []
        self._walk(_compiled(template), state, out)
        return "".join(out)

    def _walk(self, parts, state, out):
        for part in parts:
            if part.__class__ is str:
                out.append(part)
            elif part[0] is None:
                branches = part[1]
                self._walk(branches[int(self.random() * len(branches))], state, out)
            else:
                key, wants_article = part
                value = state.get(key)
                if value is None:
                    value = cap(state[key[0].lower() + key[1:]])
                out.append(article(value) if wants_article else value)


# A sentence starts after . ! ? and blanks, after a quotation that ended with a full stop, at the
# start of a line and behind an opening quotation mark. `?" asked Mia` must stay lower case.
_SENTENCE_START = re.compile(r'(?:(?<=[.!?] )|(?<=\." )|(?<=\n)|(?<=\s")|(?<=^")|^)[a-z]')


def tidy(text):
    """Capital letters at sentence starts, single blanks: templates need not care about either."""
    text = text.replace("  ", " ").replace(" \n", "\n").replace("\n ", "\n").strip()
    return _SENTENCE_START.sub(lambda m: m.group().upper(), text)
