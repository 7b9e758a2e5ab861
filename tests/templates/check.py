# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""The expected texts of this folder are what Jinja2 makes of the templates. Without that package: SKIP
(77)."""
import datetime
import json
import os
import sys

try:
    import jinja2
    import jinja2.ext
except ImportError:
    print("SKIP: the Python package jinja2 is not installed")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))


class Generation(jinja2.ext.Extension):
    """{% generation %}: marks what a model says, for training; prints its body."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("show"), [], [], body).set_lineno(line)

    def show(self, caller):
        return caller()


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    env = jinja2.Environment(trim_blocks=True, lstrip_blocks=True,
                             extensions=["jinja2.ext.loopcontrols", "jinja2.ext.do", Generation])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = datetime.datetime(2025, 7, 24).strftime
    return env


def render(env, case, variables):
    source = case["template"]
    if source.endswith(".jinja"):
        with open(os.path.join(HERE, source), encoding="utf-8", newline="") as f:
            source = f.read()
    return env.from_string(source).render(**json.loads(json.dumps(case.get("variables", variables))))


def main():
    env, n, failed = environment(), 0, 0
    for name in ("features.json", "conversations.json"):
        with open(os.path.join(HERE, name), encoding="utf-8") as f:
            data = json.load(f)
        for case in data["cases"]:
            n += 1
            try:
                got = render(env, case, data.get("variables"))
            except Exception as e:  # whatever it is, an expected failure or not
                got = None
                why = str(e)
            if got != case.get("want"):
                failed += 1
                print(f"{name}: {case['template']!r}\n  got  {got!r}\n  want {case.get('want')!r}"
                      + (f"\n  {why}" if got is None else ""))
    print(f"{n - failed} passed, {failed} failed")
    return failed > 0 or n == 0


sys.exit(main())
