// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The page of builds without packages: one conversation, text as it comes, nothing kept but the key.
const byId = (id) => document.getElementById(id);
let messages = [];
let running = null;

function add(role, content) {
  const article = document.createElement("article");
  const who = document.createElement("h2");
  const text = document.createTextNode(content);
  article.className = role;
  article.dir = "auto";
  who.textContent = role === "user" ? "You" : "Model";
  article.append(who, text);
  byId("messages").append(article);
  return text;
}

async function request(signal) {
  const key = sessionStorage.getItem("tenon.key");
  const response = await fetch("/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}) },
    body: JSON.stringify({ messages, stream: true }),
    signal,
  });
  if (response.ok) return response.body.getReader();
  byId("key-form").hidden = response.status !== 401;
  if (response.status === 401) byId("key").focus();
  const answer = await response.json().catch(() => ({}));
  throw new Error(answer.error?.message ?? `the server answers ${response.status}`);
}

async function receive(reader, piece) {
  const decoder = new TextDecoder();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the connection ended in the middle of the answer");
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data:")) continue;
      if (line.slice(5).trim() === "[DONE]") return;
      const chunk = JSON.parse(line.slice(5));
      if (chunk.error) throw new Error(chunk.error.message);
      piece(chunk.choices[0]?.delta.content ?? "");
    }
  }
}

async function answer() {
  const text = add("assistant", "");
  running = new AbortController();
  byId("send").disabled = true;
  byId("stop").disabled = false;
  byId("note").textContent = "The model answers.";
  try {
    await receive(await request(running.signal), (piece) => text.appendData(piece));
    byId("note").textContent = "The answer is complete.";
  } catch (error) {
    byId("note").textContent = running.signal.aborted ? "Stopped." : `Error: ${error.message}`;
  }
  if (text.data) messages.push({ role: "assistant", content: text.data });
  else text.parentNode.remove();
  running = null;
  byId("send").disabled = false;
  byId("stop").disabled = true;
}

function send() {
  const content = byId("text").value.trim();
  const unanswered = messages.at(-1)?.role === "user"; // an empty field repeats what failed
  if (running || (!content && !unanswered)) return;
  if (content) {
    messages.push({ role: "user", content });
    add("user", content);
  }
  byId("text").value = "";
  void answer();
}

byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
byId("text").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});
byId("stop").addEventListener("click", () => running?.abort());
byId("new").addEventListener("click", () => {
  running?.abort();
  messages = [];
  byId("messages").replaceChildren();
  byId("text").focus();
});
byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("tenon.key", byId("key").value.trim());
  byId("key").value = "";
  byId("key-form").hidden = true;
  byId("note").textContent = "Press Send to repeat.";
  byId("text").focus();
});
