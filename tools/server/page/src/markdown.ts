// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Markdown as nodes. `marked` gives tokens; no HTML is written or parsed. HTML in the text is shown as text,
// images are not loaded (the address of an image could carry what was said to another server), and links go
// to http, https and mailto only. DOMPurify then checks the nodes once more against the list below.
import DOMPurify from "dompurify";
import { lexer, type Token, type Tokens } from "marked";
import { copyText, el } from "./dom";
import { highlight } from "./highlight";
import { say } from "./live";

const ALLOWED = {
  IN_PLACE: true,
  ALLOWED_TAGS: ["a", "blockquote", "br", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6",
    "hr", "input", "li", "ol", "p", "pre", "span", "strong", "table", "tbody", "td", "th", "thead", "tr",
    "ul", "#text"],
  ALLOWED_ATTR: ["align", "checked", "class", "data-language", "dir", "disabled", "href", "rel", "start",
    "target", "type"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ADD_URI_SAFE_ATTR: ["align", "dir", "rel", "start", "target", "type"], // these hold no addresses
};

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };

function decode(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(\w+));/g, (whole, decimal, hex, name) => {
    if (name) return ENTITIES[name] ?? whole;
    const code = decimal ? Number(decimal) : parseInt(hex, 16);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd";
  });
}

function safeAddress(href: string): string | null {
  try {
    const address = new URL(decode(href));
    return ["http:", "https:", "mailto:"].includes(address.protocol) ? address.href : null;
  } catch {
    return null; // relative: it would lead into this server
  }
}

function link(href: string, children: (Node | string)[]): Node {
  const address = safeAddress(href);
  if (!address) return el("span", {}, ...children);
  return el("a", { href: address, rel: "noopener noreferrer", target: "_blank" }, ...children);
}

function inline(tokens: Token[] | undefined): (Node | string)[] {
  return (tokens ?? []).map((token) => {
    switch (token.type) {
      case "strong":
      case "em":
      case "del":
        return el(token.type, {}, ...inline(token.tokens));
      case "codespan":
        return el("code", {}, token["text"]);
      case "br":
        return el("br");
      case "link":
        return link(token["href"], inline(token.tokens));
      case "image":
        return link(token["href"], [`[image: ${token["text"] || token["href"]}]`]);
      case "checkbox":
        return el("input", { type: "checkbox", disabled: true, checked: Boolean(token["checked"]) });
      case "escape":
        return token["text"];
      case "text":
        return token.tokens ? el("span", {}, ...inline(token.tokens)) : decode(token["text"]);
      default:
        return token.raw;
    }
  });
}

function list(token: Tokens.List): Node {
  const items = token.items.map((item) => el("li", { dir: "auto" }, ...blocks(item.tokens, !item.loose)));
  return token.ordered ? el("ol", { start: token.start || 1 }, ...items) : el("ul", {}, ...items);
}

function row(cells: Tokens.TableCell[], name: "td" | "th"): Node {
  return el("tr", {}, ...cells.map((cell) =>
    el(name, { dir: "auto", ...(cell.align ? { align: cell.align } : {}) }, ...inline(cell.tokens))));
}

export function codeBlock(text: string, language: string): HTMLElement {
  const code = el("code", {}, ...highlight(text, language));
  return el("pre", { "data-language": language.slice(0, 30) }, code);
}

function block(token: Token, tight: boolean): Node | null {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "hr":
      return el("hr");
    case "heading":
      // The page has its own h1 and h2.
      return el(`h${Math.min(6, token["depth"] + 2)}` as "h3", { dir: "auto" },
        ...inline(token.tokens));
    case "code":
      return codeBlock(token["text"], (token["lang"] ?? "").trim().split(/\s/)[0]);
    case "blockquote":
      return el("blockquote", {}, ...blocks(token.tokens ?? [], false));
    case "list":
      return list(token as Tokens.List);
    case "table": {
      const table = token as Tokens.Table;
      return el("div", { class: "wide" }, el("table", {}, el("thead", {}, row(table.header, "th")),
        el("tbody", {}, ...table.rows.map((cells) => row(cells, "td")))));
    }
    case "paragraph":
      return el("p", { dir: "auto" }, ...inline(token.tokens));
    case "text":
      return el(tight ? "span" : "p", { dir: "auto" }, ...inline(token.tokens ?? [token]));
    case "checkbox":
      return el("input", { type: "checkbox", disabled: true, checked: Boolean(token["checked"]) });
    default: // HTML, as text
      return el("p", { dir: "auto" }, token.raw);
  }
}

function blocks(tokens: Token[], tight: boolean): Node[] {
  const made = tokens.map((token) => block(token, tight));
  return made.filter((node) => node !== null);
}

// The bar of a block of code. `text` is asked when the button is pressed: the code may still grow.
export function codeBar(pre: HTMLElement): HTMLElement {
  const copy = el("button", { type: "button", class: "small", "aria-label": "Copy this code" }, "Copy");
  copy.addEventListener("click", async () => {
    const done = await copyText(pre.textContent ?? "");
    say(done ? "Code copied." : "The browser refused to copy.");
    copy.textContent = done ? "Copied" : "Refused";
    setTimeout(() => (copy.textContent = "Copy"), 1500);
  });
  const bar = el("div", { class: "code-bar" }, el("span", {}, pre.dataset["language"] || "text"), copy);
  pre.tabIndex = 0; // so that the keyboard can scroll it
  return el("div", { class: "code" }, bar, pre);
}

// Blocks ready for the page.
export function render(tokens: Token[]): Node[] {
  const holder = el("div", {}, ...blocks(tokens, false));
  DOMPurify.sanitize(holder, ALLOWED);
  for (const pre of holder.querySelectorAll("pre")) {
    const mark = document.createComment("");
    pre.replaceWith(mark);
    mark.replaceWith(codeBar(pre));
  }
  return [...holder.childNodes];
}

// Null: too deep or otherwise too much for the parser.
export function parse(text: string): Token[] | null {
  try {
    return lexer(text);
  } catch {
    return null;
  }
}
