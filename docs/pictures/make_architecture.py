# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/pictures/architecture.svg: the way of a token from the file to the text. Standard library only.

    python3 docs/pictures/make_architecture.py        writes the picture beside this script
    python3 docs/pictures/make_architecture.py -      writes it to standard output, for the docs test

The names of the passes come from graph/passes.def. A text that does not fit its box is an error.
"""
import os
import re
import sys
from xml.sax.saxutils import escape

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WIDTH, MARGIN, COLUMNS, GAP = 1000, 24, 4, 36
BOX_W = (WIDTH - 2 * MARGIN - 24 - (COLUMNS - 1) * GAP) // COLUMNS
BOX_H, LINE, PAD = 98, 18, 11
HEAD = 34         # height of the title of a band
BETWEEN = 40      # between bands: arrows turn there
ROW_GAP = 44      # between two rows of one band
TITLE_W, TEXT_W, MONO_W = 8.0, 6.9, 7.3  # width of a character, px, on the safe side

STYLE = """
text { font-family: 'DejaVu Sans', Verdana, sans-serif; fill: #1f2933; }
.band { font-size: 15px; font-weight: bold; fill: #52606d; }
.title { font-size: 14px; font-weight: bold; }
.text { font-size: 13px; }
.note { font-size: 13px; fill: #52606d; }
.path { font-size: 12px; font-family: 'DejaVu Sans Mono', Menlo, monospace; fill: #52606d; }
.arrow { fill: none; stroke: #52606d; stroke-width: 1.6; }
"""
PREPARED = ("Everything is allocated here. A step then only writes its",
            "inputs and submits the executable again.")
LAYERS = {  # fill, border
    "file": ("#ffffff", "#8a8a8a"),
    "core": ("#eceff1", "#78909c"),
    "graph": ("#e3f2fd", "#4a90c2"),
    "models": ("#e8f5e9", "#5a9e5f"),
    "backends": ("#fff3e0", "#d0892b"),
}


def passes():
    with open(os.path.join(ROOT, "graph", "passes.def"), encoding="utf-8") as f:
        return re.findall(r"^TN_PASS\((\w+)", f.read(), re.M)


def bands():
    """Per band: title, rows; per row four boxes or None: layer, title, lines of text, path."""
    names = passes()
    half = (len(names) + 1) // 2
    listed = [", ".join(names[:half]) + ",", ", ".join(names[half:])]
    return [
        ("Once per model: open the file", [[
            ("file", "model.gguf", ["keys and tensors", "of one model"], ""),
            ("models", "GGUF reader", ["maps the file, checks", "every offset and count"], "models/gguf/"),
            ("models", "tn_model", ["configuration, weights,", "tokenizer, template"], "models/model.c"),
            ("models", "Weights", ["views of the mapped file,", "or copies on a device"], "models/weights/"),
        ]]),
        ("Once per shape of a step: plan", [[
            ("models", "Decoder", ["records one forward pass,", "layer by layer"], "models/decoder.c"),
            ("graph", "tn_graph", ["nodes in one arena, their", "shapes are checked"], "graph/record.c"),
            ("graph", "Passes", listed, "graph/passes.def"),
            ("graph", "tn_plan", ["steps, devices, kernels,", "places in the arenas"], "graph/plan.c"),
        ]]),
        ("Once per plan of a session: prepare", [[
            None,
            None,
            ("backends", "tn_executable", ["step list, CUDA graph or", "Vulkan command buffer"],
             "core/backend.h"),
            ("graph", "tn_runner", ["binds weights, cache,", "inputs and arenas"], "graph/run.c"),
        ]]),
        ("For every token: run", [[
            ("models", "Prompt to token ids", ["chat template,", "tokenizer"], "models/text/"),
            ("models", "tn_session", ["cache blocks, and the", "inputs of this step"],
             "models/run/session.c"),
            ("core", "Submit and wait", ["the same executable", "for each step"], "core/backend.h"),
            ("backends", "Kernels", ["of the CPU, of CUDA", "or of Vulkan"], "backends/"),
        ], [
            ("models", "Token id to text", ["bytes, held back until", "complete"], "models/text/tokenizer/"),
            ("models", "tn_generation", ["grammar, stop strings,", "speculation"],
             "models/run/generation.c"),
            ("models", "Sampler", ["selects one token,", "or takes the argmax"], "models/run/sampling/"),
            ("graph", "Outputs", ["the argmax; logits when", "somebody asks for them"], "graph/run.c"),
        ]]),
    ]


def text(x, y, content, style, anchor="start"):
    return f'<text x="{x:g}" y="{y:g}" class="{style}" text-anchor="{anchor}">{escape(content)}</text>'


def box(x, y, layer, title, lines, path):
    for content, width in [(title, TITLE_W), (path, MONO_W)] + [(line, TEXT_W) for line in lines]:
        if len(content) * width > BOX_W - 2 * PAD:
            sys.exit(f"make_architecture.py: '{content}' does not fit its box")
    if not os.path.exists(os.path.join(ROOT, path)):
        sys.exit(f"make_architecture.py: {path}, named in the box '{title}', does not exist")
    fill, border = LAYERS[layer]
    out = [f'<rect x="{x:g}" y="{y:g}" width="{BOX_W}" height="{BOX_H}" rx="6" '
           f'fill="{fill}" stroke="{border}"/>']
    out.append(text(x + PAD, y + 22, title, "title"))
    out += [text(x + PAD, y + 43 + i * LINE, line, "text") for i, line in enumerate(lines)]
    out.append(text(x + PAD, y + 87, path, "path"))
    return out


def arrow(*points):
    where = " ".join(f"{x:g},{y:g}" for x, y in points)
    return f'<polyline points="{where}" class="arrow" marker-end="url(#head)"/>'


def layout():
    """Top of each band, its height, and the top of each row."""
    y, out = 20, []
    for _, rows in bands():
        height = HEAD + len(rows) * BOX_H + (len(rows) - 1) * ROW_GAP + 14
        out.append((y, height, [y + HEAD + i * (BOX_H + ROW_GAP) for i in range(len(rows))]))
        y += height + BETWEEN
    return out


def column(i):
    return MARGIN + 12 + i * (BOX_W + GAP)


def middle(i):
    return column(i) + BOX_W / 2


def arrows(places):
    out = []
    rows = [top for _, _, tops in places for top in tops]  # model, plan, prepare, run, results
    def right(row, i):
        y = rows[row] + BOX_H / 2
        out.append(arrow((column(i) + BOX_W + 2, y), (column(i + 1) - 3, y)))
    def left(row, i):
        y = rows[row] + BOX_H / 2
        out.append(arrow((column(i) - 2, y), (column(i - 1) + BOX_W + 3, y)))
    for row in (0, 1, 3):
        for i in range(COLUMNS - 1):
            right(row, i)
    left(2, 3)
    for i in (3, 2, 1):
        left(4, i)
    turn = places[1][0] - BETWEEN / 2
    beside, enter = MARGIN / 2, rows[1] + BOX_H / 2
    out.append(arrow((middle(2), rows[0] + BOX_H + 2), (middle(2), turn), (beside, turn), (beside, enter),
                     (column(0) - 3, enter)))
    out.append(arrow((middle(3), rows[1] + BOX_H + 2), (middle(3), rows[2] - 3)))
    out.append(arrow((middle(2), rows[2] + BOX_H + 2), (middle(2), rows[3] - 3)))
    out.append(arrow((middle(3), rows[3] + BOX_H + 2), (middle(3), rows[4] - 3)))
    out.append(arrow((middle(1), rows[4] - 2), (middle(1), rows[3] + BOX_H + 3)))
    for i, line in enumerate(PREPARED):
        out.append(text(column(0), rows[2] + 36 + i * LINE, line, "note"))
    out.append(text(middle(1) + 10, rows[4] - ROW_GAP / 2 + 5, "next token", "note"))
    out.append(text(middle(3) - 10, rows[4] - ROW_GAP / 2 + 5, "small results copied back", "note", "end"))
    return out


def legend(y):
    out, x = [text(MARGIN, y + 14, "Layer:", "note")], MARGIN + 62
    for name, (fill, border) in LAYERS.items():
        if name == "file":
            continue
        out.append(f'<rect x="{x}" y="{y}" width="18" height="18" rx="3" fill="{fill}" stroke="{border}"/>')
        out.append(text(x + 25, y + 14, name + "/", "note"))
        x += 118
    return out


def picture():
    places = layout()
    height = places[-1][0] + places[-1][1] + 50
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
           f'width="{WIDTH}" height="{height}">',
           "<!-- Made by docs/pictures/make_architecture.py -->",
           "<title>The way of a token through tenon</title>",
           f"<style>{STYLE}</style>",
           '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
           'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#52606d"/></marker></defs>',
           f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>']
    for (title, rows), (top, band_height, tops) in zip(bands(), places):
        out.append(f'<rect x="{MARGIN}" y="{top}" width="{WIDTH - 2 * MARGIN}" height="{band_height}" rx="8" '
                   'fill="#fafbfc" stroke="#d5dae0"/>')
        out.append(text(MARGIN + 12, top + 23, title, "band"))
        for row, y in zip(rows, tops):
            for i, content in enumerate(row):
                if content:
                    out += box(column(i), y, *content)
    out += arrows(places) + legend(height - 34) + ["</svg>"]
    return "\n".join(out) + "\n"


def main():
    if sys.argv[1:] == ["-"]:
        sys.stdout.write(picture())
        return
    with open(os.path.join(HERE, "architecture.svg"), "w", encoding="utf-8", newline="\n") as f:
        f.write(picture())


if __name__ == "__main__":
    main()
