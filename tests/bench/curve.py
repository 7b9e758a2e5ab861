# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the time of a decode step over the number of sequences, and names its cliffs. Standard library only.

    python3 tests/bench/curve.py curve.csv [--svg curve.svg] [--caption TEXT]

The file has the columns type, sequences, tokens_per_second, spread, as h200.sh writes them. A cliff is a step
down in tokens per second, or a step of time above 1.3 times that of the number of sequences before. Exit
status: 0 without cliffs, 1 with some.
"""
import argparse
import csv
import math
import sys
from xml.sax.saxutils import escape

STEP_UP = 1.3   # most that a step may take, compared with the number of sequences before
NOISE = 0.02    # a step down within this is none: cards and runs differ by that much
WIDTH, LEFT, RIGHT, PANEL, GAP, TOP = 1000, 70, 120, 390, 76, 70
COLORS = ("#0072b2", "#d55e00", "#009e73", "#8a5fbf", "#b8860b", "#333333", "#3fa0d8", "#c2558f")
CLIFF = "#d00000"
LABEL = 15      # height of a label, px
STYLE = """
text { font-family: 'DejaVu Sans', Verdana, sans-serif; font-size: 13px; fill: #1f2933; }
.title { font-size: 17px; font-weight: bold; }
.panel { font-size: 14px; font-weight: bold; }
.note { fill: #52606d; }
.grid { stroke: #dfe4e8; stroke-width: 1; }
.axis { stroke: #8a949e; stroke-width: 1.2; fill: none; }
"""


def read_csv(path):
    """type -> [(sequences, tokens per second, spread)], by the number of sequences."""
    lines = {}
    with open(path, encoding="utf-8", newline="") as f:
        for r in csv.DictReader(f):
            point = int(r["sequences"]), float(r["tokens_per_second"]), float(r["spread"])
            lines.setdefault(r["type"], []).append(point)
    return {kind: sorted(points) for kind, points in lines.items()}


def write_csv(path, lines):
    with open(path, "w", encoding="utf-8", newline="") as f:
        out = csv.writer(f)
        out.writerow(["type", "sequences", "tokens_per_second", "spread"])
        for kind, points in lines.items():
            out.writerows([kind, *p] for p in points)


def cliffs(points):
    """[(index, text)] of the points that are worse than the point before allows."""
    found = []
    for i in range(1, len(points)):
        (n0, rate0, _), (n, rate, _) = points[i - 1:i + 1]
        time0, time = n0 / rate0, n / rate
        if rate < rate0 * (1 - NOISE):
            found.append((i, f"{n} sequences give {rate:.0f} t/s, {n0} give {rate0:.0f}"))
        # Over a gap in the list time may grow with the sequences; a step down is found above.
        elif time > time0 * max(STEP_UP, n / n0 if n > n0 + 1 else 1):
            found.append((i, f"a step of {n} sequences takes {time * 1e3:.2f} ms, "
                             f"{time / time0:.2f} times that of {n0}"))
    return found


def faults(lines):
    return [f"{kind}: {text}" for kind, points in lines.items() for _, text in cliffs(points)]


# --- drawing ---------------------------------------------------------------------------------------------

def ticks(low, high):
    """Values at 1, 2 and 5 times powers of ten within [low, high]."""
    out = []
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        out += [m * 10.0 ** power for m in (1, 2, 5) if low <= m * 10.0 ** power <= high]
    return out


def note(x, y, text, anchor):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="note" text-anchor="{anchor}">{escape(str(text))}</text>'


def circle(x, y, radius, form):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" {form}/>'


class Panel:
    """A pair of logarithmic axes."""

    def __init__(self, top, title, x_range, values):
        self.top, self.title, self.x_range = top, title, x_range
        self.low, self.high = min(values) / 1.12, max(values) * 1.12

    def x(self, n):
        low, high = self.x_range
        share = math.log(n / low) / math.log(high / low) if high > low else 0.5
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        return self.top + PANEL * (1 - math.log(value / self.low) / math.log(self.high / self.low))

    def frame(self):
        right, bottom = WIDTH - RIGHT, self.top + PANEL
        out = [f'<text x="{LEFT}" y="{self.top - 12}" class="panel">{escape(self.title)}</text>']
        for value in ticks(self.low, self.high):
            y = self.y(value)
            out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" class="grid"/>')
            out.append(note(LEFT - 8, y + 4, f"{value:,g}", "end"))
        n = 1
        while n <= self.x_range[1]:
            if n >= self.x_range[0]:
                x = self.x(n)
                out.append(f'<line x1="{x:.1f}" y1="{self.top}" x2="{x:.1f}" y2="{bottom}" class="grid"/>')
                out.append(note(x, bottom + 19, n, "middle"))
            n *= 2
        out.append(f'<path d="M{LEFT} {self.top}V{bottom}H{right}" class="axis"/>')
        return out

    def line(self, points, color, marked):
        """points: (sequences, value); marked: indices of cliffs."""
        path = " ".join(f"{self.x(n):.1f},{self.y(v):.1f}" for n, v in points)
        out = [f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.8"/>']
        if len(points) <= 64:
            out += [circle(self.x(n), self.y(v), 2, f'fill="{color}"') for n, v in points]
        ring = f'fill="none" stroke="{CLIFF}" stroke-width="1.6"'
        out += [circle(self.x(points[i][0]), self.y(points[i][1]), 6, ring) for i in marked]
        return out

    def labels(self, ends):
        """Names at the right ends of the lines, moved apart: (name, color, sequences, value)."""
        out, last = [], -math.inf
        places = []
        for name, color, n, value in sorted(ends, key=lambda e: self.y(e[3])):
            last = max(self.y(value), last + LABEL)
            places.append((name, color, n, value, last))
        over = max(0, last - (self.top + PANEL))  # the lowest ones move up again
        for i in range(len(places) - 1, -1, -1):
            name, color, n, value, y = places[i]
            y = min(y, self.top + PANEL - LABEL * (len(places) - 1 - i)) if over else y
            x = self.x(n)
            end = WIDTH - RIGHT + 22
            out.append(f'<path d="M{x + 3:.1f} {self.y(value):.1f}L{end} {y:.1f}" stroke="{color}" '
                       f'stroke-width="0.8" fill="none"/>')
            out.append(f'<text x="{end + 4}" y="{y + 4:.1f}" style="fill:{color}">{escape(name)}</text>')
        return out


def draw(lines, caption):
    """The picture as SVG: above the time per step, below tokens per second."""
    counts = [n for points in lines.values() for n, _, _ in points]
    x_range = min(counts), max(counts)
    series = (("Time of a step, ms", lambda n, rate: 1e3 * n / rate),
              ("Tokens per second, all sequences together", lambda n, rate: rate))
    height = TOP + 2 * PANEL + GAP + 84
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}">',
           f"<style>{STYLE}</style>", f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
           f'<text x="{LEFT}" y="28" class="title">Decoding 1 to {x_range[1]} sequences</text>']
    for k, (title, value_of) in enumerate(series):
        values = [value_of(n, rate) for points in lines.values() for n, rate, _ in points]
        panel, ends = Panel(TOP + k * (PANEL + GAP), title, x_range, values), []
        out += panel.frame()
        for i, (kind, points) in enumerate(lines.items()):
            color = COLORS[i % len(COLORS)]
            pairs = [(n, value_of(n, rate)) for n, rate, _ in points]
            out += panel.line(pairs, color, [at for at, _ in cliffs(points)])
            ends.append((kind, color, *pairs[-1]))
        out += panel.labels(ends)
    bottom = TOP + 2 * PANEL + GAP + 44
    out.append(note((LEFT + WIDTH - RIGHT) / 2, bottom, "sequences decoded at once", "middle"))
    out.append(note(LEFT, bottom + 25, caption, "start"))
    found = len(faults(lines))
    text = "no cliffs" if found == 0 else f"{found} cliff{'' if found == 1 else 's'} (ringed)"
    out.append(f'<text x="{WIDTH - RIGHT}" y="{bottom + 25}" text-anchor="end" '
               f'style="fill:{CLIFF if found else "#52606d"}">{text}</text>')
    return "\n".join(out) + "\n</svg>\n"


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("csv")
    p.add_argument("--svg")
    p.add_argument("--caption", default="")
    a = p.parse_args()
    lines = read_csv(a.csv)
    if not lines:
        sys.exit(f"{a.csv}: no points")
    if a.svg:
        with open(a.svg, "w", encoding="utf-8") as f:
            f.write(draw(lines, a.caption))
    found = faults(lines)
    print("\n".join(found) if found else "no step down, no step above 1.3 times the one before")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
