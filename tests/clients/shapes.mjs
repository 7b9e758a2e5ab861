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

const model = object({ id: text, object: { const: "model" }, created: count, owned_by: text, status: object({
  value: { enum: ["unloaded", "loading", "loaded", "failed", "lost"] } }) }, { max_model_len: count });
// --- responses ---

const whole = { enum: ["completed", "incomplete"] };
const part = { anyOf: [
  object({ type: { const: "output_text" }, text, annotations: list({}), logprobs: list({}) }),
  object({ type: { const: "reasoning_text" }, text })] };
const item = { anyOf: [
  object({ type: { const: "message" }, id: text, role: { const: "assistant" }, status: text, content: list(part) }),
  object({ type: { const: "reasoning" }, id: text, summary: list({}), content: list(part) }),
  object({ type: { const: "function_call" }, id: text, call_id: { type: "string", minLength: 1 }, name: text,
    arguments: text, status: text })] };
const response = object({ id: { type: "string", pattern: "^resp_." }, object: { const: "response" },
  created_at: count, status: { enum: [...whole.enum, "failed", "in_progress"] }, model: text,
  error: nullable(object({ code: text, message: text })),
  incomplete_details: nullable(object({ reason: { const: "max_output_tokens" } })), output: list(item),
  instructions: nullable(text), max_output_tokens: nullable(count), metadata: { type: "object" },
  parallel_tool_calls: { type: "boolean" }, previous_response_id: { type: "null" }, reasoning: { type: "object" },
  temperature: { type: "number" }, text: { type: "object" }, tool_choice: {}, tools: list({}),
  top_p: { type: "number" }, truncation: { const: "disabled" }, usage: nullable(object({ input_tokens: count,
    input_tokens_details: object({ cached_tokens: count }), output_tokens: count,
    output_tokens_details: object({ reasoning_tokens: count }), total_tokens: count })) });
const place = { item_id: text, output_index: count };
const inside = { ...place, content_index: count };
const event = (names, members) => object({ type: { enum: names.map((name) => `response.${name}`) },
  sequence_number: count, ...members });
const responseEvent = { anyOf: [
  event(["created", "in_progress", "completed", "incomplete", "failed"], { response }),
  event(["output_item.added", "output_item.done"], { output_index: count, item }),
  event(["content_part.added", "content_part.done"], { ...inside, part }),
  event(["output_text.delta", "reasoning_text.delta"], { ...inside, delta: text }),
  event(["output_text.done", "reasoning_text.done"], { ...inside, text }),
  event(["function_call_arguments.delta"], { ...place, delta: text }),
  event(["function_call_arguments.done"], { ...place, arguments: text })] };

// --- Ollama ---

const details = object({ format: { const: "gguf" }, family: text, families: list(text), parameter_size: text,
  quantization_level: text, parent_model: text });
const times = object({ done: { const: true }, done_reason: { enum: ["stop", "length", "load", "unload"] },
  total_duration: count, load_duration: count, prompt_eval_count: count, prompt_eval_duration: count,
  eval_count: count, eval_duration: count });
const named = object({ model: text, created_at: { type: "string", pattern: "^\\d{4}-\\d\\d-\\d\\dT.*Z$" },
  done: { type: "boolean" } });
// A request that only loads or unloads a model has no times.
const ended = { type: "object", properties: { done: { const: true },
  done_reason: { not: { enum: ["load", "unload"] } } } };
const line = (inner) => ({ allOf: [named, inner], if: ended, then: times });
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
  "/v1/responses": { allOf: [response, object({ status: whole })] },
  "/v1/responses stream": responseEvent,
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

// Takes the complete lines off the text of a stream, and returns what is left.
function checkLines(path, type, body) {
  const lines = body.split("\n");
  const rest = lines.pop();
  for (const one of lines) {
    if (type.startsWith("text/event-stream")) {
      if (one.startsWith("data: ") && one !== "data: [DONE]") checkOne(`${path} stream`, JSON.parse(one.slice(6)));
    } else if (one) {
      checkOne(path, JSON.parse(one));
    }
  }
  return rest;
}

// The statuses and paths of answers that were seen.
export const seen = [];

// The events of a stream are checked as they come, also of one that the client leaves; other bodies at the end.
export async function checkedFetch(address, options) {
  const response = await fetch(address, options);
  const { pathname } = new URL(address instanceof Request ? address.url : address);
  seen.push(`${response.status} ${pathname}`);
  if (!response.body) return response;
  const type = response.headers.get("content-type") ?? "";
  const decoder = new TextDecoder();
  const name = response.ok || pathname.startsWith("/api/") ? pathname : "error";
  const streams = type.startsWith("text/event-stream") || type.startsWith("application/x-ndjson");
  let body = "";
  const watched = response.body.pipeThrough(new TransformStream({
    transform(bytes, controller) {
      body += decoder.decode(bytes, { stream: true });
      if (streams) body = checkLines(name, type, body);
      controller.enqueue(bytes);
    },
    flush() {
      if (!streams) checkOne(name, JSON.parse(body));
      else ok(`the stream of ${pathname} ends with a line`, body === "", body);
    },
  }));
  return new Response(watched, { status: response.status, headers: response.headers });
}
