# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/pictures/servers.svg: rules of balancers over the number of servers. Standard library only.

    build/tests/test_servers 1 3 10 30 100 300 >servers.txt                      some minutes
    build/tests/test_servers plain bound-2 bound-1.25 1000 >>servers.txt          some more
    python3 docs/pictures/make_servers.py servers.txt               writes the picture beside this script
"""
import math
import os
import sys
from xml.sax.saxutils import escape

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, PANEL_W, PANEL_H = 1060, 258, 230
LEFT, TOP, GAP_X, GAP_Y = 60, 124, 84, 104
HEIGHT = TOP + 2 * PANEL_H + GAP_Y + 58
RULES = {  # name of the table: colour, dashes, words of the legend
    "plain": ("#c0392b", "", "consistent hashing"),
    "bound-2": ("#1f6fb2", "", "bound of 2 x mean"),
    "bound-1.25": ("#2e8b57", "", "bound of 1.25 x mean"),
    "in-turn": ("#7f8c8d", "6 4", "in turn"),
    "least": ("#8e44ad", "2 4", "least in work"),
}
ROWS = {"conversations": "Keys: an id of each conversation",
        "documents": "Keys: the first block; some documents are asked for much more often"}
HITS = [0, .2, .4, .6, .8]
LOADS = [1, 2, 5, 10, 20, 50, 100, 200, 500]
TIMES = [10, 100, 1000, 10000, 100000]  # milliseconds, a logarithmic scale
STYLE = """
text { font-family: 'DejaVu Sans', Verdana, sans-serif; fill: #1f2933; font-size: 13px; }
.title { font-size: 15px; font-weight: bold; }
.panel { font-size: 14px; }
.grid { stroke: #dde3e8; stroke-width: 1; }
.frame { stroke: #52606d; stroke-width: 1.2; fill: none; }
"""


def read(path):
    """By rule and keys: rows of servers, hits, fullest, first p50, first p99 (milliseconds)."""
    series = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            cells = line.split()
            if len(cells) == 10 and cells[0] in RULES and cells[2] == "-":
                series.setdefault((cells[0], cells[1]), []).append([float(c) for c in cells[3:8]])
    return series


def text(x, y, words, anchor="start", kind=""):
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{kind}>{escape(words)}</text>'


class Panel:
    def __init__(self, x, y, n_most, ticks, log):
        self.x, self.y, self.n_most, self.ticks, self.log = x, y, n_most, ticks, log

    def at(self, n, value):
        low, high = (math.log(t) if self.log else t for t in (self.ticks[0], self.ticks[-1]))
        value = math.log(max(value, self.ticks[0])) if self.log else value
        return (self.x + PANEL_W * math.log(n) / math.log(self.n_most),
                self.y + PANEL_H * (1 - (value - low) / (high - low)))

    def frame(self, title, form):
        out = [f'<rect class="frame" x="{self.x}" y="{self.y}" width="{PANEL_W}" height="{PANEL_H}"/>',
               text(self.x, self.y - 10, title, kind="panel")]
        for tick in self.ticks:
            _, y = self.at(1, tick)
            out.append(f'<line class="grid" x1="{self.x}" x2="{self.x + PANEL_W}" '
                       f'y1="{y:.1f}" y2="{y:.1f}"/>')
            out.append(text(self.x - 8, y + 4, form(tick), "end"))
        for n in (1, 10, 100, 1000):
            if n <= self.n_most:
                x, _ = self.at(n, self.ticks[0])
                out.append(text(x, self.y + PANEL_H + 18, str(n), "middle"))
        out.append(text(self.x + PANEL_W / 2, self.y + PANEL_H + 36, "servers", "middle"))
        return out

    def curve(self, rule, points):
        colour, dashes, _ = RULES[rule]
        where = [self.at(n, value) for n, value in points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in where)
        out = [f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2.2" '
               f'stroke-dasharray="{dashes}"/>']
        return out + [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in where]


def legend():
    out, x = [], LEFT
    for colour, dashes, words in RULES.values():
        out.append(f'<line x1="{x}" x2="{x + 28}" y1="44" y2="44" stroke="{colour}" stroke-width="2.6" '
                   f'stroke-dasharray="{dashes}"/>')
        out.append(text(x + 34, 48, words))
        x += 62 + 7.4 * len(words)
    return out


def draw(series):
    most = max(row[0] for rows in series.values() for row in rows)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
           f'height="{HEIGHT}">', f"<style>{STYLE}</style>",
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
           text(LEFT, 24, "How a balancer chooses the server of a request, simulated", kind="title")]
    out += legend()
    for i, (keys, words) in enumerate(ROWS.items()):
        y = TOP + i * (PANEL_H + GAP_Y)
        panels = [Panel(LEFT + k * (PANEL_W + GAP_X), y, most, ticks, k > 0)
                  for k, ticks in enumerate((HITS, LOADS, TIMES))]
        out += panels[0].frame("Share of prompt tokens in the cache", lambda v: f"{v:g}")
        out += panels[1].frame("Requests of the fullest server / mean", lambda v: f"{v:g}")
        out += panels[2].frame("First token, 99th percentile",
                               lambda v: f"{v:g} ms" if v < 1e3 else f"{v / 1e3:g} s")
        out.append(text(LEFT, y - 34, words, kind="title"))
        for rule in RULES:
            rows = series.get((rule, keys), [])
            out += panels[0].curve(rule, [(row[0], row[1]) for row in rows])
            for panel, column in zip(panels[1:], (2, 4)):
                out += panel.curve(rule, [(row[0], row[column]) for row in rows])
    return "\n".join(out + ["</svg>\n"])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(os.path.join(HERE, "servers.svg"), "w", encoding="utf-8") as f:
        f.write(draw(read(sys.argv[1])))


main()
