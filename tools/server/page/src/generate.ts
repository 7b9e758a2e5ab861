// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One answer: request, pieces, figures, and what to do about errors.
import { ApiError, chat, type Piece } from "./api";
import { askKey, requestFields } from "./dialogs";
import { Speaker } from "./live";
import type { MessageView } from "./message_view";
import { serverKey, type Conversation, type Message } from "./store";

const WAITS_MOST = 20; // for a server that is busy or loads
const UPDATE_MS = 40;

// A fence longer than any in the file, so that the file cannot end it.
function withFiles(message: Message): string {
  const parts = (message.files ?? []).map((file) => {
    const longest = Math.max(2, ...(file.text.match(/`+/g) ?? []).map((run) => run.length));
    const fence = "`".repeat(longest + 1);
    return `${file.name}:\n${fence}\n${file.text}\n${fence}`;
  });
  return [...parts, message.content].filter(Boolean).join("\n\n");
}

function body(conversation: Conversation): object {
  const { messages, settings } = conversation;
  const turns = messages.filter((m) => m.role === "user" || m.content)
    .map((m) => ({ role: m.role, content: withFiles(m) }));
  const system = settings["system"] ? [{ role: "system", content: settings["system"] }] : [];
  return { messages: [...system, ...turns], ...requestFields(settings) };
}

// Resolves early when the signal ends.
function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}

// Pieces reach the page together, some 25 times a second, and more rarely where that takes long.
class Painter {
  private content = "";
  private thoughts = "";
  private timer = 0;
  private cost = 0;

  constructor(private readonly view: MessageView) {}

  add(piece: Piece): void {
    this.content += piece.content ?? "";
    this.thoughts += piece.thoughts ?? "";
    if (!this.timer) this.timer = window.setTimeout(() => this.paint(), Math.max(UPDATE_MS, 8 * this.cost));
  }

  paint(): void {
    const start = performance.now();
    clearTimeout(this.timer);
    this.timer = 0;
    this.view.add(this.content, this.thoughts);
    this.content = this.thoughts = "";
    this.cost = performance.now() - start;
  }
}

export interface Job {
  conversation: Conversation;
  message: Message; // the answer, not yet part of the conversation
  view: MessageView;
  signal: AbortSignal;
  wait(text: string): void; // what it waits for; "": nothing
  keep(): void; // the answer has grown
}

async function receive(job: Job): Promise<void> {
  const { message, view, signal } = job;
  const painter = new Painter(view);
  const speaker = new Speaker();
  const start = performance.now();
  let first = 0;
  let tokens = 0;
  try {
    for await (const piece of chat(body(job.conversation), signal)) {
      const now = performance.now();
      job.wait("");
      if (piece.content || piece.thoughts) {
        first ||= now;
        tokens++;
        message.content += piece.content ?? "";
        if (piece.thoughts) message.thoughts = (message.thoughts ?? "") + piece.thoughts;
        message.stats = { tokens, seconds: (now - first) / 1000, first: (first - start) / 1000 };
        speaker.add(piece.content ?? "");
        painter.add(piece);
        job.keep();
      }
      if (piece.finish) message.end = piece.finish;
      if (piece.tokens && message.stats) message.stats.tokens = piece.tokens;
    }
  } finally {
    painter.paint();
    speaker.end();
  }
}

// Whether the request is worth another try, after the wait or the question that it needs.
async function mayRepeat(job: Job, error: ApiError, tries: number): Promise<boolean> {
  if (job.message.content || job.message.thoughts) return false;
  if (error.status === 401) return askKey(serverKey.get() !== null);
  if ((error.status !== 429 && error.status !== 503) || tries >= WAITS_MOST || error.code === "device_lost")
    return false;
  for (let left = Math.max(1, Math.ceil(error.retryAfter)); left > 0 && !job.signal.aborted; left--) {
    job.wait(`${error.message}; trying again in ${left} s`);
    await sleep(1000, job.signal);
  }
  return !job.signal.aborted;
}

// Null: complete or stopped by the user.
export async function generate(job: Job): Promise<ApiError | null> {
  for (let tries = 0; ; tries++) {
    try {
      await receive(job);
      return null;
    } catch (caught) {
      if (job.signal.aborted) {
        job.message.end = "stopped";
        return null;
      }
      const error = caught instanceof ApiError ? caught
        : new ApiError(0, "", caught instanceof SyntaxError ? "the server sent something that is no JSON"
          : "the server cannot be reached, or the connection broke");
      if (await mayRepeat(job, error, tries)) continue;
      job.message.end = job.signal.aborted ? "stopped" : "failed";
      return job.signal.aborted ? null : error;
    }
  }
}
