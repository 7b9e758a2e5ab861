# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""tenon serve: what its routes answer, bytes of streams, wrong requests, many at once."""
import base64
import gzip
import json
import math
import os
import re
import struct
import sys
import threading

import cli
from serve import EXACT, HELLO, Server, events, need_server, streamed


POLICY = ("default-src 'none'; connect-src 'self'; img-src 'self' data:; style-src 'self'; "
          "script-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def check_small_routes(t, s):
    status, headers, got = s.ask("GET", "/health")
    t.ok("health", (status, got) == (200, {"status": "ok"}), got)
    t.ok("type", headers["content-type"] == "application/json" and "date" in headers, headers)
    status, headers, got = s.ask("HEAD", "/v1/models")
    t.ok("HEAD has a length and no body", status == 200 and int(headers["content-length"]) > 100 and not got,
         (headers, got))
    _, _, got = s.ask("GET", "/v1/models/?query=1")
    t.ok("models", got["data"][0]["id"] == "tenon-tiny" and got["data"][0]["max_model_len"] == 512, got)
    status, _, got = s.ask("GET", "/v1/models/tenon-tiny")
    t.ok("one model", status == 200 and got["id"] == "tenon-tiny", got)
    status, _, got = s.ask("GET", "/v1/models/other")
    t.ok("no such model", status == 404 and got["error"]["code"] == "model_not_found", got)
    _, _, got = s.ask("POST", "/tokenize", {"content": "Hello world", "with_pieces": True})
    ids = [p["id"] for p in got["tokens"]]
    t.ok("tokenize", "".join(p["piece"] for p in got["tokens"]) == "Hello world", got)
    _, _, got = s.ask("POST", "/detokenize", {"tokens": ids})
    t.ok("detokenize", got["content"] == "Hello world", got)
    _, _, got = s.ask("POST", "/tokenize", {"content": "é", "with_pieces": True})
    t.ok("pieces that are no text are bytes", [p["piece"] for p in got["tokens"]] == [[0xc3], [0xa9]], got)
    _, _, got = s.ask("POST", "/tokenize", {"messages": HELLO})
    _, _, counted = s.ask("POST", "/v1/chat/completions/input_tokens", {"messages": HELLO})
    t.ok("tokens of messages", got["count"] == counted["input_tokens"] > 5, (got, counted))
    _, _, got = s.ask("POST", "/apply-template", {"messages": HELLO})
    t.ok("template", HELLO[0]["content"] in got["prompt"], got)
    status, _, got = s.ask("POST", "/v1/embeddings", {"input": "a"})
    t.ok("no embeddings", status == 400 and got["error"]["code"] == "unsupported_model", got)


def check_page(t, s):
    paths = {"/": "text/html", "/page.js": "text/javascript", "/page.css": "text/css",
             "/page.svg": "image/svg+xml", "/page-licenses.txt": "text/plain"}
    for path, kind in paths.items():
        status, headers, plain = s.ask("GET", path)
        t.ok(f"page {path}", status == 200 and headers["content-type"].split(";")[0] == kind and
             int(headers["content-length"]) == len(plain) > 0 and "content-encoding" not in headers, headers)
        t.ok(f"headers of {path}", headers["content-security-policy"] == POLICY and
             headers["referrer-policy"] == "no-referrer" and headers["cache-control"] == "no-cache" and
             headers["x-content-type-options"] == "nosniff" and
             headers["vary"] == ("Accept, " if path == "/" else "") + "Accept-Encoding", headers)
        tag = headers["etag"]
        t.ok(f"strong tag of {path}", re.fullmatch(r'"[0-9a-f]{32}"', tag), tag)
        _, headers, body = s.ask("GET", path, headers={"Accept-Encoding": "br, GZIP;q=0.8"})
        if headers["content-encoding"] == "gzip":
            t.ok(f"gzip of {path}", gzip.decompress(body) == plain and headers["etag"] != tag, headers)
        for accepted in ("gzip;q=0", "br", "gzipped"):
            _, refused, body = s.ask("GET", path, headers={"Accept-Encoding": accepted})
            t.ok(f"no gzip of {path} for {accepted}", body == plain and refused["etag"] == tag, refused)
        status, headers, body = s.ask("HEAD", path)
        t.ok(f"HEAD of {path}", status == 200 and int(headers["content-length"]) == len(plain) and
             not body, headers)
        for known in (tag, f'"other", W/{tag}', "*"):
            status, headers, body = s.ask("GET", path, headers={"If-None-Match": known})
            t.ok(f"{path} is known by {known}", status == 304 and not body and headers["etag"] == tag and
                 "content-length" not in headers and headers["content-security-policy"] == POLICY, headers)
        status, _, body = s.ask("GET", path, headers={"If-None-Match": '"other"'})
        t.ok(f"{path} has changed", status == 200 and body == plain)
    for method, accept, ollama in (("GET", "*/*", True), ("HEAD", "application/json", True),
                                   ("GET", "application/xhtml+xml, text/html;q=0.9", False)):
        status, headers, text = s.ask(method, "/", headers={"Accept": accept})
        t.ok(f"/ for {accept}", status == 200 and headers["content-type"].startswith("text/plain") == ollama
             and (method == "HEAD" or (text == b"Ollama is running") == ollama), (headers, text))
    _, _, text = s.ask("GET", "/")
    t.ok("nothing inline, nothing from elsewhere", not re.search(
        rb"<script(?![^>]*src=\"/)|<style|style=|\son\w+=|https?:", text), text)
    status, headers, _ = s.ask("POST", "/", {})
    t.ok("the page takes no POST", status == 405 and headers["allow"] == "GET, HEAD, OPTIONS", headers)
    t.ok("gzip of the script", s.ask("GET", "/page.js", headers={"Accept-Encoding": "gzip"})[1]
         ["content-encoding"] == "gzip")


def check_chat(t, s):
    status, headers, got = s.chat()
    message = got["choices"][0]["message"]
    t.ok("chat", status == 200 and "Mia lives" in message["content"] and message["role"] == "assistant", got)
    t.ok("keys", got["object"] == "chat.completion" and got["model"] == "tenon-tiny" and
         got["choices"][0]["finish_reason"] == "stop" and got["choices"][0]["logprobs"] is None, got)
    usage = got["usage"]
    t.ok("usage", usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"], usage)
    t.ok("id in the head", headers["x-request-id"] == got["id"], headers)
    long = [{"role": "user", "content": "Where does Mia live? " * 20}]
    cached = [s.chat(messages=long, max_tokens=1)[2]["usage"]["prompt_tokens_details"]["cached_tokens"]
              for _ in range(2)]
    t.ok("the prefix is found", cached[0] == 0 and cached[1] >= 64, cached)
    for prompt, seed in (("Tell me a story.", 7), ("Where does Mia live?", 3)):
        alone = t.run("run", t.model, "-st", "-p", prompt, "--seed", seed, *EXACT)
        _, _, got = s.ask("POST", "/v1/chat/completions",
                          {"messages": [{"role": "user", "content": prompt}], "seed": seed})
        t.ok(f"as tenon run, seed {seed}", got["choices"][0]["message"]["content"] == alone.text.rstrip("\n"),
             (got, alone.text))
    _, _, got = s.chat(max_tokens=3)
    t.ok("length", got["choices"][0]["finish_reason"] == "length" and
         got["usage"]["completion_tokens"] == 3, got)
    _, _, got = s.chat(stop=["blue"], max_completion_tokens=50, max_tokens=1)
    text = got["choices"][0]["message"]["content"]
    t.ok("stop string", "lives" in text and "blue" not in text, got)
    _, _, got = s.chat(min_tokens=30, max_tokens=40)
    t.ok("a least number of tokens", got["usage"]["completion_tokens"] >= 30, got)
    begun = HELLO + [{"role": "assistant", "content": "Mia lives in"}]
    _, _, got = s.chat(messages=begun, continue_final_message=True)
    t.ok("a message that is continued", got["choices"][0]["message"]["content"] ==
         message["content"].removeprefix("Mia lives in"), got)
    _, _, got = s.ask("POST", "/apply-template", {"messages": begun, "continue_final_message": True})
    t.ok("its prompt", got["prompt"].endswith("assistant\nMia lives in"), got)
    for fields in ({"reasoning_effort": "low"}, {"chat_template_kwargs": {"a": 1}}):
        _, _, got = s.chat(**fields)
        t.ok(f"{fields} where the template has none", got["choices"][0]["message"] == message, got)
    _, _, got = s.chat(n=3, temperature=1, seed=5)
    t.ok("choices", [c["index"] for c in got["choices"]] == [0, 1, 2], got)
    for i in range(3):
        _, _, one = s.chat(temperature=1, seed=5 + i)
        t.ok(f"choice {i} has the seed plus {i}",
             one["choices"][0]["message"] == got["choices"][i]["message"],
             (one, got))
    _, _, got = s.chat(logprobs=True, top_logprobs=2, max_tokens=4)
    entries = got["choices"][0]["logprobs"]["content"]
    t.ok("logprobs", len(entries) == 4 and all(len(e["top_logprobs"]) == 2 for e in entries) and
         bytes(sum((e["bytes"] for e in entries), [])).decode() ==
         got["choices"][0]["message"]["content"], got)
    _, _, got = s.chat(logit_bias={str(i): -100 for i in range(20, 60)}, max_tokens=5)
    t.ok("bias", got["usage"]["completion_tokens"] == 5, got)
    parts = [{"role": "user", "content": [{"type": "text", "text": "Where does "},
                                          {"type": "text", "text": "Mia live?"}]}]
    _, _, got = s.chat(messages=parts)
    t.ok("parts", got["choices"][0]["message"]["content"] == message["content"], got)
    history = HELLO + [{"role": "assistant", "content": None, "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "yes"}]
    status, _, got = s.chat(messages=history, max_tokens=4)
    t.ok("a history with calls", status == 200 or "template" in got["error"]["message"], got)


def check_formats(t, s):
    schema = {"type": "object", "properties": {"home": {"enum": ["blue", "red"]}, "old": {"type": "boolean"}},
              "required": ["home", "old"], "additionalProperties": False}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}
    _, _, got = s.chat(response_format=form)
    value = json.loads(got["choices"][0]["message"]["content"])
    t.ok("schema", sorted(value) == ["home", "old"] and got["choices"][0]["finish_reason"] == "stop", got)
    _, _, got = s.chat(response_format={"type": "json_object"}, max_tokens=200, temperature=1, seed=1)
    choice = got["choices"][0]
    t.ok("json_object", choice["message"]["content"].lstrip().startswith("{") and
         (choice["finish_reason"] == "length" or
          isinstance(json.loads(choice["message"]["content"]), dict)), got)
    _, _, got = s.chat(grammar='root ::= "yes" | "no"')
    t.ok("grammar", got["choices"][0]["message"]["content"] in ("yes", "no"), got)
    status, _, got = s.chat(response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {
        "type": "nothing"}}})
    t.ok("bad schema", status == 400 and got["error"]["code"] == "invalid_schema", got)


def check_stream(t, s):
    _, _, whole = s.chat()
    status, headers, data = s.chat(stream=True, stream_options={"include_usage": True})
    lines, chunks = events(data)
    t.ok("head of a stream", status == 200 and headers["content-type"] == "text/event-stream" and
         headers["x-accel-buffering"] == "no" and headers["transfer-encoding"] == "chunked", headers)
    head = {"id": chunks[0]["id"], "object": "chat.completion.chunk", "created": chunks[0]["created"],
            "model": "tenon-tiny"}
    dense = {"separators": (",", ":")}

    def event(choices, **more):
        return "data: " + json.dumps({**head, "choices": choices, **more}, **dense) + "\n\n"

    def choice(delta, reason=None):
        return [{"index": 0, "delta": delta, "finish_reason": reason}]

    pieces = [c["choices"][0]["delta"]["content"] for c in chunks[1:-2]]
    usage = {k: v for k, v in whole["usage"].items()}
    usage["prompt_tokens_details"] = chunks[-1]["usage"]["prompt_tokens_details"]
    want = event(choice({"role": "assistant", "content": ""}))
    want += "".join(event(choice({"content": piece})) for piece in pieces)
    want += event(choice({}, "stop")) + event([], usage=usage) + "data: [DONE]\n\n"
    t.ok("the bytes of a stream", data.decode() == want, data[:3000])
    t.ok("the same text", streamed(chunks) == whole["choices"][0]["message"]["content"], chunks)
    t.ok("a piece for each token", len(pieces) == whole["usage"]["completion_tokens"] - 1, pieces)
    _, _, data = s.chat(stream=True)
    lines, chunks = events(data)
    t.ok("no usage unless asked for", all(c["choices"] for c in chunks) and lines[-1] == "[DONE]", lines)
    _, _, data = s.chat(stream=True, n=3, temperature=1, seed=5)
    _, chunks = events(data)
    _, _, whole = s.chat(n=3, temperature=1, seed=5)
    for i in range(3):
        mine = [c["choices"][0] for c in chunks if c["choices"][0]["index"] == i]
        t.ok(f"stream of choice {i}", streamed(chunks, i) == whole["choices"][i]["message"]["content"] and
             mine[0]["delta"]["role"] == "assistant" and mine[-1]["delta"] == {} and
             [c["finish_reason"] for c in mine[:-1]] == [None] * (len(mine) - 1), mine)
    _, _, data = s.chat(stream=True, stop=["blue house"], logprobs=True)
    _, chunks = events(data)
    _, _, whole = s.chat(stop=["blue house"])
    t.ok("a stop string over several tokens",
         streamed(chunks) == whole["choices"][0]["message"]["content"] and
         "blue" not in streamed(chunks), chunks)
    request = json.dumps({"messages": HELLO, "stream": True, "temperature": 0}).encode()
    head = b"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(request)
    got = s.raw(head + request, 20)
    t.ok("a stream of HTTP/1.0", got.endswith(b"data: [DONE]\n\n") and b"transfer-encoding" not in got, got)


def check_completions(t, s):
    fields = {"prompt": "Once upon a time", "temperature": 0, "max_tokens": 12}
    _, _, got = s.ask("POST", "/v1/completions", fields)
    text = got["choices"][0]["text"]
    alone = t.run("run", t.model, "--raw", "-p", "Once upon a time", "--temp", "0", "-n", "12", *EXACT)
    t.ok("completion", got["object"] == "text_completion" and text == alone.text, (got, alone.text))
    _, _, data = s.ask("POST", "/v1/completions", {**fields, "stream": True})
    lines, chunks = events(data)
    t.ok("its stream", "".join(c["choices"][0]["text"] for c in chunks) == text and
         lines[-1] == "[DONE]", lines)
    _, _, got = s.ask("POST", "/v1/completions", {**fields, "prompt": ["Once upon a time", "Hello"], "n": 2,
                                                  "echo": True})
    t.ok("prompts and choices", [c["index"] for c in got["choices"]] == [0, 1, 2, 3] and
         got["choices"][1]["text"] == "Once upon a time" + text and
         got["choices"][3]["text"].startswith("Hello"), got)
    _, _, ids = s.ask("POST", "/tokenize", {"prompt": "Once upon a time"})
    _, _, got = s.ask("POST", "/v1/completions", {**fields, "prompt": ids["tokens"], "logprobs": 2})
    probs = got["choices"][0]["logprobs"]
    t.ok("token ids and logprobs", got["choices"][0]["text"] == text and len(probs["tokens"]) == 12 and
         len(probs["top_logprobs"][0]) == 2 and probs["text_offset"][0] == 0, got)
    _, _, got = s.ask("POST", "/v1/completions", {**fields, "echo": True, "logprobs": 0, "max_tokens": 1})
    t.ok("offsets count the echo", got["choices"][0]["logprobs"]["text_offset"][-1] ==
         len("Once upon a time"), got)
    _, _, got = s.ask("POST", "/v1/completions", {"prompt": "Once", "temperature": 0})
    t.ok("16 tokens unless asked for", got["usage"]["completion_tokens"] == 16, got)


def check_scores(t, s):
    """Logprobs of a prompt: those that its tokens had when they were generated."""
    fields = {"prompt": "Once upon a time", "temperature": 0, "logprobs": 2, "max_tokens": 90,
              "ignore_eos": True}
    _, _, got = s.ask("POST", "/v1/completions", fields)
    made = got["choices"][0]
    _, _, ids = s.ask("POST", "/tokenize", {"prompt": "Once upon a time"})
    _, _, more = s.ask("POST", "/v1/completions", {**fields, "max_tokens": 0, "echo": True})
    only = more["choices"][0]
    t.ok("a prompt alone", only["text"] == fields["prompt"] and only["finish_reason"] == "length" and
         len(only["logprobs"]["tokens"]) == ids["count"] and only["logprobs"]["token_logprobs"][0] is None and
         only["logprobs"]["top_logprobs"][0] is None and more["usage"]["completion_tokens"] == 0, more)
    _, _, whole = s.ask("POST", "/tokenize", {"prompt": fields["prompt"] + made["text"]})
    asked = {**fields, "prompt": whole["tokens"], "max_tokens": 1, "echo": True, "n": 2}
    _, _, got = s.ask("POST", "/v1/completions", asked)
    for choice in got["choices"]:
        probs = choice["logprobs"]
        first = ids["count"]
        t.ok("the same tokens", len(probs["tokens"]) == whole["count"] + 1 and whole["count"] > 80 and
             probs["tokens"][first:-1] == made["logprobs"]["tokens"], (choice, made))
        # Two sums of the same logits, so not the same in the last bits.
        t.ok("the same logprobs", all(abs(x - y) < 1e-5 for x, y in zip(
            probs["token_logprobs"][first:-1], made["logprobs"]["token_logprobs"])), (probs, made))
        t.ok("the same best tokens", all(list(x) == list(y) and all(abs(x[k] - y[k]) < 1e-4 for k in x)
                                         for x, y in zip(probs["top_logprobs"][first:-1],
                                                         made["logprobs"]["top_logprobs"])), (probs, made))
        t.ok("offsets are places in the text", choice["text"].startswith(fields["prompt"] + made["text"]) and
             all(choice["text"].encode()[at:].startswith(token.encode())
                 for at, token in zip(probs["text_offset"], probs["tokens"])), choice)
    _, _, data = s.ask("POST", "/v1/completions", {**asked, "stream": True})
    chunks = [c["choices"][0] for c in events(data)[1] if c["choices"][0]["index"] == 1]
    t.ok("in a stream", chunks[0]["logprobs"]["tokens"] == probs["tokens"][:-1] and
         sum((c["logprobs"]["token_logprobs"] for c in chunks if c["logprobs"]), []) ==
         probs["token_logprobs"], chunks)
    status, _, got = s.ask("POST", "/v1/completions", {**fields, "max_tokens": 0})
    t.ok("nothing asked for", status == 400 and got["error"]["param"] == "max_tokens", got)
    status, _, got = s.ask("POST", "/v1/completions", {**asked, "prompt": [5] * 600})
    t.ok("too long to be scored", status == 400 and got["error"]["code"] == "context_length_exceeded", got)


def check_ollama(t, s):
    _, _, whole = s.chat()
    text = whole["choices"][0]["message"]["content"]
    _, _, got = s.ask("GET", "/api/version")
    t.ok("version", tuple(map(int, got["version"].split("."))) >= (0, 6, 4), got)
    _, _, got = s.ask("GET", "/api/tags")
    t.ok("tags", got["models"][0]["name"] == "tenon-tiny", got)
    _, _, got = s.ask("POST", "/api/show", {"model": "tenon-tiny:latest"})
    t.ok("show", got["model_info"]["llama.context_length"] == 512 and
         "completion" in got["capabilities"] and "<|im_start|>" in got["template"] and
         got["model_info"]["general.file_type"] == 7 and
         got["model_info"]["tokenizer.ggml.tokens"] is None and
         got["details"]["quantization_level"] == "Q8_0", got)
    zero = {"messages": HELLO, "options": {"temperature": 0}, "model": "tenon-tiny"}
    status, headers, data = s.ask("POST", "/api/chat", zero)
    lines = [json.loads(line) for line in data.decode().splitlines()]
    t.ok("chat in lines", status == 200 and headers["content-type"] == "application/x-ndjson" and
         "".join(x["message"]["content"] for x in lines) == text and
         [x["done"] for x in lines] == [False] * (len(lines) - 1) + [True] and
         lines[-1]["done_reason"] == "stop", data)
    _, _, got = s.ask("POST", "/api/chat", {**zero, "stream": False})
    t.ok("chat at once", got["message"]["content"] == text and got["done"] is True, got)
    _, _, got = s.ask("POST", "/api/generate", {"prompt": HELLO[0]["content"], "stream": False,
                                                "options": {"temperature": 0, "num_predict": 3}})
    t.ok("generate", text.startswith(got["response"]) and got["done_reason"] == "length", got)
    _, _, openai = s.chat(logprobs=True, top_logprobs=2, max_tokens=3)
    entries = openai["choices"][0]["logprobs"]["content"]
    asked = {**zero, "options": {"temperature": 0, "num_predict": 3}, "logprobs": True, "top_logprobs": 2}
    _, _, got = s.ask("POST", "/api/chat", {**asked, "stream": False})
    t.ok("logprobs at once", got["logprobs"] == entries, got)
    _, _, data = s.ask("POST", "/api/chat", asked)
    lines = [json.loads(line) for line in data.decode().splitlines()]
    t.ok("logprobs in lines", sum((x.get("logprobs", []) for x in lines), []) == entries, lines)
    for path, wrong in (("chat", {"think": "much"}), ("chat", {"think": 3}), ("generate", {"think": 3}),
                        ("chat", {"keep_alive": "soon"}), ("chat", {"keep_alive": [1]})):
        status, _, got = s.ask("POST", "/api/" + path, {**zero, "prompt": "a", **wrong})
        t.ok(f"wrong: {wrong}", status == 400 and next(iter(wrong)) in got["error"], got)
    _, _, got = s.ask("POST", "/api/generate", {"model": "tenon-tiny"})
    t.ok("load", got["done_reason"] == "load", got)
    _, _, got = s.ask("POST", "/api/chat", {**zero, "format": {"type": "boolean"}, "stream": False})
    t.ok("format", json.loads(got["message"]["content"]) in (True, False), got)
    status, _, got = s.ask("POST", "/api/chat", {**zero, "model": "other"})
    t.ok("form of errors", status == 404 and isinstance(got["error"], str), got)
    status, _, got = s.ask("POST", "/api/pull", {"model": "x"})
    t.ok("no pull", status == 404 and isinstance(got["error"], str), got)


WRONG = [  # fields, param, code
    ({"messages": []}, "messages", None),
    ({"messages": "Hello"}, "messages", None),
    ({"messages": [{"role": "robot", "content": "a"}]}, "messages[0].role", None),
    ({"messages": [{"content": "a"}]}, "messages[0].role", None),
    ({"messages": [{"role": "user"}]}, "messages[0].content", None),
    ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content", None),
    ({"messages": HELLO + [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
     "messages[1].content", "unsupported_value"),
    ({"messages": HELLO, "temperature": "hot"}, "temperature", None),
    ({"messages": HELLO, "temperature": -1}, "temperature", None),
    ({"messages": HELLO, "top_p": 2}, "top_p", None),
    ({"messages": HELLO, "max_tokens": 0}, "max_tokens", None),
    ({"messages": HELLO, "max_tokens": 1.5}, "max_tokens", None),
    ({"messages": HELLO, "n": 1000}, "n", None),
    ({"messages": HELLO, "stop": [""]}, "stop", None),
    ({"messages": HELLO, "stop": ["a"] * 17}, "stop", None),
    ({"messages": HELLO, "top_logprobs": 2}, "top_logprobs", None),
    ({"messages": HELLO, "logprobs": True, "top_logprobs": 21}, "top_logprobs", None),
    ({"messages": HELLO, "logit_bias": {"999999": 1}}, "logit_bias", None),
    ({"messages": HELLO, "logit_bias": {"1": 101}}, "logit_bias", None),
    ({"messages": HELLO, "response_format": {"type": "xml"}}, "response_format.type", None),
    ({"messages": HELLO, "response_format": {"type": "json_schema"}},
     "response_format.json_schema.schema", None),
    ({"messages": HELLO, "grammar": "root ::= nothing"}, "grammar", "invalid_schema"),
    ({"messages": HELLO, "functions": []}, "functions", "unsupported_parameter"),
    ({"messages": HELLO, "stream": "yes"}, "stream", None),
    ({"messages": HELLO, "modalities": ["text", "audio"]}, "modalities", "unsupported_value"),
    ({"messages": HELLO, "cache_salt": ""}, "cache_salt", None),
    ({"messages": HELLO, "min_tokens": -1}, "min_tokens", None),
    ({"messages": HELLO, "reasoning_effort": "much"}, "reasoning_effort", None),
    ({"messages": HELLO, "continue_final_message": True}, "continue_final_message", None),
    ({"messages": HELLO, "stream_options": {"include_usage": 1}}, "stream_options.include_usage", None),
    ({"messages": [{"role": "user", "content": "many words " * 600}]}, "messages", "context_length_exceeded"),
]
NO_JSON = [b"", b"{", b"nothing", b"[1]", b'{"messages": [], "messages": []}', b'{"a": "\x01"}',
           b'{"a": "\xff"}',
           b'{"a": 01}', b'{"a": 1,}', b'{"a": [1,]}', b'{"a": 1} x', b'\xef\xbb\xbf{}', b'{"a": "\\x"}',
           b'{"a": ' + b"[" * 100 + b"]" * 100 + b"}", b'{"a": 1e999}', b'{"a" 1}',
           b'{1: 2}', b'"text"', b"{}"]


def check_wrong(t, s):
    for fields, param, code in WRONG:
        status, _, got = s.ask("POST", "/v1/chat/completions", fields)
        error = got.get("error", {})
        t.ok(f"wrong: {param}", status == 400 and error.get("param") == param and error["code"] == code and
             error["type"] == "invalid_request_error" and len(error["message"]) > 10, (status, got))
    _, _, got = s.ask("POST", "/v1/chat/completions", WRONG[-1][0])
    t.ok("words that clients look for", "maximum context length" in got["error"]["message"] and
         "exceeds the available context size" in got["error"]["message"] and got["error"]["n_ctx"] == 512 and
         got["error"]["n_prompt_tokens"] > 512, got)
    for text in NO_JSON:
        status, _, got = s.ask("POST", "/v1/chat/completions", text)
        t.ok(f"no JSON: {text[:30]}", status == 400 and got["error"]["type"] == "invalid_request_error", got)
    status, headers, got = s.ask("GET", "/v1/chat/completions")
    t.ok("method", status == 405 and headers["allow"] == "POST, OPTIONS" and "error" in got, headers)
    for method in ("PUT", "DELETE", "PATCH"):
        t.ok(f"method {method}", s.ask(method, "/v1/models")[0] == 405)
    status, _, got = s.ask("GET", "/v1/nothing")
    t.ok("path", status == 404 and got["error"]["type"] == "not_found_error", got)
    status, _, got = s.ask("POST", "/v1/chat/completions", {"messages": HELLO, "model": "gpt-4"})
    t.ok("model", status == 404 and got["error"]["code"] == "model_not_found" and
         got["error"]["param"] == "model", got)
    status, _, _ = s.chat(model="", user="me", unknown_field=[1], temperature=None)
    t.ok("unknown fields, null and an empty model are fine", status == 200)
    t.ok("still well", s.ask("GET", "/health")[0] == 200)


def check_many(t, s):
    """64 streams at a time, each with a text of its own."""
    results = [None] * 64

    def one(i):
        fields = {"messages": [{"role": "user", "content": f"Question {i % 8}: where does Mia live?"}],
                  "temperature": 0, "max_tokens": 24, "stream": True}
        _, _, data = s.ask("POST", "/v1/chat/completions", fields, timeout=240)
        results[i] = events(data)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    t.ok("all streams end", all(r and r[0][-1] == "[DONE]" for r in results))
    for i in range(64):
        if results[i]:
            t.ok(f"stream {i} has its text",
                 streamed(results[i][1]) == streamed(results[i % 8][1]), results[i][0])
    alone = t.run("run", t.model, "-st", "-p", "Question 5: where does Mia live?", "--temp", "0",
                  "-n", "24", *EXACT)
    t.ok("the text as alone", streamed(results[5][1]) == alone.text.rstrip("\n"), (results[5], alone.text))


def check_metrics(t, s):
    _, headers, text = s.ask("GET", "/metrics")
    t.ok("type of metrics", headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8", headers)
    lines = text.decode().splitlines()
    known = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    for line in lines:
        if not line.startswith("#"):
            name = re.match(r"[a-z_]+", line).group(0)
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            t.ok(f"metric {line}", (name in known or base in known) and
                 float(line.rsplit(" ", 1)[1]) >= 0, line)
    t.ok("tokens were counted", s.metric("tenon_generated_tokens_total") > 100)


def check_embeddings(t, golden):
    model = os.path.join(golden, "bert.gguf") if golden else ""
    if not os.path.exists(model):
        t.skip("embeddings", "no golden encoder")
        return
    s = Server(t, *EXACT, model=model)
    if s.port is None:
        t.ok("an encoder is served", False, s.err)
        return
    _, _, got = s.ask("POST", "/v1/embeddings", {"input": ["hello world", "a"]})
    alone = t.run("embed", model, "--json", "hello world", *EXACT)
    t.ok("embeddings", got["data"][0]["embedding"] == json.loads(alone.text)["embedding"], (got, alone.err))
    _, _, coded = s.ask("POST", "/v1/embeddings", {"input": "hello world", "encoding_format": "base64"})
    data = base64.b64decode(coded["data"][0]["embedding"])
    t.ok("base64", [round(x, 6) for x in struct.unpack(f"<{len(data) // 4}f", data)] ==
         [round(x, 6) for x in got["data"][0]["embedding"]], coded)
    _, _, ids = s.ask("POST", "/tokenize", {"prompt": "hello world"})
    for given in (ids["tokens"], [ids["tokens"]]):
        _, _, got = s.ask("POST", "/v1/embeddings", {"input": given})
        t.ok(f"embeddings of {given}",
             got["data"][0]["embedding"] == json.loads(alone.text)["embedding"], got)
    for given in ([], "", [[]], [1, 99999999], [[1], "a"], [[1], 2], {}):
        status, _, got = s.ask("POST", "/v1/embeddings", {"input": given})
        t.ok(f"no embeddings of {given}", status == 400 and got["error"]["param"] == "input", got)
    _, _, got = s.ask("POST", "/api/embeddings", {"prompt": "hello world"})
    t.ok("the older route of Ollama", got == {"embedding": json.loads(alone.text)["embedding"]}, got)
    status, _, got = s.ask("POST", "/api/embeddings", {"input": "a"})
    t.ok("its field", status == 400 and "prompt" in got["error"], got)
    long = "hello world " * 2000
    status, _, got = s.ask("POST", "/v1/embeddings", {"input": long})
    t.ok("too long", status == 400 and got["error"]["code"] == "context_length_exceeded", got)
    status, _, got = s.ask("POST", "/api/embed", {"input": long})
    most = s.ask("GET", "/v1/models")[2]["data"][0]["max_model_len"]
    t.ok("cut for Ollama", status == 200 and got["prompt_eval_count"] == most, (got.get("error"), most))
    status, _, got = s.ask("POST", "/api/embed", {"input": long, "truncate": False})
    t.ok("unless it says no", status == 400 and "context" in got["error"], got)
    status, _, got = s.chat()
    t.ok("no text", status == 400 and got["error"]["code"] == "unsupported_model", got)
    s.end()


def check_rerank(t):
    g = cli.Gguf(t.model)
    arch = g.text("general.architecture")
    width = g.u32(arch + ".embedding_length")
    g.add_f32("cls.output.weight", [width, 1], [float(i == 0) for i in range(width)])
    g.set_u32(arch + ".pooling_type", 4)
    g.set_text("tokenizer.chat_template.rerank", "<q>{query}</q><d>{document}</d>")
    model = g.write(t.temp("rerank.gguf"))
    s = Server(t, *EXACT, model=model)
    texts = ["me and you", "a house", "the river"]
    alone = t.run("classify", model, "--query", "who", *EXACT, stdin="\n".join(texts).encode())
    scores = [1 / (1 + math.exp(-float(line))) for line in alone.text.split()]
    order = sorted(range(3), key=lambda i: -scores[i])
    _, _, got = s.ask("POST", "/v1/rerank", {"query": "who", "documents": texts, "return_documents": True})
    t.ok("rerank", [r["index"] for r in got["results"]] == order and
         all(abs(r["relevance_score"] - scores[r["index"]]) < 1e-5 and
             r["document"]["text"] == texts[r["index"]] for r in got["results"]), (got, scores))
    _, _, got = s.ask("POST", "/rerank", {"query": "who", "texts": texts, "top_n": 2})
    t.ok("the other form", [r["index"] for r in got] == order[:2] and "score" in got[0], got)
    status, _, got = s.ask("POST", "/v1/rerank", {"query": "who", "documents": []})
    t.ok("no documents", status == 400 and got["error"]["param"] == "documents", got)
    status, _, got = s.ask("POST", "/v1/embeddings", {"input": "a"})
    t.ok("no embeddings of a reranker", status == 400 and got["error"]["code"] == "unsupported_model", got)
    t.ok("exit code of the reranker", s.end() == 0, s.err)


def check_variables(t):
    """What fields of a request are in the chat template, and what the template says of the model."""
    g = cli.Gguf(t.model)
    g.set_text("tokenizer.chat_template", "{{ enable_thinking }} {{ reasoning_effort }} {{ more }} "
               "{% for m in messages %}{{ m.content }}{% endfor %}")
    s = Server(t, *EXACT, "-c", "512", model=g.write(t.temp("variables.gguf")))
    more = {"chat_template_kwargs": {"more": 7}}
    both = {"chat_template_kwargs": {"enable_thinking": True, "reasoning_effort": "own"}}
    for fields, want in (({}, "  "), ({"reasoning_effort": "none"}, "False  "),
                         ({"reasoning_effort": "low"}, " low "), ({"reasoning_effort": None}, "  "),
                         ({"reasoning_effort": "high", **more}, " high 7"),
                         ({"reasoning_effort": "none", **both}, "True own "), (more, "  7"),
                         ({"reasoning_effort": "high", "chat_template_kwargs": {}}, " high "),
                         ({"think": True}, "True  "), ({"think": False}, "False  "),
                         ({"think": "max"}, " max ")):
        turns = [{"role": "user", "content": "x"}]
        _, _, got = s.ask("POST", "/apply-template", {"messages": turns, **fields})
        t.ok(f"template with {fields}", got.get("prompt") == want + " x", got)
    counts = []
    for fields in ({}, {"think": "medium"}, {"think": True}):
        _, _, got = s.ask("POST", "/api/generate", {"prompt": "x", "stream": False,
                                                    "options": {"num_predict": 1}, **fields})
        counts.append(got["prompt_eval_count"])
    t.ok("think in /api/generate", min(counts[1:]) > counts[0], counts)
    _, _, got = s.ask("POST", "/api/show", {"model": "variables"})
    t.ok("capabilities", got["capabilities"] == ["completion", "tools", "thinking"], got)
    t.ok("exit code with variables", s.end() == 0, s.err)


def check_thoughts(t):
    """A schema is one of the answer, and the thought before it is free."""
    think = 2045  # <|endoftext|>, which becomes a token of text
    g = cli.Gguf(t.model)
    words = [word.decode() for word in g.texts("tokenizer.ggml.tokens")]
    g.set_texts("tokenizer.ggml.tokens", [*words[:think], "<think>", *words[think + 1:]])
    kinds = bytearray(g.keys["tokenizer.ggml.token_type"])
    struct.pack_into("<i", kinds, 16 + 4 * think, 4)
    g.keys["tokenizer.ggml.token_type"] = bytes(kinds)
    chat = g.text("tokenizer.chat_template")
    g.set_text("tokenizer.chat_template", chat + "{% if enable_thinking %}<think>\n{% endif %}"
               "{% if enable_thinking is false %}<think></think>{% endif %}")
    s = Server(t, *EXACT, "-c", "512", "-np", "2", model=g.write(t.temp("thoughts.gguf")))
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": [12, 34]}}}
    inside = {"chat_template_kwargs": {"enable_thinking": True}, "max_tokens": 8}
    _, _, free = s.chat(**inside)
    _, _, got = s.chat(response_format=form, **inside)
    message = got["choices"][0]["message"]
    t.ok("a thought that the prompt began", message == free["choices"][0]["message"] and
         message["reasoning_content"] and not message["content"], (free, got))
    own = {"logit_bias": {str(think): 100}, "max_tokens": 4}
    _, _, got = s.chat(response_format=form, **own)
    message = got["choices"][0]["message"]
    t.ok("a thought of its own", message.get("reasoning_content") and not message["content"], got)
    _, _, got = s.chat(response_format=form, reasoning_effort="none", **own)
    t.ok("none where it is turned off", json.loads(got["choices"][0]["message"]["content"]) in (12, 34), got)
    _, _, got = s.chat(response_format=form)
    t.ok("or not wanted", json.loads(got["choices"][0]["message"]["content"]) in (12, 34), got)
    for path, fields in (("chat", {"messages": HELLO}), ("generate", {"prompt": "Where does Mia live?"})):
        _, _, got = s.ask("POST", "/api/" + path, {**fields, "format": {"enum": [12]}, "think": True,
                                                   "stream": False, "options": {"num_predict": 4}})
        t.ok(f"thoughts of /api/{path}", got.get("message", got).get("thinking") and
             not got.get("message", {}).get("content", got.get("response")), got)
    bad = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nothing"}}}
    status, _, got = s.chat(response_format=bad)
    t.ok("a wrong schema", status == 400 and got["error"]["code"] == "invalid_schema" and
         got["error"]["param"] == "response_format.json_schema.schema", got)
    t.ok("exit code with thoughts", s.end() == 0, s.err)
    thought = free["choices"][0]["message"]["reasoning_content"]
    for name, want in (("reasoning", {"content": "", "reasoning": thought}), ("none", {"content": thought})):
        s = Server(t, *EXACT, "-c", "512", "--reasoning-field", name, model=t.temp("thoughts.gguf"))
        _, _, got = s.chat(**inside)
        message = got["choices"][0]["message"]
        t.ok(f"--reasoning-field {name}", message == {"role": "assistant", "refusal": None, **want}, got)
        _, _, data = s.chat(**inside, stream=True)
        joined = {}
        for chunk in events(data)[1]:
            for key, value in chunk["choices"][0]["delta"].items():
                joined[key] = joined.get(key, "") + value
        t.ok(f"--reasoning-field {name} in a stream", joined == {"role": "assistant", **want}, joined)
        s.end()


def main():
    t, _, golden = cli.arguments()
    need_server(t)
    s = Server(t, *EXACT, "-np", "16")
    if not t.ok("the server starts", s.port is not None, s.err):
        sys.exit(t.done())
    for check in (check_small_routes, check_page, check_chat, check_formats, check_stream, check_completions,
                  check_scores, check_ollama, check_wrong, check_many, check_metrics):
        check(t, s)
    t.ok("exit code of the server", s.end() == 0, s.err)
    t.ok("one line says where it listens", s.err.count(b"listening on") == 1, s.err)
    check_embeddings(t, golden)
    check_rerank(t)
    check_variables(t)
    check_thoughts(t)
    sys.exit(t.done())


main()
