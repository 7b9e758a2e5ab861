// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The shapes of answers, from the published descriptions of the interfaces, and a fetch that checks every
// answer and every event of a stream against them.
import Ajv from "ajv";
import { ok } from "./serve.mjs";

const text = { type: "string" };
const count = { type: "integer", minimum: 0 };
const nullable = (schema) => ({ anyOf: [schema, { type: "null" }] });
const list = (items, more = {}) => ({ type: "array", items, ...more });
const object = (properties, optional = {}) => ({ type: "object", required: Object.keys(properties),
  properties: { ...properties, ...optional } });

const reason = { enum: ["stop", "length", "tool_calls"] };
const entry = { token: text, logprob: { type: "number", maximum: 0 }, bytes: nullable(list(count)) };
const logprobs = nullable(object({ content: list(object({ ...entry, top_logprobs: list(object(entry)) })) }));
const usage = object({ prompt_tokens: count, completion_tokens: count, total_tokens: count });
const call = object({ id: { type: "string", minLength: 1, maxLength: 40 }, type: { const: "function" },
  function: object({ name: { type: "string", minLength: 1 }, arguments: text }) });
const piece = object({ index: count }, { id: text, type: { const: "function" },
  function: object({}, { name: text, arguments: text }) });
const head = (kind) => ({ id: { type: "string", pattern: "^[a-z]+-." }, object: { const: kind }, created: count,
  model: text });

const model = object({ id: text, object: { const: "model" }, created: count, owned_by: text });
const details = object({ format: { const: "gguf" }, family: text, families: list(text), parameter_size: text,
  quantization_level: text, parent_model: text });
const times = object({ done: { const: true }, done_reason: { enum: ["stop", "length", "load", "unload"] },
  total_duration: count, load_duration: count, prompt_eval_count: count, prompt_eval_duration: count,
  eval_count: count, eval_duration: count });
const named = object({ model: text, created_at: { type: "string", pattern: "^\\d{4}-\\d\\d-\\d\\dT.*Z$" },
  done: { type: "boolean" } });
const line = (inner) => ({ allOf: [named, inner], if: { type: "object", properties: { done: { const: true } } }, then: times });
const ollamaCall = object({ function: object({ name: text, arguments: { type: "object" } }) });

const SHAPES = {
  error: object({ error: object({ message: { type: "string", minLength: 8 }, type: text, param: nullable(text),
    code: nullable(text) }) }),
  "/v1/chat/completions": object({ ...head("chat.completion"),
    choices: list(object({ index: count, finish_reason: reason, logprobs, message: object({
      role: { const: "assistant" }, content: nullable(text), refusal: { type: "null" } },
      { tool_calls: list(call, { minItems: 1 }) }) }), { minItems: 1 }), usage }),
  "/v1/chat/completions stream": object({ ...head("chat.completion.chunk"), choices: list(object({
    index: count, finish_reason: nullable(reason), delta: object({}, { role: { const: "assistant" },
      content: nullable(text), tool_calls: list(piece, { minItems: 1 }) }) }, { logprobs }), { maxItems: 1 }) },
  { usage: nullable(usage) }),
  "/v1/completions": object({ ...head("text_completion"),
    choices: list(object({ index: count, text, finish_reason: reason })), usage }),
  "/v1/completions stream": object({ ...head("text_completion"),
    choices: list(object({ index: count, text, finish_reason: nullable(reason) })) }),
  "/v1/models": object({ object: { const: "list" },
    data: list(model) }),
  "/v1/models/": model,
  "/v1/embeddings": object({ object: { const: "list" }, model: text, usage: object({ prompt_tokens: count,
    total_tokens: count }), data: list(object({ object: { const: "embedding" }, index: count,
    embedding: { anyOf: [text, list({ type: "number" })] } })) }),
  "/api/chat": line(object({ message: object({ role: { const: "assistant" }, content: text },
    { tool_calls: list(ollamaCall, { minItems: 1 }) }) })),
  "/api/generate": line(object({ response: text })),
  "/api/embed": object({ model: text, embeddings: list(list({ type: "number" })), total_duration: count,
    load_duration: count, prompt_eval_count: count }),
  "/api/tags": object({ models: list(object({ name: text, model: text, modified_at: text, size: count,
    digest: text, details })) }),
  "/api/ps": object({ models: list(object({ name: text, model: text, size: count, expires_at: text })) }),
  "/api/show": object({ details, model_info: { type: "object" }, capabilities: list(text) }),
  "/api/version": object({ version: { type: "string", pattern: "^\\d+\\.\\d+\\.\\d+$" } }),
};

const ajv = new Ajv({ allowUnionTypes: true });
const checks = Object.fromEntries(Object.entries(SHAPES).map(([name, shape]) => [name, ajv.compile(shape)]));

function checkOne(name, value) {
  const check = checks[name] ?? checks[name.replace(/[^/]*$/, "")];
  const fits = check?.(value);
  ok(`shape of ${name}`, fits, check ? `${ajv.errorsText(check.errors)} in ${JSON.stringify(value)}`
    : "no shape is known");
}

function checkBody(path, type, body) {
  if (type.startsWith("text/event-stream")) {
    const events = body.split("\n\n").filter((event) => event.startsWith("data: "));
    for (const event of events) {
      if (event !== "data: [DONE]") checkOne(`${path} stream`, JSON.parse(event.slice(6)));
    }
  } else if (type.startsWith("application/x-ndjson")) {
    for (const one of body.split("\n").filter(Boolean)) checkOne(path, JSON.parse(one));
  } else {
    checkOne(path, JSON.parse(body));
  }
}

// The statuses and paths of answers that were seen.
export const seen = [];

// The body is checked at its end; one that the client leaves is not.
export async function checkedFetch(address, options) {
  const response = await fetch(address, options);
  const { pathname } = new URL(address instanceof Request ? address.url : address);
  seen.push(`${response.status} ${pathname}`);
  if (!response.body) return response;
  const type = response.headers.get("content-type") ?? "";
  const decoder = new TextDecoder();
  let body = "";
  const watched = response.body.pipeThrough(new TransformStream({
    transform(bytes, controller) {
      body += decoder.decode(bytes, { stream: true });
      controller.enqueue(bytes);
    },
    flush() {
      checkBody(response.ok || pathname.startsWith("/api/") ? pathname : "error", type, body);
    },
  }));
  return new Response(watched, { status: response.status, headers: response.headers });
}
