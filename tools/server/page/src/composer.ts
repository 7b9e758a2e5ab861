// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a message is written: text, attached files, send and stop.
import { byId, el } from "./dom";
import { say } from "./live";
import type { TextFile } from "./store";

const FILE_MOST = 256 * 1024;
const FILES_MOST = 10;

export class Composer {
  private files: TextFile[] = [];
  private readonly area = byId<HTMLTextAreaElement>("text");

  constructor(private readonly send: (text: string, files: TextFile[]) => boolean, stop: () => void) {
    const picker = byId<HTMLInputElement>("picker");
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.area.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.submit();
    });
    this.area.addEventListener("input", () => this.fit());
    byId("attach").addEventListener("click", () => picker.click());
    byId("stop").addEventListener("click", stop);
    picker.addEventListener("change", async () => {
      await this.attach([...(picker.files ?? [])]);
      picker.value = "";
    });
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      void this.attach([...(event.dataTransfer?.files ?? [])]);
    });
  }

  setBusy(busy: boolean): void {
    const hadFocus = [byId("send"), byId("stop")].includes(document.activeElement as HTMLElement);
    byId("send").hidden = busy;
    byId("stop").hidden = !busy;
    if (hadFocus) this.focus();
  }

  focus(): void {
    this.area.focus();
  }

  warn(text: string): void {
    byId("composer-note").textContent = text;
  }

  private submit(): void {
    const text = this.area.value.trim();
    if ((!text && !this.files.length) || !this.send(text, this.files)) return;
    this.area.value = "";
    this.files = [];
    this.warn("");
    this.showFiles();
    this.fit();
  }

  // As high as its text, up to the limit of the style sheet.
  private fit(): void {
    this.area.style.height = "auto";
    this.area.style.height = `${this.area.scrollHeight + 2}px`;
  }

  private async attach(picked: File[]): Promise<void> {
    for (const file of picked) {
      const problem = await this.read(file);
      this.warn(problem);
      if (problem) return;
    }
    this.focus();
  }

  private async read(file: File): Promise<string> {
    if (this.files.length >= FILES_MOST) return `A message has at most ${FILES_MOST} files.`;
    if (file.size > FILE_MOST) return `${file.name} has more than ${FILE_MOST / 1024} KiB.`;
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
      if (text.includes("\0")) throw new Error();
      this.files.push({ name: file.name, text });
    } catch {
      return `${file.name} is not a text file (UTF-8).`;
    }
    this.showFiles();
    say(`${file.name} attached.`);
    return "";
  }

  private showFiles(): void {
    byId("files").replaceChildren(...this.files.map((file, i) => {
      const remove = () => {
        this.files.splice(i, 1);
        this.showFiles();
        this.focus();
      };
      return el("li", {}, file.name, el("button", { type: "button", class: "small",
        "aria-label": `Remove ${file.name}`, click: remove }, "✕"));
    }));
  }
}
