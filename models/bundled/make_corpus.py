# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the training text and the held-out text of the bundled model.

    python3 make_corpus.py --out DIR [--mb 400] [--jobs 16] [--seed 1]

DIR/train_NNN.txt  documents, each followed by <|endoftext|>; conversations carry ChatML markers
DIR/heldout.txt    about 200 KB of plain text (no markers), made from seeds that training never uses
DIR/heldout_chat.txt  conversations in the same form as the training text

Every byte is made here from the tables and templates of the corpus_*.py files: no other text is
used. A shard depends on (seed, shard number) only, not on the number of processes.
"""

import argparse
import multiprocessing
import os

from corpus_chat import conversation, description, page
from corpus_grammar import Writer
from corpus_stories import make_story

END = "<|endoftext|>"
SHARDS = 64  # fixed, so that the text is the same for every --jobs

# A held-out seed is never the seed of a training shard: the two ranges do not meet.
TRAIN_SEED_STEP = 1000
HELDOUT_SEED_OFFSET = 900


def plain_story(w):
    x = w.random()
    separator = "\n" if x < 0.6 else "\n\n" if x < 0.85 else " "
    return separator.join(make_story(w)["paragraphs"])


def plain_document(w):
    x = w.random()
    if x < 0.72:
        return plain_story(w)
    if x < 0.88:
        return page(w)
    return description(w)


def chatml(system, turns):
    out = []
    if system:
        out.append(f"<|im_start|>system\n{system}<|im_end|>\n")
    for user, assistant in turns:
        out.append(f"<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n{assistant}<|im_end|>\n")
    return "".join(out)


def document(w):
    x = w.random()
    if x < 0.62:
        return chatml(*conversation(w))
    if x < 0.93:
        return plain_document(w)
    # Several texts in a row, as in a file: the form of the held-out text.
    return "\n\n".join(plain_document(w) for _ in range(w.between(2, 5)))


def write_shard(job):
    path, seed, limit = job
    w = Writer(seed)
    size = 0
    with open(path, "w", encoding="ascii", newline="\n") as f:
        while size < limit:
            text = document(w) + END
            f.write(text)
            size += len(text)
    return size


def write_heldout(out, seed):
    w = Writer(seed * TRAIN_SEED_STEP + HELDOUT_SEED_OFFSET)
    parts, size = [], 0
    while size < 200_000:
        parts.append(plain_document(w))
        size += len(parts[-1]) + 2
    with open(os.path.join(out, "heldout.txt"), "w", encoding="ascii", newline="\n") as f:
        f.write("\n\n".join(parts) + "\n")
    w = Writer(seed * TRAIN_SEED_STEP + HELDOUT_SEED_OFFSET + 1)
    with open(os.path.join(out, "heldout_chat.txt"), "w", encoding="ascii", newline="\n") as f:
        for _ in range(600):
            f.write(chatml(*conversation(w)) + END)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--mb", type=float, default=400, help="megabytes of training text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    write_heldout(args.out, args.seed)
    limit = int(args.mb * 1e6 / SHARDS)
    jobs = [
        (
            os.path.join(args.out, f"train_{i:03d}.txt"),
            args.seed * TRAIN_SEED_STEP + i,
            limit,
        ) for i in range(SHARDS)
    ]
    with multiprocessing.Pool(args.jobs) as pool:
        total = sum(pool.imap_unordered(write_shard, jobs))
    print(f"{total / 1e6:.1f} MB in {SHARDS} shards")


if __name__ == "__main__":
    main()
