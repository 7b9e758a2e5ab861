// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What a screen reader hears: an answer in whole sentences, never token by token.
import { byId, el } from "./dom";

const KEPT = 30;
const LONGEST = 500; // characters without the end of a sentence
const SENTENCE = /^[\s\S]*?(?:[.!?…](?=\s)|[。！？]|\n)/;

export function say(text: string): void {
  const region = byId("live");
  region.append(el("p", {}, text));
  while (region.childElementCount > KEPT) region.firstElementChild?.remove();
}

export class Speaker {
  private rest = "";
  private inCode = false;

  add(text: string): void {
    this.rest += text;
    for (let match = SENTENCE.exec(this.rest); match; match = SENTENCE.exec(this.rest)) {
      this.rest = this.rest.slice(match[0].length);
      this.line(match[0].trim());
    }
    if (this.rest.length > LONGEST) this.end();
  }

  end(): void {
    this.line(this.rest.trim());
    this.rest = "";
  }

  private line(text: string): void {
    if (text.startsWith("```")) {
      this.inCode = !this.inCode;
      if (this.inCode) say("Code block.");
    } else if (text && !this.inCode) {
      say(text);
    }
  }
}
