// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One message: its text, its files, what a model thought before it, its figures and its buttons.
import { copyText, el } from "./dom";
import { say } from "./live";
import type { Message, Stats } from "./store";
import { show, StreamView } from "./stream_view";

export interface Actions {
  regenerate(): void;
  edit(index: number, text: string): void;
}

export function figures(stats: Stats): string {
  const speed = stats.seconds > 0 ? `, ${((stats.tokens - 1) / stats.seconds).toFixed(1)} tokens/s` : "";
  const count = `${stats.tokens} ${stats.tokens === 1 ? "token" : "tokens"}`;
  return `${count}${speed}, first after ${stats.first.toFixed(2)} s`;
}

const ENDS: Record<string, string> = {
  length: "The answer reached the limit of tokens.",
  stopped: "Stopped.",
  failed: "The answer is not complete.",
};

function button(text: string, label: string, click: () => void): HTMLButtonElement {
  return el("button", { type: "button", class: "small", "aria-label": label, click }, text);
}

export class MessageView {
  readonly root: HTMLElement;
  private readonly body = el("div", { class: "text" });
  private readonly note = el("p", { class: "note" });
  private readonly bar = el("div", { class: "actions" });
  private thoughts: Text | null = null;
  private stream: StreamView | null = null;

  constructor(
    private readonly message: Message,
    private readonly index: number,
    private readonly actions: Actions,
  ) {
    const who = message.role === "user" ? "You" : "Model";
    const label = `${who}, message ${index + 1}`;
    this.root = el("article", { class: `message ${message.role}`, "aria-label": label },
      el("h2", { class: "who" }, who), this.body, this.note, this.bar);
    if (message.role === "user") this.showUser();
    else this.showAnswer();
  }

  // Pieces of an answer from here on.
  begin(): void {
    this.stream = new StreamView(this.body);
    this.bar.replaceChildren();
    this.root.setAttribute("aria-busy", "true");
  }

  add(content: string, thoughts: string): void {
    if (thoughts) this.addThoughts(thoughts);
    if (content) this.stream?.append(content);
    if (this.message.stats) this.note.textContent = figures(this.message.stats);
  }

  end(): void {
    this.stream?.end();
    this.stream = null;
    this.root.removeAttribute("aria-busy");
    this.showEnd();
  }

  canRegenerate(can: boolean): void {
    this.bar.querySelector(".regenerate")?.remove();
    if (!can) return;
    const made = button("Regenerate", "Answer again", () => this.actions.regenerate());
    made.classList.add("regenerate");
    this.bar.append(made);
  }

  private showAnswer(): void {
    if (this.message.thoughts) this.addThoughts(this.message.thoughts);
    show(this.body, this.message.content);
    this.showEnd();
  }

  private showEnd(): void {
    const { stats, end } = this.message;
    this.note.textContent = [ENDS[end ?? ""], stats ? figures(stats) : ""].filter(Boolean).join(" ");
    this.bar.replaceChildren(this.copyButton());
  }

  private addThoughts(text: string): void {
    if (!this.thoughts) {
      this.thoughts = document.createTextNode("");
      this.body.before(el("details", { class: "thoughts" }, el("summary", {}, "Thoughts"),
        el("p", { class: "plain", dir: "auto" }, this.thoughts)));
    }
    this.thoughts.appendData(text);
  }

  private showUser(): void {
    this.body.replaceChildren(el("p", { class: "plain", dir: "auto" }, this.message.content));
    for (const file of this.message.files ?? []) {
      this.body.append(el("details", { class: "file" },
        el("summary", {}, `${file.name} (${file.text.length} characters)`),
        el("pre", { tabindex: 0 }, file.text)));
    }
    const edit = button("Edit", "Edit this message and answer again", () => this.startEdit());
    this.bar.replaceChildren(this.copyButton(), edit);
  }

  private copyButton(): HTMLElement {
    const made = button("Copy", "Copy this message", async () => {
      const done = await copyText(this.message.content);
      say(done ? "Message copied." : "The browser refused to copy.");
    });
    return made;
  }

  private startEdit(): void {
    const area = el("textarea", { "aria-label": "Edited message", rows: 4 });
    area.value = this.message.content;
    const cancel = () => {
      this.showUser();
      this.bar.querySelector<HTMLElement>("button:last-child")?.focus();
    };
    const send = () => this.actions.edit(this.index, area.value);
    area.addEventListener("keydown", (event) => {
      if (event.key === "Escape") cancel();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
    });
    this.body.replaceChildren(area);
    this.bar.replaceChildren(button("Send", "Send the edited message", send),
      button("Cancel", "Leave the message as it was", cancel));
    area.focus();
  }
}
