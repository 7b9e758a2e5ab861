// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the tests of `tenon serve` with programs of others share: a server, its metrics, the count of checks.
import { spawn } from "node:child_process";

const SKIPPED = 77;
let passed = 0;
let failed = 0;

export function ok(name, condition, detail = "") {
  if (condition) {
    passed++;
  } else {
    failed++;
    const text = typeof detail === "string" ? detail : JSON.stringify(detail);
    console.log(`FAIL ${name}: ${text?.slice(0, 1000)}`);
  }
}

export function skip(why) {
  console.log(`SKIP: ${why}`);
  process.exit(SKIPPED);
}

// One part of the test: an exception is a failed check.
export async function step(name, run) {
  try {
    await run();
  } catch (error) {
    ok(name, false, String(error?.stack ?? error));
  }
  console.log(`${name}: ${passed} passed, ${failed} failed`);
}

export function done() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed || !passed ? 1 : 0);
}

// A server, and the address that it prints when the model is loaded.
export function serve(tenon, model, ...args) {
  const stdio = ["ignore", "ignore", "pipe"];
  const child = spawn(tenon, ["serve", model, "--port", "0", "--isa", "generic", ...args], { stdio });
  let text = "";
  return new Promise((resolve, reject) => {
    child.stderr.on("data", (data) => {
      text += data;
      const found = /listening on (http:\S+)/.exec(text);
      if (found) resolve({ child, url: found[1] });
    });
    child.on("exit", () => reject(new Error(text)));
  });
}

export async function metric(url, name) {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(text.split("\n").find((line) => line.startsWith(`${name} `))?.split(" ")[1]);
}

// Whether the metric grows above `before` within some seconds.
export async function grows(url, name, before) {
  for (let i = 0; i < 100 && (await metric(url, name)) <= before; i++)
    await new Promise((resolve) => setTimeout(resolve, 100));
  return (await metric(url, name)) > before;
}
