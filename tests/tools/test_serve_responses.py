# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""tenon serve: /v1/responses, at once and as a stream of events."""
import json
import re
import sys

import cli
from serve import EXACT, HELLO, Server, need_server

ANSWER = "Mia lives in the blue house by the river."
ADD = {"type": "function", "name": "add", "description": "adds numbers", "parameters": {
    "type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"],
    "additionalProperties": False}}
PLACE = {"type": "json_schema", "name": "place", "schema": {
    "type": "object", "properties": {"y": {"const": 1}}, "required": ["y"], "additionalProperties": False}}
# A template whose answers begin inside of a thought; the model never ends it.
THINKING = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant><think>\n"


def ask(s, given="Where does Mia live?", **fields):
    return s.ask("POST", "/v1/responses", {"input": given, "temperature": 0, **fields})


def stream_of(s, given="Where does Mia live?", **fields):
    """The events of a stream as objects; each has its name twice."""
    status, headers, data = ask(s, given, stream=True, **fields)
    assert status == 200 and headers["content-type"] == "text/event-stream", data
    events = []
    for block in data.decode().split("\n\n"):
        if not block or block.startswith(":"):
            continue
        name, line = block.split("\n")
        events.append(json.loads(line[len("data: "):]))
        assert name == "event: " + events[-1]["type"], block
    return events


def same(a, b):
    """Two responses but for their ids and times."""
    def plain(x):
        return re.sub(r'"(id|call_id|item_id)": "[^"]*"|"created_at": \d+', "", json.dumps(x))
    return plain(a) == plain(b)


def check_text(t, s):
    status, _, got = ask(s, metadata={"a":  "b\n"}, max_output_tokens=100, store=True)
    t.ok("response", status == 200 and got["object"] == "response" and got["status"] == "completed" and
         got["id"].startswith("resp_") and got["error"] is None and got["store"] is False, got)
    item = got["output"][0]
    t.ok("message", len(got["output"]) == 1 and item["type"] == "message" and
         item["role"] == "assistant" and item["status"] == "completed" and
         item["content"] == [{"type": "output_text", "text": ANSWER, "annotations": [], "logprobs": []}], got)
    t.ok("echo", got["metadata"] == {"a": "b\n"} and got["max_output_tokens"] == 100 and
         got["temperature"] == 0 and got["instructions"] is None and got["tools"] == [] and
         got["text"] == {"format": {"type": "text"}}, got)
    _, _, chat = s.chat()
    t.ok("usage", got["usage"]["input_tokens"] == chat["usage"]["prompt_tokens"] and
         got["usage"]["output_tokens"] == chat["usage"]["completion_tokens"] and
         got["usage"]["total_tokens"] == chat["usage"]["total_tokens"] and
         "cached_tokens" in got["usage"]["input_tokens_details"], got["usage"])
    _, _, cut = ask(s, max_output_tokens=3)
    t.ok("cut", cut["status"] == "incomplete" and cut["output"][0]["status"] == "incomplete" and
         cut["incomplete_details"] == {"reason": "max_output_tokens"}, cut)
    _, _, formed = ask(s, text={"format": PLACE})
    t.ok("schema", json.loads(formed["output"][0]["content"][0]["text"]) == {"y": 1} and
         formed["text"] == {"format": PLACE}, formed)
    _, _, formed = ask(s, text={"format": {"type": "json_object"}}, max_output_tokens=60)
    t.ok("any object", formed["output"][0]["content"][0]["text"].startswith("{"), formed)
    _, _, got = ask(s, [{"role": "user", "content": [{"type": "input_text", "text": HELLO[0]["content"]}]}])
    t.ok("items", got["output"][0]["content"][0]["text"] == ANSWER, got)


def check_events(t, s):
    _, _, whole = ask(s)
    events = stream_of(s)
    kinds = [e["type"] for e in events]
    deltas = kinds.count("response.output_text.delta")
    t.ok("order", deltas > 3 and kinds == [
        "response.created", "response.in_progress", "response.output_item.added",
        "response.content_part.added"] + ["response.output_text.delta"] * deltas + [
        "response.output_text.done", "response.content_part.done", "response.output_item.done",
        "response.completed"], kinds)
    t.ok("numbers", [e["sequence_number"] for e in events] == list(range(len(events))))
    ids = {e.get("item_id", e.get("item", {}).get("id")) for e in events} - {None}
    t.ok("indices", len(ids) == 1 and {e.get("output_index", 0) for e in events} == {0} and
         {e.get("content_index", 0) for e in events} == {0}, events)
    t.ok("begin", events[0]["response"]["status"] == "in_progress" and
         events[0]["response"]["output"] == [] and events[0]["response"]["usage"] is None, events[0])
    text = "".join(e["delta"] for e in events if e["type"].endswith("delta"))
    last = events[-1]["response"]
    t.ok("text", text == ANSWER and same(last, {**whole, "usage": last["usage"]}) and
         last["output"][0]["id"] in ids, (last, whole))
    events = stream_of(s, max_output_tokens=3)
    t.ok("cut", events[-1]["type"] == "response.incomplete" and
         events[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"} and
         events[-2]["item"]["status"] == "incomplete", events[-2:])


def check_calls(t, s):
    fields = {"tools": [{"type": "web_search"}, ADD], "tool_choice": "required", "parallel_tool_calls": False}
    status, _, got = ask(s, **fields)
    t.ok("a call", status == 200 and [i["type"] for i in got["output"]] == ["function_call"], got)
    call = got["output"][0]
    t.ok("its parts", call["name"] == "add" and json.loads(call["arguments"])["a"] in (1, 2) and
         call["call_id"].startswith("call_") and call["id"].startswith("fc_") and
         got["tools"] == fields["tools"] and got["tool_choice"] == "required", got)
    events = stream_of(s, **fields)
    kinds = [e["type"] for e in events]
    deltas = [e["delta"] for e in events if e["type"] == "response.function_call_arguments.delta"]
    t.ok("its events", len(deltas) > 3 and kinds[2:] == [
        "response.output_item.added"] + ["response.function_call_arguments.delta"] * len(deltas) + [
        "response.function_call_arguments.done", "response.output_item.done", "response.completed"], kinds)
    t.ok("its item", events[2]["item"]["arguments"] == "" and "".join(deltas) == call["arguments"] and
         events[-3]["arguments"] == events[-2]["item"]["arguments"] == call["arguments"] and
         same(events[-1]["response"], {**got, "usage": events[-1]["response"]["usage"]}), events)
    used = events[-1]["response"]["usage"]["output_tokens"]
    events = stream_of(s, **fields, max_output_tokens=used - 18)
    item = events[-1]["response"]["output"][0]
    t.ok("one that is cut off", events[-1]["type"] == "response.incomplete" and
         item["type"] == "function_call" and
         item["status"] == events[-2]["item"]["status"] == "incomplete" and
         call["arguments"].startswith(item["arguments"]), events)
    named = {"type": "function", "name": "add"}
    _, _, got = ask(s, **{**fields, "tool_choice": named})
    t.ok("a named one", got["output"][0]["name"] == "add", got)
    back = [{"role": "user", "content": "Where does Mia live?"}, call,
            {"type": "function_call_output", "call_id": call["call_id"], "output": "3"}]
    status, _, got = ask(s, back, tools=[ADD], max_output_tokens=5)
    t.ok("the next turn", status == 200 and got["output"], got)
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [named]}
    _, _, got = ask(s, **{**fields, "tool_choice": allowed})
    t.ok("allowed ones", got["output"][0]["name"] == "add", got)


def check_thoughts(t):
    g = cli.Gguf(t.model)
    g.set_text("tokenizer.chat_template", THINKING)
    s = Server(t, *EXACT, model=g.write(t.temp("thinking.gguf")))
    _, _, got = ask(s, max_output_tokens=8, ignore_eos=True)
    item = got["output"][0]
    t.ok("a thought", item["type"] == "reasoning" and item["summary"] == [] and
         item["content"][0]["type"] == "reasoning_text" and len(item["content"][0]["text"]) > 3 and
         got["usage"]["output_tokens_details"]["reasoning_tokens"] == 8, got)
    events = stream_of(s, max_output_tokens=8, ignore_eos=True)
    kinds = {e["type"] for e in events}
    t.ok("its events", {"response.reasoning_text.delta", "response.reasoning_text.done",
                        "response.content_part.added"} <= kinds and
         events[-1]["response"]["output"][0]["content"] == item["content"], events)
    status, _, _ = ask(s, [{"role": "user", "content": "Hello"}, item, {
        "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
        {"role": "user", "content": "Again"}], max_output_tokens=2)
    t.ok("its history", status == 200)
    t.ok("exit code with a template", s.end() == 0, s.err)


WRONG = [  # fields, param, code
    ({}, "input", None),
    ({"input": 7}, "input", None),
    ({"input": []}, "input", None),
    ({"input": ["x"]}, "input[0]", None),
    ({"input": [{"role": "user"}]}, "input[0].content", None),
    ({"input": [{"content": "x"}]}, "input[0].role", None),
    ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role", None),
    ({"input": [{"role": "user", "content": "x"}, {"type": "item_reference", "id": "y"}]}, "input[1].type",
     "unsupported_value"),
    ({"instructions": "Hi", "input": [{"type": "reasoning", "summary": []}, {
        "role": "user", "content": [{"type": "input_image"}]}]}, "input[1].content", "unsupported_value"),
    ({"input": [{"type": "function_call", "name": "f"}]}, "input[0].call_id", None),
    ({"input": [{"type": "function_call_output", "call_id": "f"}]}, "input[0].output", None),
    ({"input": "x", "instructions": 7}, "instructions", None),
    ({"input": "x", "previous_response_id": "resp_1"}, "previous_response_id", "unsupported_parameter"),
    ({"input": "x", "background": True}, "background", "unsupported_parameter"),
    ({"input": "x", "max_output_tokens": "many"}, "max_output_tokens", None),
    ({"input": "x", "temperature": "hot"}, "temperature", None),
    ({"input": "x", "tools": [{"type": "web_search"}, {"type": "function", "name": "a b"}]}, "tools[1].name",
     None),
    ({"input": "x", "tools": [ADD], "tool_choice": {"type": "function", "name": "g"}}, "tool_choice", None),
    ({"input": "x", "text": {"format": {"type": "yaml"}}}, "text.format.type", None),
    ({"input": "x", "text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema", None),
    ({"input": "x", "text": {"format": {"type": "json_schema", "name": "x", "schema": {"not": {}}}}},
     "text.format.schema", "invalid_schema"),
    ({"input": "word " * 3000}, "input", "context_length_exceeded"),
    ({"input": "x", "model": "other"}, "model", "model_not_found"),
]


def check_wrong(t, s):
    for fields, param, code in WRONG:
        status, _, got = s.ask("POST", "/v1/responses", fields)
        error = got.get("error", {})
        t.ok(f"wrong: {param}", status == (404 if code == "model_not_found" else 400) and
             error.get("param") == param and error["code"] == code, (status, got))
    status, headers, _ = s.ask("GET", "/v1/responses")
    t.ok("no GET", status == 405 and headers["allow"] == "POST, OPTIONS")
    t.ok("still well", s.ask("GET", "/health")[0] == 200)


def main():
    t, _, _ = cli.arguments()
    need_server(t)
    s = Server(t, *EXACT, "-np", "4")
    if not t.ok("the server starts", s.port is not None, s.err):
        sys.exit(t.done())
    for check in (check_text, check_events, check_calls, check_wrong):
        check(t, s)
    t.ok("exit code of the server", s.end() == 0, s.err)
    check_thoughts(t)
    sys.exit(t.done())


main()
