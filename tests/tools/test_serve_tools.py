# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""tenon serve: calls of tools, streamed and at once. The bundled model knows no tools: a required call is
forced by a grammar, and a chat template that has tools is put into a copy of the model."""
import json
import re
import sys

import cli
from serve import EXACT, HELLO, Server, events, need_server, streamed

ADD = {"type": "function", "function": {
    "name": "add", "description": "adds numbers", "parameters": {
        "type": "object", "properties": {"a": {"enum": [1, 2]}, "b": {"type": "boolean"}},
        "required": ["a", "b"], "additionalProperties": False}}}
NOW = {"type": "function", "function": {"name": "srv.now/time"}}
NAMED = {"type": "function", "function": {"name": "add"}}
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [NAMED]}}
# A template with tools in the form of hermes.
TEMPLATE = ("{% if tools %}TOOLS{{ tools | tojson }} as <tool_call> {% endif %}"
            "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}"
            "{% for c in m.tool_calls or [] %}CALL{{ c.function.name }}{{ c.function.arguments | tojson }}"
            "{% endfor %}{% endfor %}<assistant>")


def joined(chunks, index=0):
    """The calls of a stream, put together as clients do."""
    calls = []
    for chunk in chunks:
        for choice in chunk["choices"]:
            for delta in choice["delta"].get("tool_calls", []) if choice["index"] == index else []:
                if delta["index"] == len(calls):
                    calls.append({"id": delta["id"], "type": delta["type"], "function": {
                        "name": delta["function"]["name"], "arguments": delta["function"]["arguments"]}})
                else:
                    assert "id" not in delta and "name" not in delta["function"], delta
                    calls[delta["index"]]["function"]["arguments"] += delta["function"]["arguments"]
    return calls


def fits(call):
    """Whether the arguments follow the schema."""
    if "function" not in call:
        return False
    arguments = json.loads(call["function"]["arguments"])
    if call["function"]["name"] == "add":
        return sorted(arguments) == ["a", "b"] and arguments["a"] in (1, 2) and \
            arguments["b"] in (True, False)
    return call["function"]["name"] == "srv.now/time" and arguments == {}


def check_at_once(t, s):
    ids = set()
    for name, fields in {"named": {"tools": [NOW, ADD], "tool_choice": NAMED},
                         "required": {"tools": [NOW, ADD], "tool_choice": "required"},
                         "allowed": {"tools": [NOW, ADD], "tool_choice": ALLOWED},
                         "sampled": {"tools": [ADD], "tool_choice": "required", "temperature": 1, "seed": 3},
                         "a schema too": {"tools": [ADD], "tool_choice": "required",
                                          "response_format": {"type": "json_object"}}}.items():
        status, _, got = s.chat(parallel_tool_calls=False, max_tokens=100, **fields)
        if not t.ok(f"{name}: answered", status == 200, got):
            continue
        choice = got["choices"][0]
        calls = choice["message"].get("tool_calls", [])
        t.ok(f"{name}: one call", len(calls) == 1 and fits(calls[0]), got)
        t.ok(f"{name}: the rest", choice["finish_reason"] == "tool_calls" and
             choice["message"]["content"] is None and choice["message"]["role"] == "assistant", got)
        ids.update(c["id"] for c in calls)
        if name in ("named", "allowed"):
            t.ok(f"{name}: the function", calls and calls[0]["function"]["name"] == "add", got)
    t.ok("ids", len(ids) == 5 and all(re.fullmatch(r"call_[0-9a-f]{16}", i) for i in ids), ids)
    _, _, got = s.chat(tools=[ADD], tool_choice="required", n=3, temperature=1, seed=1, max_tokens=100,
                       parallel_tool_calls=False)
    calls = [c["message"].get("tool_calls", [{}])[0] for c in got["choices"]]
    t.ok("choices", all(map(fits, calls)) and len({c["id"] for c in calls}) == 3, got)
    _, _, got = s.chat(tools=[ADD], tool_choice="required", max_tokens=5)
    t.ok("cut", got["choices"][0]["finish_reason"] == "length" and
         "tool_calls" not in got["choices"][0]["message"], got)
    _, _, got = s.chat(tools=[ADD], tool_choice="required", max_tokens=100, temperature=1, seed=2)
    calls = got["choices"][0]["message"].get("tool_calls", [])
    t.ok("several calls", len(calls) > 0 and all(map(fits, calls)) and
         len({c["id"] for c in calls}) == len(calls), got)
    _, _, got = s.chat(tools=[ADD], tool_choice="required", parallel_tool_calls=False, logprobs=True)
    t.ok("no logprobs of markup", got["choices"][0]["logprobs"]["content"] == [], got)


def check_auto(t, s):
    _, _, plain = s.chat()
    for fields in ({"tools": [ADD], "tool_choice": "none"}, {"tools": []}, {"tool_choice": "auto"}):
        _, _, got = s.chat(**fields)
        t.ok(f"as without tools: {fields}", got["choices"][0]["message"] == plain["choices"][0]["message"] and
             got["usage"]["prompt_tokens"] == plain["usage"]["prompt_tokens"], got)
    _, _, got = s.chat(tools=[ADD], max_tokens=12, logprobs=True)
    choice = got["choices"][0]
    t.ok("auto", choice["finish_reason"] in ("stop", "length") and "tool_calls" not in choice["message"] and
         got["usage"]["prompt_tokens"] > plain["usage"]["prompt_tokens"], got)
    entries = b"".join(bytes(e["bytes"]) for e in choice["logprobs"]["content"])
    t.ok("logprobs of its text", entries.decode() == choice["message"]["content"], got)
    strict = json.loads(json.dumps(ADD))
    strict["function"]["strict"] = True
    status, _, got = s.chat(tools=[strict], max_tokens=8)
    t.ok("strict", status == 200, got)
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {
        "type": "object", "properties": {"y": {"const": 1}}, "required": ["y"],
        "additionalProperties": False}}}
    _, _, got = s.chat(tools=[ADD], response_format=schema, max_tokens=150, parallel_tool_calls=False)
    message = got["choices"][0]["message"]
    t.ok("a call or the schema", fits(message["tool_calls"][0]) if "tool_calls" in message
         else json.loads(message["content"]) == {"y": 1}, got)


def check_stream(t, s):
    fields = {"tools": [ADD, NOW], "tool_choice": "required", "max_tokens": 100, "seed": 4, "temperature": 1}
    _, _, whole = s.chat(**fields)
    _, _, data = s.chat(stream=True, stream_options={"include_usage": True}, **fields)
    lines, chunks = events(data)
    want = [c["function"] for c in whole["choices"][0]["message"].get("tool_calls", [])]
    got = joined(chunks)
    # The limit of tokens cuts a call off: it is content of the whole answer, in the stream a call without an
    # end.
    content = whole["choices"][0]["message"]["content"] or ""
    t.ok("the calls of a stream", want and [c["function"] for c in got[:len(want)]] == want and
         len({c["id"] for c in got}) == len(got), lines)
    t.ok("its text", streamed(chunks) == "" and len(got) - len(want) == ('"name"' in content), lines)
    reasons = [c["choices"][0]["finish_reason"] for c in chunks if c["choices"]]
    t.ok("its end", reasons[-1] == whole["choices"][0]["finish_reason"] and set(reasons[:-1]) == {None} and
         chunks[-2]["choices"][0]["delta"] == {} and lines[-1] == "[DONE]", lines)
    t.ok("its usage", chunks[-1]["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"], lines)
    _, _, data = s.chat(stream=True, n=2, parallel_tool_calls=False, **fields)
    _, chunks = events(data)
    for i in range(2):
        calls = joined(chunks, i)
        t.ok(f"stream of choice {i}", len(calls) == 1 and fits(calls[0]), chunks)
    _, _, data = s.chat(stream=True, tools=[ADD], tool_choice=NAMED, parallel_tool_calls=False)
    _, chunks = events(data)
    cut = [d["function"]["arguments"] for c in chunks for d in c["choices"][0]["delta"].get("tool_calls", [])]
    t.ok("its pieces", cut[0] == "" and len(cut) > 4 and "" not in cut[1:] and fits(joined(chunks)[0]), cut)


def check_cut(t, s):
    """A call that the limit of tokens ends: its beginning as far as it goes, and no content."""
    fields = {"tools": [ADD], "tool_choice": NAMED, "stream": True, "parallel_tool_calls": False}
    _, _, data = s.chat(max_tokens=200, stream_options={"include_usage": True}, **fields)
    _, chunks = events(data)
    whole = joined(chunks)[0]["function"]["arguments"]
    used = chunks[-1]["usage"]["completion_tokens"]
    ends = set()
    for n in [*range(1, used, 7), used + 1]:
        _, _, data = s.chat(max_tokens=n, **fields)
        lines, chunks = events(data)
        calls = joined(chunks)
        reason = chunks[-1]["choices"][0]["finish_reason"]
        ends.add((len(calls), reason))
        if n > used:
            break
        t.ok(f"cut behind {n} tokens", lines[-1] == "[DONE]" and (not calls or (
            not streamed(chunks) and whole.startswith(calls[0]["function"]["arguments"]))), lines)
    t.ok("cuts", ends == {(0, "length"), (1, "length"), (1, "tool_calls")}, ends)


def check_ollama(t, s):
    fields = {"messages": HELLO, "tools": [ADD], "tool_choice": NAMED, "parallel_tool_calls": False,
              "options": {"temperature": 0}}
    _, _, got = s.ask("POST", "/api/chat", {**fields, "stream": False})
    calls = got["message"].get("tool_calls", [])
    t.ok("ollama", len(calls) == 1 and calls[0]["function"]["name"] == "add" and
         sorted(calls[0]["function"]["arguments"]) == ["a", "b"] and got["done_reason"] == "stop", got)
    _, _, data = s.ask("POST", "/api/chat", fields)
    lines = [json.loads(line) for line in data.decode().splitlines()]
    with_calls = [x["message"]["tool_calls"] for x in lines if "tool_calls" in x["message"]]
    t.ok("in lines", len(with_calls) == 1 and with_calls[0][0]["function"] == calls[0]["function"] and
         lines[-1]["done"], data)
    history = HELLO + [{"role": "assistant", "content": "", "tool_calls": [
        {"function": {"name": "add", "arguments": {"a": 1, "b": True}}}]},
        {"role": "tool", "tool_name": "add", "content": "3"}]
    status, _, got = s.ask("POST", "/api/chat", {**fields, "messages": history, "stream": False})
    t.ok("its history", status == 200 and got["message"]["tool_calls"], got)


def check_halves(t, s):
    """Halves of surrogate pairs, which clients cut out of texts, are replaced in tools as in texts."""
    for name, function in {"a description": {**ADD["function"], "description": "the \ude00 sum \ud83d"},
                           "a key": {**ADD["function"], "x\udc00\ud800": {}},
                           "a zero byte": {**ADD["function"], "description": "a \0 and \\u0000"}}.items():
        for choice in ("auto", NAMED):
            status, _, got = s.chat(tools=[{"type": "function", "function": function}], tool_choice=choice,
                                    max_tokens=100)
            t.ok(f"halves in {name}", status == 200, got)


def history():
    return HELLO + [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 1}"}},
            {"id": "b", "type": "function", "function": {"name": "add", "arguments": ""}}]},
        {"role": "tool", "tool_call_id": "a", "content": "yes"},
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "no"}]}]


def check_prompts(t, s):
    _, _, got = s.ask("POST", "/apply-template", {"messages": history(), "tools": [ADD]})
    text = got.get("prompt", "")
    t.ok("tools as text", '"adds numbers"' in text and
         '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>' in text and
         '{"name": "add", "arguments": {}}' in text and
         "<tool_response>\nyes\n</tool_response>\n<tool_response>\nno\n</tool_response>" in text, got)
    g = cli.Gguf(t.model)
    g.set_text("tokenizer.chat_template", TEMPLATE)
    own = Server(t, *EXACT, model=g.write(t.temp("tools.gguf")))
    _, _, got = own.ask("POST", "/apply-template", {"messages": history(), "tools": [ADD]})
    text = got.get("prompt", "")
    t.ok("tools by the template", "TOOLS[" in text and 'CALLadd{"a": 1}CALLadd{}' in text and
         "<tool>yes<tool>no<assistant>" in text, got)
    _, _, got = own.chat(messages=history(), tools=[ADD], tool_choice="required", parallel_tool_calls=False)
    t.ok("a call by the template", fits(got["choices"][0]["message"].get("tool_calls", [{}])[0]), got)
    t.ok("exit code with a template", own.end() == 0, own.err)
    g.set_text("tokenizer.chat_template.tool_use", "USE" + TEMPLATE)
    own = Server(t, *EXACT, model=g.write(t.temp("use.gguf")))
    for tools, wanted in (({"tools": [ADD]}, True), ({}, False)):
        _, _, got = own.ask("POST", "/apply-template", {"messages": history(), **tools})
        t.ok(f"the template for tools, {wanted}", got.get("prompt", "").startswith("USE") == wanted and
             "<assistant>" in got.get("prompt", ""), got)
    t.ok("exit code with two templates", own.end() == 0, own.err)


def check_formats(t):
    """Templates in whose format the model is made to call: what it writes becomes calls again."""
    g = cli.Gguf(t.model)
    for name, sign, end in (("harmony", "<|call|>", "<|start|>assistant"),
                            ("lfm2", "<|tool_list_start|>", "<assistant>"), ("functionary", ">>>all", ">>>")):
        template = TEMPLATE.replace("<tool_call>", sign).replace("<assistant>", end)
        g.set_text("tokenizer.chat_template", template)
        own = Server(t, *EXACT, model=g.write(t.temp("format.gguf")))
        status, _, got = own.chat(tools=[ADD], tool_choice="required", max_tokens=200,
                                  parallel_tool_calls=False)
        calls = got["choices"][0]["message"].get("tool_calls", [{}]) if status == 200 else []
        t.ok(f"{name}: a forced call", len(calls) == 1 and fits(calls[0]), got)
        status, _, got = own.ask("POST", "/apply-template", {"messages": history(), "tools": [ADD]})
        # Templates of LFM2 print no calls of the history.
        printed = ('<|tool_call_start|>[{"name": "add", "arguments": {"a": 1}}]<|tool_call_end|>'
                   if name == "lfm2" else 'CALLadd{"a": 1}')
        t.ok(f"{name}: calls of the history", status == 200 and printed in got["prompt"] and
             ("CALL" in got["prompt"]) == (name != "lfm2"), got)
        t.ok(f"{name}: exit code", own.end() == 0, own.err)


def tool(**function):
    return {"type": "function", "function": function}


WRONG = [  # fields, param, code
    ({"tools": {}}, "tools", None),
    ({"tools": ["add"]}, "tools[0]", None),
    ({"tools": [ADD, {"type": "custom"}]}, "tools[1].type", "unsupported_value"),
    ({"tools": [{"function": {"name": "f"}}]}, "tools[0].type", None),
    ({"tools": [{"type": "function"}]}, "tools[0].function", None),
    ({"tools": [tool()]}, "tools[0].function.name", None),
    ({"tools": [tool(name="a b")]}, "tools[0].function.name", None),
    ({"tools": [tool(name="a" * 129)]}, "tools[0].function.name", None),
    ({"tools": [ADD, tool(name="f", parameters=[])]}, "tools[1].function.parameters", None),
    ({"tools": [tool(name="f", description=1)]}, "tools[0].function.description", None),
    ({"tools": [tool(name="f", strict="yes")]}, "tools[0].function.strict", None),
    ({"tools": [ADD, ADD]}, "tools", None),
    ({"tools": [tool(name=f"f{i}") for i in range(257)]}, "tools", None),
    ({"tools": [ADD], "tool_choice": "never"}, "tool_choice", None),
    ({"tools": [ADD], "tool_choice": 1}, "tool_choice", None),
    ({"tools": [ADD], "tool_choice": tool(name="other")}, "tool_choice", None),
    ({"tools": [ADD], "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}},
     "tool_choice.allowed_tools.tools", None),
    ({"tool_choice": "required"}, "tool_choice", None),
    ({"tools": [], "tool_choice": NAMED}, "tool_choice", None),
    ({"tools": [ADD], "parallel_tool_calls": "no"}, "parallel_tool_calls", None),
    ({"tools": [ADD], "response_format": {"type": "json_schema", "json_schema": {
        "name": "x", "schema": {"not": {}}}}}, "response_format.json_schema.schema", "invalid_schema"),
    ({"tools": [ADD], "grammar": "root ::= \"a\""}, "grammar", None),
    ({"tools": [NOW, tool(name="f", strict=True, parameters={"type": "object", "not": {}})],
      "tool_choice": "required"}, "tools[1].function.parameters", "invalid_schema"),
    ({"tools": [NOW, tool(name="f", parameters={"type": "string"})], "tool_choice": tool(name="f")},
     "tools[1].function.parameters", "invalid_schema"),
    ({"messages": [{"role": "assistant", "tool_calls": {"a": 1}}]}, "messages[0].tool_calls", None),
    ({"messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}]},
     "messages[0].tool_calls[0].function.name", None),
]


def check_wrong(t, s):
    for fields, param, code in WRONG:
        status, _, got = s.ask("POST", "/v1/chat/completions", {"messages": HELLO, **fields})
        error = got.get("error", {})
        t.ok(f"wrong: {param}", status == 400 and error.get("param") == param and error["code"] == code and
             error["type"] == "invalid_request_error" and len(error["message"]) > 10, (status, got))
    status, _, got = s.ask("POST", "/api/chat", {"messages": HELLO, "tools": [{}]})
    t.ok("form of errors", status == 400 and "tools[0].type" in got["error"], got)
    weak = tool(name="f", parameters={"type": "object", "not": {}})
    status, _, got = s.chat(tools=[weak], tool_choice="required", parallel_tool_calls=False, max_tokens=100)
    t.ok("a schema that is weakened", status == 200, got)
    t.ok("still well", s.ask("GET", "/health")[0] == 200)


def check_strict(t):
    """--strict-tools: no tools as text where the template has none."""
    for template, want in ((None, 400), (TEMPLATE, 200)):
        g = cli.Gguf(t.model)
        if template:
            g.set_text("tokenizer.chat_template", template)
        s = Server(t, *EXACT, "-c", "512", "--strict-tools", model=g.write(t.temp("strict.gguf")))
        status, _, got = s.chat(tools=[ADD], max_tokens=2)
        t.ok(f"--strict-tools, {want}", status == want and
             (want == 200 or got["error"]["param"] == "tools"), got)
        t.ok("without tools", s.chat(max_tokens=2)[0] == 200)
        s.end()


def main():
    t, _, _ = cli.arguments()
    need_server(t)
    s = Server(t, *EXACT, "-np", "16", "-c", "1024")
    if not t.ok("the server starts", s.port is not None, s.err):
        sys.exit(t.done())
    for check in (check_at_once, check_auto, check_stream, check_cut, check_ollama, check_halves,
                  check_prompts, check_wrong):
        check(t, s)
    _, _, text = s.ask("GET", "/metrics")
    t.ok("calls are counted", re.search(rb'finished_total\{reason="tool_calls"\} [1-9]', text), text[:300])
    t.ok("exit code of the server", s.end() == 0, s.err)
    check_formats(t)
    check_strict(t)
    sys.exit(t.done())


main()
