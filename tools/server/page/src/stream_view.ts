// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Markdown that grows. Blocks that are complete stay as they are; only the last one is made anew, and of an
// open block of code only the new text is appended. So the work for each piece does not grow with the answer.
import { el } from "./dom";
import { highlight } from "./highlight";
import { codeBar, codeBlock, parse, render } from "./markdown";

const BLOCK_MOST = 16_384; // characters of one block that is rendered again and again
const SLICE = 4096; // of a long text at a time
const FENCE = /^( {0,3})(`{3,}|~{3,})([^`\n]*)\n/;

export class StreamView {
  private tail = "";
  private readonly last = el("div", { class: "last" });
  private code: { pre: HTMLElement; text: Text; end: RegExp; language: string } | null = null;
  private plain: Text | null = null;

  constructor(root: HTMLElement) {
    root.replaceChildren(this.last);
  }

  append(text: string): void {
    const clean = text.replace(/\r\n?/g, "\n");
    for (let i = 0; i < clean.length; i += SLICE) {
      this.tail += clean.slice(i, i + SLICE);
      this.update();
    }
  }

  end(): void {
    if (this.code) this.closeCode(this.tail);
    else if (this.plain) this.plain.appendData(this.tail);
    else this.settle(this.rendered(this.tail));
    this.tail = "";
    this.last.remove();
  }

  private update(): void {
    if (this.plain) return this.growPlain();
    if (this.code) return this.growCode();
    const tokens = parse(this.tail);
    const kept = tokens?.findLastIndex((token) => token.type !== "space") ?? -1;
    if (!tokens) return this.startPlain();
    if (kept > 0) {
      const done = tokens.slice(0, kept);
      this.settle(render(done));
      this.tail = this.tail.slice(done.reduce((n, token) => n + token.raw.length, 0));
    }
    const fence = FENCE.exec(this.tail);
    if (fence && kept >= 0 && tokens[kept]?.type === "code") return this.startCode(fence);
    if (this.tail.length > BLOCK_MOST) return this.startPlain();
    this.last.replaceChildren(...render(tokens.slice(Math.max(0, kept))));
  }

  private rendered(text: string): Node[] {
    const tokens = parse(text);
    return tokens ? render(tokens) : [el("p", {}, text)];
  }

  private settle(nodes: Node[]): void {
    this.last.replaceChildren();
    this.last.before(...nodes);
  }

  private startCode(fence: RegExpExecArray): void {
    const mark = fence[2] ?? "```";
    const language = (fence[3] ?? "").trim().split(/\s/)[0] ?? "";
    const pre = codeBlock("", language);
    const text = document.createTextNode("");
    pre.querySelector("code")?.replaceChildren(text);
    const end = new RegExp(`\\n {0,3}${mark[0] === "~" ? "~" : "`"}{${mark.length},}[ \\t]*(?:\\n|$)`);
    this.settle([codeBar(pre)]);
    this.code = { pre, text, end, language };
    this.tail = this.tail.slice(fence[0].length - 1); // with the end of the line, which `end` begins with
    this.growCode();
  }

  private growCode(): void {
    const code = this.code;
    if (!code) return;
    const match = code.end.exec(this.tail);
    if (match && match[0].endsWith("\n")) {
      const rest = this.tail.slice(match.index + match[0].length);
      this.closeCode(this.tail.slice(0, match.index));
      this.tail = rest;
      return this.update();
    }
    // The last line may become the end of the block, so it waits; one that is long cannot.
    const line = this.tail.lastIndexOf("\n");
    const cut = this.tail.length - line > 100 ? this.tail.length : Math.max(0, line);
    this.write(code.text, this.tail.slice(0, cut));
    this.tail = this.tail.slice(cut);
  }

  private closeCode(rest: string): void {
    const code = this.code;
    if (!code) return;
    this.code = null;
    this.write(code.text, rest.replace(code.end, ""));
    const text = code.text.data.replace(/\n$/, "");
    code.pre.querySelector("code")?.replaceChildren(...highlight(text, code.language));
  }

  // Without the end of the line that opened the block.
  private write(to: Text, text: string): void {
    to.appendData(to.length === 0 && text.startsWith("\n") ? text.slice(1) : text);
  }

  // One block without end, or one that the parser cannot do: shown as it is until an empty line.
  private startPlain(): void {
    const text = document.createTextNode("");
    this.settle([el("p", { class: "plain", dir: "auto" }, text)]);
    this.plain = text;
    this.growPlain();
  }

  private growPlain(): void {
    const at = this.tail.indexOf("\n\n");
    const cut = at < 0 ? this.tail.length : at;
    this.plain?.appendData(this.tail.slice(0, cut));
    this.tail = this.tail.slice(cut);
    if (at >= 0) this.plain = null;
  }
}

export function show(root: HTMLElement, text: string): void {
  const view = new StreamView(root);
  view.append(text);
  view.end();
}
