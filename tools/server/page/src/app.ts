// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The state of the page: which conversation is shown, and the answer that is under way.
import { type ApiError, model } from "./api";
import { Composer } from "./composer";
import { askKey, startSettings } from "./dialogs";
import { byId, el } from "./dom";
import { generate } from "./generate";
import { say } from "./live";
import { MessageView } from "./message_view";
import { setOpen, showList } from "./sidebar";
import { isConversationKey, listConversations, loadConversation, newConversation, removeConversation,
  saveConversation, serverKey, type Conversation, type Message, type TextFile } from "./store";

const SAVE_MS = 2000;
const TITLE_MOST = 60;
const NEAR_END = 60; // pixels

export class App {
  private current: Conversation = newConversation();
  private views: MessageView[] = [];
  private running: AbortController | null = null;
  private savedAt = 0;
  private readonly log = byId("messages");
  private readonly composer = new Composer((text, files) => this.send(text, files), () => this.stop());
  private follows = true;

  start(): void {
    startSettings(() => this.current.settings, (settings) => {
      this.current.settings = settings;
      if (this.current.messages.length) this.save();
    });
    byId("new-chat").addEventListener("click", () => this.open(null));
    this.log.addEventListener("scroll", () => {
      this.follows = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < NEAR_END;
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !document.querySelector("dialog[open]")) this.stop();
    });
    window.addEventListener("pagehide", () => this.running && this.save());
    window.addEventListener("storage", (event) => this.changedElsewhere(event.key));
    window.addEventListener("hashchange", () => this.openHash());
    this.openHash();
    void this.showModel();
  }

  private openHash(): void {
    const id = location.hash.slice(1);
    if (id !== this.current.id || !this.views.length) this.open(id || null);
  }

  private open(id: string | null): void {
    this.stop();
    this.current = (id && loadConversation(id)) || newConversation();
    history.replaceState(null, "", this.current.messages.length ? `#${this.current.id}` : location.pathname);
    this.render();
    setOpen(false);
    this.composer.focus();
  }

  private render(): void {
    this.views = [];
    this.log.replaceChildren();
    this.current.messages.forEach((message) => this.addView(message));
    if (!this.views.length) this.log.append(el("p", { class: "empty" }, "Write a message to begin."));
    this.showActions();
    this.showTitle();
    this.scroll(true);
  }

  private addView(message: Message): MessageView {
    if (!this.views.length) this.log.replaceChildren();
    const view = new MessageView(message, this.views.length, {
      regenerate: () => this.regenerate(),
      edit: (index, text) => this.edit(index, text),
    });
    this.views.push(view);
    this.log.append(view.root);
    return view;
  }

  private showActions(): void {
    this.views.forEach((view, i) => view.canRegenerate(!this.running && i === this.views.length - 1));
  }

  private showTitle(): void {
    byId("title").textContent = this.current.title;
    document.title = `${this.current.title} - tenon`;
    showList(listConversations(), this.current.id, {
      open: (id) => this.open(id),
      remove: (id) => this.remove(id),
    });
  }

  private remove(id: string): void {
    removeConversation(id);
    say("Conversation deleted.");
    if (id === this.current.id) this.open(null);
    else this.showTitle();
    byId("new-chat").focus();
  }

  private changedElsewhere(key: string | null): void {
    if (!isConversationKey(key)) return;
    const other = loadConversation(this.current.id);
    if (other && !this.running && other.changed > this.current.changed) {
      this.current = other;
      this.render();
    } else {
      this.showTitle();
    }
  }

  private save(): void {
    this.current.changed = Date.now();
    const removed = saveConversation(this.current);
    if (!removed) this.composer.warn("This conversation is not kept: the browser has no space for it.");
    else if (removed.length) this.composer.warn(`To make space, the oldest ${removed.length} were deleted.`);
    this.savedAt = Date.now();
    history.replaceState(null, "", `#${this.current.id}`);
    this.showTitle();
  }

  private scroll(force = false): void {
    if (force) this.follows = true;
    if (this.follows) this.log.scrollTop = this.log.scrollHeight;
  }

  // --- messages ------------------------------------------------------------------------------------------

  private send(text: string, files: TextFile[]): boolean {
    if (this.running) return false;
    const message: Message = { role: "user", content: text, ...(files.length ? { files } : {}) };
    if (!this.current.messages.length) this.setTitle(text || files[0]?.name || "");
    this.current.messages.push(message);
    this.addView(message);
    void this.answer();
    return true;
  }

  private setTitle(text: string): void {
    const line = text.split("\n")[0] ?? "";
    const start = [...line].slice(0, TITLE_MOST).join("");
    this.current.title = start.length < line.length ? `${start}…` : line || "Chat";
  }

  private cut(length: number): void {
    this.current.messages.length = length;
    for (const view of this.views.splice(length)) view.root.remove();
    this.log.querySelectorAll(".error").forEach((node) => node.remove());
  }

  private edit(index: number, text: string): void {
    const old = this.current.messages[index];
    if (!old || this.running || !(text.trim() || old.files?.length)) return;
    this.cut(index);
    this.composer.focus();
    if (index === 0) this.setTitle(text.trim() || this.current.title);
    const message = { ...old, content: text.trim() };
    this.current.messages.push(message);
    this.addView(message);
    void this.answer();
  }

  private regenerate(): void {
    if (this.running) return;
    const { messages } = this.current;
    if (messages.at(-1)?.role === "assistant") this.cut(messages.length - 1);
    this.composer.focus();
    void this.answer();
  }

  private stop(): void {
    this.running?.abort();
  }

  private async answer(): Promise<void> {
    const conversation = this.current;
    const controller = new AbortController();
    const message: Message = { role: "assistant", content: "" };
    this.log.querySelectorAll(".error").forEach((node) => node.remove());
    const view = this.addView(message);
    view.begin();
    this.running = controller;
    this.composer.setBusy(true);
    this.showActions();
    this.save();
    this.scroll(true);
    const grown = new ResizeObserver(() => this.scroll());
    grown.observe(view.root);
    const error = await generate({
      conversation: { ...conversation, messages: [...conversation.messages] },
      message,
      view,
      signal: controller.signal,
      wait: (text) => this.composer.warn(text),
      keep: () => this.keep(conversation, message),
    });
    grown.disconnect();
    this.finish(conversation, message, view, error);
  }

  private keep(conversation: Conversation, message: Message): void {
    if (conversation.messages.at(-1) !== message) conversation.messages.push(message);
    if (Date.now() - this.savedAt > SAVE_MS && conversation === this.current) this.save();
  }

  private finish(conversation: Conversation, message: Message, view: MessageView,
    error: ApiError | null): void {
    const isShown = conversation === this.current;
    view.end();
    this.running = null;
    this.composer.setBusy(false);
    this.composer.warn("");
    if (!isShown) { // another one was opened meanwhile
      if (loadConversation(conversation.id)) saveConversation(conversation);
      return;
    }
    if (!message.content && !message.thoughts && message.end !== "stop" && message.end !== "length") {
      this.views.pop()?.root.remove();
    } else {
      this.keep(conversation, message);
    }
    if (error) this.showError(error);
    else if (message.end === "stopped") say("Stopped.");
    this.save();
    this.showActions();
    this.scroll();
  }

  private showError(error: ApiError): void {
    const retry = el("button", { type: "button", click: () => this.regenerate() }, "Try again");
    const fresh = el("button", { type: "button", click: () => this.open(null) }, "New chat");
    const full = error.code === "context_length_exceeded";
    this.log.append(el("div", { class: "error", role: "alert" }, el("p", {}, `Error: ${error.message}`),
      full ? fresh : retry));
    this.scroll(true);
  }

  private async showModel(): Promise<void> {
    try {
      const found = await model();
      if (found) byId("model").textContent = `${found.id}, ${found.context} tokens`;
    } catch (error) {
      const status = (error as ApiError).status;
      if (status === 503) setTimeout(() => void this.showModel(), 2000);
      if (status === 401 && (await askKey(serverKey.get() !== null))) await this.showModel();
    }
  }
}
