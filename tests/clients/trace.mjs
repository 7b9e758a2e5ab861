// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Traces of --profile in the trace viewer of Chromium: the parser of DevTools, which is part of the browser,
// has to keep every span on its track, and each within those that contain it.
//     node trace.mjs TENON MODEL
// Exit code 77 where playwright-core (`npm ci` in tests/clients), the browser, or this parser is missing.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { done, ok, skip, step } from "./serve.mjs";

const TRACKS = ["load", "main thread", "prompt", "tokens", "steps on cpu"];
const PARSER = "devtools://devtools/bundled/models/trace/trace.js";
const [tenon, model] = process.argv.slice(2);
const browsers = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const browserPath = browsers.find(existsSync);
const work = mkdtempSync(join(tmpdir(), "tenon-trace-"));

// --- what the browser makes of a trace -------------------------------------------------------------------

// In the page: for each track the spans as the parser has them, and how many of them its tree holds.
async function parse([parser, events]) {
  const { TraceModel } = await import(parser);
  const viewer = TraceModel.Model.createWithAllHandlers();
  await viewer.parse(events, { metadata: {}, isFreshRecording: false, showAllEvents: true });
  const { data } = viewer.parsedTrace(0);
  const tracks = {};
  for (const process of data.Renderer.processes.values())
    for (const thread of process.threads.values()) {
      const stack = [...(thread.tree?.roots ?? [])];
      const depths = {};
      for (let node; (node = stack.pop()); stack.push(...node.children))
        depths[node.depth] = (depths[node.depth] ?? 0) + 1;
      tracks[thread.name] = { spans: thread.entries.map((e) => [e.name, e.ts, e.dur]), depths };
    }
  return { tracks, begin: data.Meta.traceBounds.min, end: data.Meta.traceBounds.max };
}

// --- what the file says ----------------------------------------------------------------------------------

// Of the spans of a track, how many lie within 0, 1, ... others.
function depthsOf(spans) {
  const depths = {};
  const ends = [];
  for (const [, ts, dur] of spans) {
    while (ends.length && ends.at(-1) <= ts) ends.pop();
    depths[ends.length] = (depths[ends.length] ?? 0) + 1;
    ends.push(ts + dur);
  }
  return depths;
}

function readTracks(events) {
  const names = new Map();
  const tracks = {};
  for (const e of events) if (e.name === "thread_name") names.set(e.tid, e.args.name);
  const spans = events.filter((e) => e.ph === "X").sort((a, b) => a.ts - b.ts || b.dur - a.dur);
  for (const e of spans) (tracks[names.get(e.tid)] ??= []).push([e.name, e.ts, e.dur]);
  return tracks;
}

// --- the test --------------------------------------------------------------------------------------------

async function check(page, name, args) {
  const path = join(work, `${name}.json`);
  execFileSync(tenon, [...args, "--profile", path], { stdio: ["ignore", "ignore", "pipe"] });
  const { traceEvents } = JSON.parse(readFileSync(path, "utf8"));
  const tracks = readTracks(traceEvents);
  const seen = await page.evaluate(parse, [PARSER, traceEvents]);
  ok(`${name}: tracks`, TRACKS.every((x) => tracks[x]?.length > 0), Object.keys(tracks));
  ok(`${name}: the same tracks`, JSON.stringify(Object.keys(seen.tracks).sort())
    === JSON.stringify(Object.keys(tracks).sort()), Object.keys(seen.tracks));
  for (const [track, spans] of Object.entries(tracks)) {
    const found = seen.tracks[track] ?? { spans: [], depths: {} };
    ok(`${name}: all spans of ${track}`, JSON.stringify(found.spans) === JSON.stringify(spans),
      `${found.spans.length} of ${spans.length}`);
    ok(`${name}: spans of ${track} nest as they did`,
      JSON.stringify(found.depths) === JSON.stringify(depthsOf(spans)), found.depths);
  }
  const all = Object.values(tracks).flat();
  ok(`${name}: from the first to the last`, seen.begin <= Math.min(...all.map((s) => s[1])) + 1
    && seen.end + 1 >= Math.max(...all.map((s) => s[1] + s[2])), [seen.begin, seen.end]);
}

async function main() {
  const { chromium } = await import("playwright-core").catch(() =>
    skip("playwright-core is not installed in tests/clients"));
  if (!browserPath) skip("no Chromium");
  const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"],
    timeout: 180_000 });
  const page = await browser.newPage();
  const loaded = await page.goto(PARSER).then((answer) => answer.status(), () => 0);
  if (loaded !== 200) skip("this browser has no parser of traces");
  await step("run", () => check(page, "run", ["run", model, "-p", "One day a cat", "-n", "24", "--temp", "0",
    "--ignore-eos", "-t", "2"]));
  await step("bench", () => check(page, "bench", ["bench", model, "-p", "64", "-n", "16", "-r", "2",
    "--no-peaks", "-t", "2"]));
  await browser.close();
  done();
}

process.on("exit", () => rmSync(work, { recursive: true, force: true }));
await main();
