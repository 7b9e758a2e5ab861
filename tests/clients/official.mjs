// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// `tenon serve` and the official clients for JavaScript as they are, with every answer checked by its shape.
//     node official.mjs TENON MODEL [EMBEDDER]
// Exit code 77 where the packages (`npm ci` in tests/clients) are missing.
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { done, grows, metric, ok, serve, skip, step } from "./serve.mjs";

const [tenon, model, embedder] = process.argv.slice(2);
const NODE = Number(process.versions.node.split(".")[0]);
const HELLO = [{ role: "user", content: "Where does Mia live?" }];
const ANSWER = "Mia lives in the blue house by the river.";
const PARAMETERS = { type: "object", properties: { a: { enum: [1, 2] }, b: { enum: [3, 4] } },
  required: ["a", "b"], additionalProperties: false };
const ADD = { type: "function", function: { name: "add", description: "adds numbers", parameters: PARAMETERS } };
const CHOSEN = { type: "function", function: { name: "add" } };
const CANCELLED = 'tenon_finished_total{reason="cancelled"}';

async function load() {
  try {
    return { openai: await import("openai"), zodFormat: await import("openai/helpers/zod"),
      openai7: NODE >= 22 ? await import("openai7") : null, ollama: await import("ollama"), ai: await import("ai"),
      compatible: await import("@ai-sdk/openai-compatible"), zod: await import("zod"),
      shapes: await import("./shapes.mjs") };
  } catch (error) {
    return skip(`the packages of tests/clients are not installed: ${error.message}`);
  }
}

const { openai, zodFormat, openai7, ollama, ai, compatible, zod, shapes } = await load();
const { z } = zod;

// --- openai ----------------------------------------------------------------------------------------------

const client = (library, url, more = {}) =>
  new library.OpenAI({ baseURL: `${url}/v1`, apiKey: "none", fetch: shapes.checkedFetch, ...more });

async function checkChat(api, name) {
  const models = [];
  for await (const one of api.models.list()) models.push(one.id);
  ok("models", models.length === 1 && models[0] === name, models);
  ok("one model", (await api.models.retrieve(name)).id === name);
  const fields = { model: name, messages: HELLO, temperature: 0 };
  const whole = await api.chat.completions.create({ ...fields, logprobs: true, top_logprobs: 2 });
  const { message, finish_reason: reason, logprobs } = whole.choices[0];
  ok("chat", message.content === ANSWER && reason === "stop" && logprobs.content.length > 5, whole);
  const stream = await api.chat.completions.create({ ...fields, stream: true,
    stream_options: { include_usage: true } });
  let text = "";
  let usage = null;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? "";
    usage = chunk.usage ?? usage;
  }
  ok("stream", text === ANSWER && usage.total_tokens === whole.usage.total_tokens, { text, usage });
  const helper = api.chat.completions.stream({ ...fields, n: 2 });
  const final = await helper.finalChatCompletion();
  ok("stream with its helper", final.choices.length === 2 && final.choices[1].message.content === ANSWER, final);
  const raw = await api.completions.create({ model: name, prompt: ["Mia", "Once"], max_tokens: 4 });
  ok("completions", raw.choices.length === 2 && raw.choices[1].index === 1, raw);
  const pieces = await api.completions.create({ model: name, prompt: "Mia", max_tokens: 4, stream: true });
  let continued = 0;
  for await (const chunk of pieces) continued += chunk.choices[0].text.length;
  ok("completions as a stream", continued > 0);
}

async function checkTools(api, name) {
  const fields = { model: name, messages: HELLO, temperature: 0, parallel_tool_calls: false };
  const tools = { ...fields, tools: [ADD], tool_choice: "required" };
  const fits = (call) => {
    const { a, b } = JSON.parse(call.function.arguments);
    return call.function.name === "add" && [1, 2].includes(a) && [3, 4].includes(b);
  };
  const whole = await api.chat.completions.create(tools);
  const [choice] = whole.choices;
  ok("a call", choice.finish_reason === "tool_calls" && fits(choice.message.tool_calls[0]), whole);
  const final = await api.chat.completions.stream(tools).finalChatCompletion();
  ok("a call by the helper", fits(final.choices[0].message.tool_calls[0]), final);
  const given = [];
  const runner = api.chat.completions.runTools({ ...fields, tool_choice: CHOSEN, tools: [{ type: "function",
    function: { ...ADD.function, parse: JSON.parse, function: ({ a, b }) => {
      given.push(a + b);
      return String(a + b);
    } } }] });
  await runner.done();
  const last = runner.messages.at(-1);
  ok("a function is run", given.length === 1 && last.role === "tool" && last.content === String(given[0]), last);
  const answered = await api.chat.completions.create({ ...fields, tools: [ADD], max_tokens: 8,
    messages: runner.messages });
  ok("the next turn", answered.choices[0].finish_reason !== undefined, answered);
}

async function checkParse(api, name) {
  const shape = z.object({ where: z.enum(["house", "tree"]), sure: z.boolean() });
  const parsed = await api.chat.completions.parse({ model: name, messages: HELLO, temperature: 0,
    response_format: zodFormat.zodResponseFormat(shape, "place") });
  const value = parsed.choices[0].message.parsed;
  ok("a schema", ["house", "tree"].includes(value?.where) && typeof value.sure === "boolean", parsed);
}

async function checkResponses(api, name) {
  const fields = { model: name, input: HELLO[0].content, temperature: 0 };
  const whole = await api.responses.create(fields);
  ok("a response", whole.output_text === ANSWER && whole.status === "completed", whole);
  let text = "";
  for await (const event of await api.responses.create({ ...fields, stream: true }))
    if (event.type === "response.output_text.delta") text += event.delta;
  ok("its events", text === ANSWER, text);
  const final = await api.responses.stream(fields).finalResponse();
  ok("its events with their helper", final.output_text === ANSWER, final);
  const tools = [{ type: "function", name: "add", description: "adds numbers", parameters: PARAMETERS,
    strict: true }];
  const calls = { ...fields, tools, tool_choice: "required", parallel_tool_calls: false };
  const [call] = (await api.responses.create(calls)).output;
  ok("a call in a response", call.type === "function_call" && [1, 2].includes(JSON.parse(call.arguments).a), call);
  const streamed = await api.responses.stream(calls).finalResponse();
  ok("a call in events", streamed.output[0].arguments === call.arguments, streamed.output);
  const next = await api.responses.create({ ...fields, tools, max_output_tokens: 5, input: [
    { role: "user", content: fields.input }, call,
    { type: "function_call_output", call_id: call.call_id, output: "4" }] });
  ok("the turn after it", next.output.length > 0, next);
  const shape = z.object({ where: z.enum(["house", "tree"]) });
  const parsed = await api.responses.parse({ ...fields,
    text: { format: zodFormat.zodTextFormat(shape, "place") } });
  ok("a schema in a response", ["house", "tree"].includes(parsed.output_parsed?.where), parsed.output_text);
}

async function checkErrors(api, library, url, name) {
  const fails = (fields) => api.chat.completions.create({ model: name, messages: HELLO, ...fields })
    .then(() => null, (error) => error);
  const wrong = await fails({ temperature: "hot" });
  ok("wrong field", wrong instanceof library.BadRequestError && wrong.param === "temperature", wrong);
  const absent = await fails({ model: "other" });
  ok("wrong model", absent instanceof library.NotFoundError && absent.code === "model_not_found", absent);
  const before = await metric(url, CANCELLED);
  const stream = await api.chat.completions.create({ model: name, messages: HELLO, stream: true,
    ignore_eos: true });
  for await (const chunk of stream) {
    ok("a chunk before the end", chunk.choices.length === 1);
    break; // aborts
  }
  ok("aborted", await grows(url, CANCELLED, before));
}

// Three ask again and again until the signal comes: one runs, one waits, and one is refused. Returns what each
// of them got last, null for an answer.
function occupy(signal, ask) {
  const repeat = async () => {
    for (;;) {
      const told = await ask().then(() => null, (error) => error);
      if (signal.aborted) return told;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  return Promise.all([1, 2, 3].map(repeat));
}

// The server is busy: who asks is refused until the client of the others leaves.
async function checkRetry(library) {
  const { child, url } = await serve(tenon, model, "-np", "1", "--queue", "1");
  const others = new AbortController();
  const api = client(library, url, { maxRetries: 5, fetch: async (address, options) => {
    const response = await shapes.checkedFetch(address, options);
    if (response.status === 429) others.abort();
    return response;
  } });
  const fields = { model: "", messages: HELLO, max_tokens: 400, ignore_eos: true };
  const busy = client(library, url, { maxRetries: 0, fetch });
  const long = occupy(others.signal, () => busy.chat.completions.create(fields, { signal: others.signal }));
  for (let i = 0; i < 100 && (await metric(url, "tenon_requests_waiting")) < 1; i++)
    await new Promise((resolve) => setTimeout(resolve, 20));
  const refused = () => shapes.seen.filter((one) => one.startsWith("429")).length;
  const first = refused();
  let got = null; // it may get a place that is free for a moment
  for (let i = 0; i < 50 && refused() === first; i++)
    got = await api.chat.completions.create({ ...fields, max_tokens: 3, ignore_eos: false });
  others.abort(); // where none was refused
  ok("a retry after 429", got.choices[0].message.content && refused() > first, refused());
  const told = await long;
  ok("the others were aborted", told.some((one) => one instanceof library.APIUserAbortError), told.map(String));
  child.kill();
}

async function checkKey(library) {
  process.env.TENON_API_KEY = "right";
  const { child, url } = await serve(tenon, model);
  delete process.env.TENON_API_KEY;
  const ask = (apiKey) => client(library, url, { apiKey }).models.list().then((page) => page.data.length,
    (error) => error);
  ok("a wrong key", (await ask("wrong")) instanceof library.AuthenticationError);
  ok("the right key", (await ask("right")) === 1);
  child.kill();
}

// --- ollama ----------------------------------------------------------------------------------------------

async function checkOllama(url, name) {
  const api = new ollama.Ollama({ host: url, fetch: shapes.checkedFetch });
  const options = { temperature: 0 };
  ok("list", (await api.list()).models[0].model === name);
  ok("ps", (await api.ps()).models.length === 1);
  ok("version", /^\d+\.\d+\.\d+$/.test((await api.version()).version));
  const about = await api.show({ model: name });
  ok("show", about.capabilities.includes("tools") && about.capabilities.includes("completion"), about);
  const whole = await api.chat({ model: name, messages: HELLO, options });
  ok("chat", whole.message.content === ANSWER && whole.eval_count > 5, whole);
  let text = "";
  for await (const part of await api.chat({ model: name, messages: HELLO, options, stream: true }))
    text += part.message.content;
  ok("stream", text === ANSWER, text);
  const called = await api.chat({ model: name, messages: HELLO, options, tools: [ADD], tool_choice: CHOSEN,
    parallel_tool_calls: false });
  ok("a call", called.message.tool_calls?.[0].function.name === "add", called);
  const made = await api.generate({ model: name, prompt: "Where does Mia live?", options, format: PARAMETERS });
  ok("a format", [3, 4].includes(JSON.parse(made.response).b), made);
  const before = await metric(url, CANCELLED);
  const long = await api.generate({ model: name, prompt: "Tell me a story.", stream: true,
    options: { num_predict: -1, temperature: 1 }, ignore_eos: true });
  const stopped = (async () => {
    for await (const part of long) if (!part.done) api.abort();
  })().then(() => "ended", (error) => error.name);
  ok("abort", (await stopped) === "AbortError" && (await grows(url, CANCELLED, before)), await stopped);
}

// --- ai --------------------------------------------------------------------------------------------------

async function checkAi(url, name) {
  const provider = compatible.createOpenAICompatible({ name: "tenon", baseURL: `${url}/v1`,
    fetch: shapes.checkedFetch, includeUsage: true, supportsStructuredOutputs: true });
  const common = { model: provider(name), temperature: 0 };
  const prompt = "Where does Mia live?";
  const whole = await ai.generateText({ ...common, prompt });
  ok("text", whole.text === ANSWER && whole.finishReason === "stop" && whole.usage.outputTokens > 5, whole.text);
  const streamed = ai.streamText({ ...common, prompt });
  let text = "";
  for await (const piece of streamed.textStream) text += piece;
  ok("stream", text === ANSWER && (await streamed.usage).outputTokens === whole.usage.outputTokens, text);
  const inputSchema = z.object({ a: z.union([z.literal(1), z.literal(2)]) });
  const add = ai.tool({ description: "adds", inputSchema, execute: async ({ a }) => a + 1 });
  const one = { ...common, prompt, tools: { add }, toolChoice: "required",
    providerOptions: { tenon: { parallel_tool_calls: false } } };
  const called = await ai.generateText(one);
  ok("a tool", called.finishReason === "tool-calls" && [2, 3].includes(called.toolResults[0]?.output),
    called.toolResults);
  const stream = ai.streamText(one);
  await stream.consumeStream();
  ok("a tool in a stream", [2, 3].includes((await stream.toolResults)[0]?.output), await stream.toolResults);
  const shape = z.object({ where: z.enum(["house", "tree"]) });
  const made = await ai.generateText({ ...common, prompt, output: ai.Output.object({ schema: shape }) });
  ok("an object", ["house", "tree"].includes(made.output.where), made.output);
}

// The library stops reading: the server ends the request. One that is refused is tried again by itself.
async function checkAiLimits(name) {
  const { child, url } = await serve(tenon, model, "-np", "1", "--queue", "1");
  const others = new AbortController();
  const provider = compatible.createOpenAICompatible({ name: "tenon", baseURL: `${url}/v1`,
    fetch: async (address, options) => {
      const response = await shapes.checkedFetch(address, options);
      if (response.status === 429) others.abort();
      return response;
    } });
  const long = { model: provider(name), prompt: "Tell me a story.", maxOutputTokens: 400, temperature: 1 };
  const before = await metric(url, CANCELLED);
  const stop = new AbortController();
  // Where the model ends by itself there would be nothing to abort.
  const stream = ai.streamText({ ...long, abortSignal: stop.signal, onError: () => {},
    providerOptions: { tenon: { ignore_eos: true } } });
  for await (const piece of stream.textStream) {
    ok("a piece before the end", piece.length > 0);
    stop.abort();
    break;
  }
  ok("aborted", await grows(url, CANCELLED, before));
  const body = JSON.stringify({ prompt: "Mia", max_tokens: 400, ignore_eos: true });
  const busy = occupy(others.signal, () => fetch(`${url}/v1/completions`, { method: "POST", body,
    signal: others.signal }).then((response) => response.text()));
  for (let i = 0; i < 100 && (await metric(url, "tenon_requests_waiting")) < 1; i++)
    await new Promise((resolve) => setTimeout(resolve, 20));
  const refused = () => shapes.seen.filter((one) => one.startsWith("429")).length;
  const first = refused();
  let got = null;
  for (let i = 0; i < 50 && refused() === first; i++)
    got = await ai.generateText({ ...long, maxOutputTokens: 3, maxRetries: 5 });
  others.abort();
  ok("a retry after 429", refused() > first && got.usage.outputTokens > 0, refused());
  await busy;
  child.kill();
}

// Two models in one server, as clients see them.
async function checkSeveral() {
  const folder = mkdtempSync(join(tmpdir(), "tenon-clients-"));
  for (const name of ["one", "two"]) copyFileSync(model, join(folder, `${name}.gguf`));
  const { child, url } = await serve(tenon, folder);
  const api = client(openai, url);
  const ids = [];
  for await (const one of api.models.list()) ids.push(`${one.id} ${one.status.value}`);
  ok("both, not loaded", ids.join() === "one unloaded,two unloaded", ids);
  const answer = await api.chat.completions.create({ model: "two", messages: HELLO, temperature: 0 });
  ok("by name", answer.model === "two" && answer.choices[0].message.content === ANSWER, answer);
  ok("loaded", (await api.models.retrieve("two")).status.value === "loaded");
  const host = new ollama.Ollama({ host: url, fetch: shapes.checkedFetch });
  const [running, ...more] = (await host.ps()).models;
  const rest = (new Date(running.expires_at) - Date.now()) / 1000;
  ok("ps", running.name === "two" && more.length === 0 && rest > 200 && rest < 302, running);
  ok("tags", (await host.list()).models.length === 2);
  await host.generate({ model: "two", prompt: "", keep_alive: 0 });
  for (let i = 0; i < 100 && (await host.ps()).models.length > 0; i++)
    await new Promise((resolve) => setTimeout(resolve, 50));
  ok("unloaded", (await host.ps()).models.length === 0);
  child.kill();
  rmSync(folder, { recursive: true });
}

// --- vectors ---------------------------------------------------------------------------------------------

async function checkVectors() {
  const { child, url } = await serve(tenon, embedder);
  const api = client(openai, url);
  const texts = ["a house", "a tree"];
  const made = await api.embeddings.create({ model: "", input: texts }); // base64 between them
  const plain = await api.embeddings.create({ model: "", input: texts, encoding_format: "float" });
  const [one, other] = [made, plain].map((answer) => answer.data[1].embedding);
  ok("vectors", one.length > 1 && one.every((x, i) => Math.abs(x - other[i]) < 1e-6), [one, other]);
  const host = new ollama.Ollama({ host: url, fetch: shapes.checkedFetch });
  const name = (await host.list()).models[0].model;
  const lines = await host.embed({ model: name, input: texts });
  ok("ollama's vectors", lines.embeddings.length === 2 && lines.embeddings[1].length === one.length, lines);
  child.kill();
}

const { child, url } = await serve(tenon, model);
const { name } = await fetch(`${url}/api/tags`).then((r) => r.json()).then((tags) => tags.models[0]);
for (const [label, library] of Object.entries({ openai, openai7 })) {
  if (!library) continue;
  const api = client(library, url);
  await step(`${label}: chat`, () => checkChat(api, name));
  await step(`${label}: tools`, () => checkTools(api, name));
  await step(`${label}: parse`, () => checkParse(api, name));
  await step(`${label}: responses`, () => checkResponses(api, name));
  await step(`${label}: errors`, () => checkErrors(api, library, url, name));
  await step(`${label}: retry`, () => checkRetry(library));
  await step(`${label}: key`, () => checkKey(library));
}
await step("ollama", () => checkOllama(url, name));
await step("ai", () => checkAi(url, name));
await step("ai: abort and retry", () => checkAiLimits(name));
await step("several models", checkSeveral);
if (embedder) await step("vectors", checkVectors);
child.kill();
done();
