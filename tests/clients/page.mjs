// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The page of `tenon serve` in Chromium.
//     node page.mjs TENON MODEL [FOLDER]     FOLDER: where screenshots go
// Exit code 77 where the browser or playwright-core (`npm ci` in tests/clients) is missing.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { done, grows, metric, ok, serve, skip, step } from "./serve.mjs";

const WAIT_MS = Number(process.env.TENON_TEST_WAIT_MS ?? 30_000);
const [tenon, model, folder] = process.argv.slice(2);
const browsers = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const browserPath = browsers.find(existsSync);
// Fields that make the model busy for a while; the page shows the choices as one text.
const LONG = { ignore_eos: true, n: 16 };

async function playwright() {
  try {
    return await import("playwright-core");
  } catch {
    return skip("playwright-core is not installed in tests/clients");
  }
}

// --- a page and its parts --------------------------------------------------------------------------------

const answers = (page) => page.locator("article.assistant");
const lastText = (page) => answers(page).last().locator(".text").innerText();
const idle = (page) => page.locator("#send").waitFor({ timeout: WAIT_MS });

async function start(page, text) {
  await page.fill("#text", text);
  await page.press("#text", "Enter");
  await page.locator("#stop").waitFor({ timeout: WAIT_MS });
}

async function send(page, text) {
  await page.fill("#text", text);
  await page.press("#text", "Enter");
  await page.locator("article.user", { hasText: text.slice(0, 40) }).last().waitFor();
  await idle(page);
}

async function setField(page, name, value) {
  await page.click("#open-settings");
  await page.fill(name === "system" ? "#system" : `#field-${name}`, value);
  await page.click("#settings-form button[type=submit]");
}

// The next answers of the server are these texts, in events of `size` characters.
async function answerWith(page, text, size = 7) {
  const pieces = [];
  for (let i = 0; i < text.length; i += size) pieces.push(text.slice(i, i + size));
  const event = (choice) => `data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\n`;
  const body = pieces.map((content) => event({ delta: { content }, finish_reason: null })).join("") +
    event({ delta: {}, finish_reason: "stop" }) + "data: [DONE]\n\n";
  await page.unroute("**/v1/chat/completions");
  await page.route("**/v1/chat/completions", (route) =>
    route.fulfill({ status: 200, contentType: "text/event-stream", body }));
}

async function failWith(page, status, code, headers = {}) {
  await page.unroute("**/v1/chat/completions");
  const body = JSON.stringify({ error: { message: `no ${code}`, code } });
  await page.route("**/v1/chat/completions",
    (route) => route.fulfill({ status, headers, contentType: "application/json", body }), { times: 1 });
}

async function picture(page, name) {
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) });
}

// --- what is tested --------------------------------------------------------------------------------------

async function checkChat(page, url) {
  await setField(page, "temperature", "0");
  await send(page, "Where does Mia live?");
  const first = await lastText(page);
  ok("an answer", first.includes("Mia lives"), first);
  ok("figures", /\d+ tokens, [\d.]+ tokens\/s, first after/.test(await answers(page).last().innerText()));
  const heard = await page.locator("#live").innerText();
  ok("a screen reader hears sentences", heard.includes("Mia lives"), heard);
  ok("the focus stays", await page.evaluate(() => document.activeElement?.id) === "text");
  await page.getByRole("button", { name: "Answer again", exact: true }).click();
  await idle(page);
  const second = await lastText(page);
  ok("regenerated", second === first && (await answers(page).count()) === 1, second);
  await page.getByRole("button", { name: "Edit this message and answer again" }).click();
  await page.getByRole("textbox", { name: "Edited message" }).fill("Who is Mia?");
  await page.getByRole("button", { name: "Send the edited message" }).click();
  await page.locator("article.user", { hasText: "Who is Mia?" }).waitFor();
  await idle(page);
  const messages = await page.locator("article").count();
  ok("edited", messages === 2, messages);
  const name = 'tenon_finished_total{reason="cancelled"}';
  const before = await metric(url, name);
  await page.route("**/v1/chat/completions", (route) => { // an answer that does not end by itself
    return route.continue({ postData: JSON.stringify({ ...route.request().postDataJSON(), ...LONG }) });
  });
  await start(page, "Tell me a story.");
  const begun = () => [...document.querySelectorAll("article.assistant .text")].at(-1)?.innerText;
  await page.waitForFunction(begun, null, { timeout: WAIT_MS });
  await page.click("#stop");
  await idle(page);
  await page.unroute("**/v1/chat/completions");
  ok("stopped", (await answers(page).last().innerText()).includes("Stopped."));
  ok("the server has cancelled it", await grows(url, name, before));
}

async function checkKept(page, context, url) {
  const all = await page.locator("#messages").innerText();
  await page.reload();
  await page.locator("article.assistant").first().waitFor();
  ok("found after a reload", (await page.locator("#messages").innerText()) === all);
  const other = await context.newPage();
  await other.goto(url);
  ok("a second tab has the list", (await other.locator("#conversations li").count()) === 1);
  await answerWith(other, "Yes.");
  await send(other, "Second tab");
  await page.locator("#conversations li").nth(1).waitFor();
  ok("the first tab sees the new one", true);
  await other.getByRole("button", { name: "Delete Second tab" }).click();
  ok("deleted", (await other.locator("#conversations li").count()) === 1);
  await other.close();
}

const HARMFUL = [
  "<img src=x onerror=\"window.harmed = 1\">", "<script>window.harmed = 1</script>",
  "[x](javascript:window.harmed=1)", "[y](JaVaScRiPt&colon;window.harmed=1)", "![z](http://127.0.0.1:9/leak)",
  "<svg onload=window.harmed=1>", "<a href=\"javascript:window.harmed=1\">w</a>",
  "[good](https://example.org/a) and [mail](mailto:a@b.c)",
].join("\n\n");

async function checkHarmless(page) {
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await answerWith(page, HARMFUL);
  await send(page, "Harm me");
  const text = await lastText(page);
  ok("markup is text", text.includes("<img src=x onerror=") && text.includes("<script>window.harmed"), text);
  ok("nothing ran", (await page.evaluate(() => window.harmed)) === undefined);
  const links = await page.locator("article.assistant .text a")
    .evaluateAll((all) => all.map((a) => [a.protocol, a.rel, a.target]));
  ok("links", JSON.stringify(links) === JSON.stringify(["http:", "https:", "mailto:"]
    .map((protocol) => [protocol, "noopener noreferrer", "_blank"])), links);
  const inside = await page.locator("article.assistant .text").last()
    .evaluate((node) => node.querySelectorAll("img, script, svg, iframe").length);
  ok("no such nodes", inside === 0, inside);
  ok("no request elsewhere", asked.every((one) => !one.includes("leak")), asked);
}

const CODE = "# Title\n\nSome *text* and `code` &amp; more.\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n" +
  "```python\ndef f(x):\n    return \"a\"  # comment\n```\n\n1. one\n2. two\n   - three\n\n" +
  "> quoted 👩‍👩‍👧 שלום\n";
const TAGS = ["h3", "em", "table", "ol", "ul", "blockquote", "td[align=right]"];

async function checkMarkdown(page) {
  for (const size of [1, 5, 10_000]) {
    await answerWith(page, CODE, size);
    await send(page, `Markdown ${size}`);
    const shape = await answers(page).last().locator(".text").evaluate((node, tags) => ({
      counts: tags.map((tag) => node.querySelectorAll(tag).length),
      colours: node.querySelectorAll(".hljs-keyword").length,
      code: node.querySelector("pre")?.textContent,
      more: node.textContent.includes("code & more"),
    }), TAGS);
    ok(`markdown by ${size}`, shape.counts.every((n) => n === 1) && shape.colours > 0 && shape.more &&
      shape.code === 'def f(x):\n    return "a"  # comment', shape);
  }
  await answers(page).last().getByRole("button", { name: "Copy this code" }).click();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  ok("code is copied", copied === 'def f(x):\n    return "a"  # comment', copied);
  await answerWith(page, "Open:\n```\nlet a = 1;\nno end", 3);
  await send(page, "Open fence");
  ok("a fence without end", (await answers(page).last().locator("pre").innerText()) === "let a = 1;\nno end");
  const long = "word ".repeat(200_000);
  await answerWith(page, long, 4000);
  await send(page, "Long");
  ok("1 MB in one paragraph", (await answers(page).last().locator(".text").innerText()).length > 990_000);
}

async function checkErrors(page) {
  await page.goto(page.url().split("#")[0]);
  await failWith(page, 400, "context_length_exceeded");
  await send(page, "Too long");
  const fresh = page.locator(".error").getByRole("button", { name: "New chat" });
  ok("too long offers a new chat", await fresh.isVisible());
  await failWith(page, 500, "luck");
  await send(page, "Again");
  await page.route("**/v1/chat/completions", (route) => route.abort(), { times: 1 });
  await page.locator(".error").getByRole("button", { name: "Try again" }).click();
  await page.locator(".error", { hasText: "cannot be reached" }).waitFor();
  ok("offline", true);
  await answerWith(page, "Here.");
  await failWith(page, 429, "queue_full", { "retry-after": "1" });
  await page.locator(".error").getByRole("button", { name: "Try again" }).click();
  await page.locator("#composer-note", { hasText: "trying again" }).waitFor();
  await answerWith(page, "Here.");
  await page.locator("article.assistant", { hasText: "Here." }).waitFor();
  ok("429 is repeated", true);
  const buffer = Buffer.from("file text");
  await page.setInputFiles("#picker", { name: "a.txt", mimeType: "text/plain", buffer });
  await page.locator("#files li").waitFor();
  const asked = page.waitForRequest("**/v1/chat/completions");
  await send(page, "With a file");
  const { messages } = (await asked).postDataJSON();
  const { content } = messages.at(-1);
  ok("a file goes along", content === "a.txt:\n```\nfile text\n```\n\nWith a file", content);
  await page.setInputFiles("#picker", { name: "b", mimeType: "x/y", buffer: Buffer.from([255, 0, 1]) });
  await page.locator("#composer-note", { hasText: "not a text file" }).waitFor();
  ok("bytes are refused", true);
}

// The parts of the page are where they belong, in a window of this height.
async function checkPlaces(page, name, height) {
  const box = (selector) => page.locator(selector).boundingBox();
  const [top, log, field] = [await box("header"), await box("#messages"), await box("#composer")];
  ok(`places, ${name}`, top.y === 0 && log.height > height / 2 &&
    Math.abs(field.y + field.height - height) < 2, { top, log, field });
}

async function checkPhone(page) {
  await page.setViewportSize({ width: 320, height: 640 });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  ok("320 pixels", wide === 320, wide);
  await checkPlaces(page, "phone", 640);
  await picture(page, "phone");
  await page.click("#menu");
  ok("the menu opens", await page.locator("#new-chat").isVisible());
  await picture(page, "phone-menu");
  await page.keyboard.press("Escape");
  ok("Escape closes it", !(await page.locator("#new-chat").isVisible()) &&
    (await page.evaluate(() => document.activeElement?.id)) === "menu");
  await page.setViewportSize({ width: 1200, height: 800 });
}

async function checkKey(browser) {
  const { child, url } = await serve(tenon, model);
  const page = await browser.newPage();
  await page.goto(url);
  await page.locator("#key-dialog").waitFor();
  await page.fill("#key", "wrong");
  await page.press("#key", "Enter");
  await page.locator("#key-text", { hasText: "does not accept" }).waitFor();
  await page.fill("#key", "right-key");
  await page.press("#key", "Enter");
  await page.waitForFunction(() => document.getElementById("model")?.textContent);
  await send(page, "Where does Mia live?");
  ok("with the key", (await lastText(page)).length > 0);
  const kept = await page.evaluate(() => JSON.stringify(localStorage));
  ok("the key is not kept for longer", !kept.includes("right-key"));
  await page.close();
  child.kill();
}

async function checkLost(page, child) {
  await page.unroute("**/v1/chat/completions");
  await page.route("**/v1/chat/completions", (route) =>
    route.continue({ postData: JSON.stringify({ ...route.request().postDataJSON(), ...LONG }) }));
  await start(page, "Tell me a story.");
  child.kill("SIGKILL");
  await page.locator(".error").waitFor({ timeout: WAIT_MS });
  ok("a server that dies", (await page.locator(".error").innerText()).includes("cannot be reached"));
}

async function main() {
  const { chromium } = await playwright();
  if (!browserPath) skip("no Chromium");
  delete process.env.TENON_API_KEY;
  const { child, url } = await serve(tenon, model);
  const html = await (await fetch(url, { headers: { accept: "text/html" } })).text();
  if (!html.includes("open-settings")) {
    child.kill();
    skip("this build has the plain page");
  }
  const options = { executablePath: browserPath, args: ["--no-sandbox"], timeout: 180_000 };
  const browser = await chromium.launch(options);
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, colorScheme: "light",
    permissions: ["clipboard-read", "clipboard-write"] });
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    if (/Content Security|Refused/.test(message.text())) complaints.push(message.text());
  });
  await page.goto(url);
  await step("chat", () => checkChat(page, url));
  await step("kept", () => checkKept(page, context, url));
  await step("harmless", () => checkHarmless(page));
  await step("markdown", async () => {
    await answerWith(page, CODE);
    await send(page, "Show me code");
    await checkPlaces(page, "desktop", 800);
    await picture(page, "light");
    await page.emulateMedia({ colorScheme: "dark" });
    await picture(page, "dark");
    await page.emulateMedia({ colorScheme: "light" });
    await checkPhone(page);
    await checkMarkdown(page);
  });
  await step("errors", () => checkErrors(page));
  process.env.TENON_API_KEY = "right-key";
  await step("key", () => checkKey(browser));
  await step("lost", () => checkLost(page, child));
  ok("no complaints of the browser", complaints.length === 0, complaints);
  await browser.close();
  child.kill();
  done();
}

await main();
