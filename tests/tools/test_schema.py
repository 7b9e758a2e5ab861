# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Random JSON schemas: what the bundled model writes for them at temperature 1 is valid, whenever it comes to
an end.

    test_schema.py TENON [--quick] [--count N] [--seed N]

The validator here knows nothing of the library: it reads the schema and the text.
"""
import json
import random
import re
import sys

from cli import arguments


# --- validator -------------------------------------------------------------------------------------------

def same(a, b):
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None:
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return (type(a) in (int, float) and type(b) in (int, float) and a == b
            or isinstance(a, str) and isinstance(b, str) and a == b)


def is_type(v, name):
    number = isinstance(v, (int, float)) and not isinstance(v, bool)
    return {"null": v is None, "boolean": isinstance(v, bool), "string": isinstance(v, str),
            "array": isinstance(v, list),
            "object": isinstance(v, dict), "number": number,
            "integer": number and float(v).is_integer()}[name]


DATE = r"(\d{4})-(\d\d)-(\d\d)"
TIME = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)"


def is_date(text):
    m = re.fullmatch(DATE, text)
    if not m:
        return False
    year, month, day = map(int, m.groups())
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= month <= 12 and 1 <= day <= [31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30,
                                             31][month - 1]


FORMATS = {"date": is_date, "time": lambda x: bool(re.fullmatch(TIME, x)),
           "date-time": lambda x: is_date(x[:10]) and x[10:11] == "T" and bool(re.fullmatch(TIME, x[11:])),
           "uuid": lambda x: bool(re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", x))}


def valid(v, s, root):
    """Whether the value satisfies the schema."""
    if isinstance(s, bool):
        return s
    if "$ref" in s:
        target = root
        for step in s["$ref"].split("/")[1:]:
            target = target[step]
        if not valid(v, target, root):
            return False
    types = s.get("type", [])
    types = [types] if isinstance(types, str) else types
    checks = [not types or any(is_type(v, t) for t in types),
              "enum" not in s or any(same(v, x) for x in s["enum"]),
              "const" not in s or same(v, s["const"]),
              all(valid(v, x, root) for x in s.get("allOf", [])),
              "anyOf" not in s or any(valid(v, x, root) for x in s["anyOf"]),
              "oneOf" not in s or sum(valid(v, x, root) for x in s["oneOf"]) == 1]
    if isinstance(v, str):
        checks += [s.get("minLength", 0) <= len(v) <= s.get("maxLength", len(v)),
                   "pattern" not in s or bool(re.search(s["pattern"], v)),
                   "format" not in s or FORMATS[s["format"]](v)]
    elif is_type(v, "number"):
        checks += [v >= s.get("minimum", v), v <= s.get("maximum", v),
                   "exclusiveMinimum" not in s or v > s["exclusiveMinimum"],
                   "exclusiveMaximum" not in s or v < s["exclusiveMaximum"]]
    elif isinstance(v, list):
        prefix = s.get("prefixItems", [])
        checks += [s.get("minItems", 0) <= len(v) <= s.get("maxItems", len(v)),
                   all(valid(x, p, root) for x, p in zip(v, prefix)),
                   all(valid(x, s.get("items", True), root) for x in v[len(prefix):])]
    elif isinstance(v, dict):
        named = s.get("properties", {})
        checks += [all(k in v for k in s.get("required", [])),
                   all(valid(v[k], named[k], root) for k in v if k in named),
                   all(valid(v[k], s.get("additionalProperties", True), root) for k in v if k not in named)]
    return all(checks)


def check_validator(t):
    yes = [({"type": "integer"}, 3), ({"type": "integer"}, 3.0),
           ({"oneOf": [{"type": "null"}, {"const": 1}]}, 1), ({"format": "date"}, "2024-02-29"),
           ({"prefixItems": [{"const": 1}], "items": {"const": 2}}, [1, 2, 2]),
           ({"additionalProperties": {"type": "null"}, "properties": {"a": {}}}, {"a": 1, "b": None})]
    no = [({"type": "integer"}, True), ({"const": 1}, True), ({"oneOf": [{}, {"const": 1}]}, 1),
          ({"format": "date"}, "2023-02-29"), ({"maxLength": 1}, "ab"),
          ({"prefixItems": [{"const": 1}], "items": {"const": 2}}, [1, 1]),
          ({"additionalProperties": {"type": "null"}}, {"b": 1}), ({"required": ["a"]}, {}),
          ({"pattern": "^a"}, "ba"), ({"exclusiveMinimum": 1}, 1), ({"minItems": 1}, []),
          ({"enum": [[1]]}, [2])]
    t.ok("validator", all(valid(v, s, s) for s, v in yes) and not any(valid(v, s, s) for s, v in no), "")


# --- generator -------------------------------------------------------------------------------------------

PATTERNS = ["^[a-z]{2,5}$", r"^\d{3}-\d{4}$", "^(cat|dog)s?$", r"^[^\"\\]{1,6}$", r"^\w+@\w+\.(com|org)$",
            "ab+", r"^\S.\s?$", "^\u00e9[\u00e0-\u00ef]*$|^x$",
            r"^(?:[A-Z][a-z]*){1,3}$"]
KEYS = ["name", "age", "a", "ab", "abc", "x y", "\u00e9t\u00e9", "q\"uote", "back\\slash", "", "type"]


def random_value(r, depth=0):
    kinds = ["null", "bool", "int", "text"] + (["list", "dict"] if depth < 2 else [])
    kind = r.choice(kinds)
    if kind == "list":
        return [random_value(r, depth + 1) for _ in range(r.randrange(3))]
    if kind == "dict":
        return {k: random_value(r, depth + 1) for k in r.sample(KEYS, r.randrange(3))}
    return {"null": None, "bool": r.random() < 0.5, "int": r.randrange(-50, 1000),
            "text": r.choice(["red", "a\nb", "\u00fc\"", "", "\U0001f600", "/"])}[kind]


def random_string(r):
    kind = r.randrange(5)
    if kind == 0:
        return {"pattern": r.choice(PATTERNS)}
    if kind == 4:
        low = r.randrange(1, 4)
        return {"pattern": r.choice(["^[a-z ]+$", "^x\\w*$", "^[^0-9]{1,9}$"]), "minLength": low,
                "maxLength": low + r.randrange(3)}
    if kind == 1:
        return {"format": r.choice(list(FORMATS))}
    low = r.randrange(5)
    return {k: v for k, v in (("minLength", low), ("maxLength", low + r.randrange(8))) if r.random() < 0.7}


def random_number(r):
    low, s = r.randrange(-300, 300), {}
    if r.random() < 0.6:
        s[r.choice(["minimum", "exclusiveMinimum"])] = low + r.choice([0, 0, 0.5])
    if r.random() < 0.6:
        s[r.choice(["maximum", "exclusiveMaximum"])] = low + r.randrange(3, 2000) + r.choice([0, 0, 0.25])
    if r.random() < 0.2:
        return {"type": "number", "minimum": low + 0.125,
                r.choice(["maximum", "exclusiveMaximum"]): low + r.choice([0.375, 0.9, 1.3])}
    return {"type": r.choice(["integer", "number"]), **s}


def random_object(r, depth):
    names = r.sample(KEYS, r.randrange(1, 5))
    s = {"type": "object", "properties": {k: random_schema(r, depth + 1) for k in names}}
    if r.random() < 0.8:
        s["required"] = [k for k in names if r.random() < 0.6]
    if r.random() < 0.4:
        s["additionalProperties"] = r.choice([False, True, {"type": "integer"}])
    return s


def random_array(r, depth):
    s, low = {"type": "array"}, r.randrange(3)
    if r.random() < 0.8:
        s["items"] = random_schema(r, depth + 1)
    if r.random() < 0.3:
        s["prefixItems"] = [random_schema(r, depth + 1) for _ in range(r.randrange(1, 3))]
    if r.random() < 0.5:
        s["minItems"] = low
    return {**s, "maxItems": low + r.randrange(4)} if r.random() < 0.8 else s


def random_combination(r, depth):
    kind = r.randrange(4)
    if kind == 0:
        return {"anyOf": [random_schema(r, depth + 1) for _ in range(r.randrange(1, 4))]}
    if kind == 1:
        return {"oneOf": [{"type": "object",
                           "properties": {"kind": {"const": k}, "v": random_schema(r, depth + 1)},
                           "required": ["kind"]} for k in ("p", "q")]}
    if kind == 2:
        return {"allOf": [random_object(r, depth + 1),
                          {"properties": {"more": random_schema(r, depth + 1)}, "required": ["more"]}]}
    return {"type": r.sample(["null", "boolean", "integer", "string", "number"], 2)}


def random_schema(r, depth=0):
    choices = [random_string,
               random_number] + ([random_object, random_array, random_combination] if depth < 3 else [])
    kind = r.randrange(len(choices) + 3)
    if depth == 0 and r.random() < 0.6:
        return random_object(r, 0)
    if kind == len(choices):
        return {"enum": [random_value(r) for _ in range(r.randrange(1, 4))]}
    if kind == len(choices) + 1:
        return r.choice([{"type": "boolean"}, {"type": "null"}, {"const": random_value(r)},
                         {"$ref": "#/$defs/node"}])
    if kind == len(choices) + 2:
        return {"title": "text", **random_string(r), "type": "string"}
    return choices[kind](r, depth) if kind >= 2 else choices[kind](r)


NODE = {"type": "object",
        "properties": {"v": {"type": "integer", "minimum": 0, "maximum": 9},
                       "next": {"$ref": "#/$defs/node"}}, "required": ["v"],
        "additionalProperties": False}


# --- the model writes ------------------------------------------------------------------------------------

def check_schema(t, seed, schema, reference):
    r = t.run("run", t.model, "-p", "JSON:", "-n", 400, "-c", 512, "--temp", 1, "--seed", seed, "--top-k", 0,
              "--top-p", 1, "--min-p", 0, "--json",
              "--json-schema-file", "-", stdin=json.dumps(schema, ensure_ascii=seed % 2 == 0).encode())
    shown = json.dumps(schema)[:400]
    if r.code != 0:
        refused = any(word in r.err
                      for word in ("not supported", "may accept the same", "no type satisfies",
                                   "not allowed"))
        t.ok(f"schema {seed}", refused and r.code in (1, 2, 3, 4, 5), f"{r.code} {r.err} {shown}")
        return "refused"
    answer = json.loads(r.out)
    if answer["stop"] != "end":
        t.ok(f"schema {seed}", answer["stop"] in ("limit", "context"),
             f"{answer['stop']} {answer['text'][-80:]!r} {shown}")
        return "unfinished"
    try:
        value = json.loads(answer["text"], parse_constant=float)
    except ValueError as e:
        t.ok(f"schema {seed}", False, f"{e}: {answer['text']!r} {shown}")
        return "finished"
    t.ok(f"schema {seed}", valid(value, schema, schema), f"{answer['text']!r} {shown}")
    if reference:
        t.ok(f"schema {seed} (jsonschema)", reference(value, schema), f"{answer['text']!r} {shown}")
    return "finished"


def other_validator():
    """python3-jsonschema, if it is installed."""
    try:
        import jsonschema
        cls = jsonschema.Draft202012Validator
    except (ImportError, AttributeError):
        return None
    return lambda value, schema: cls(schema).is_valid(value)


def main():
    argv = sys.argv
    count = int(argv.pop(argv.index("--count") + 1)) if "--count" in argv else 0
    first = int(argv.pop(argv.index("--seed") + 1)) if "--seed" in argv else 0
    sys.argv = [a for a in argv if a not in ("--count", "--seed")]
    t, quick, _ = arguments()
    check_validator(t)
    results = {"finished": 0, "unfinished": 0, "refused": 0}
    reference = other_validator()
    for seed in range(first, first + (count or (10 if quick else 60))):
        schema = random_schema(random.Random(seed))
        if "$ref" in json.dumps(schema):
            schema["$defs"] = {"node": NODE}
        results[check_schema(t, seed, schema, reference)] += 1
    print(", ".join(f"{n} {name}" for name, n in results.items()),
          "- jsonschema compared" if reference else "- no jsonschema installed")
    t.ok("most are finished", results["finished"] * 2 > sum(results.values()), results)
    return t.done()


sys.exit(main())
