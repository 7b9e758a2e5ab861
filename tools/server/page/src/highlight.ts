// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Colours of code as nodes with classes. Long code stays plain: colours of it would stall the page.
import type { RootContent } from "hast";
import { common, createLowlight } from "lowlight";

const MOST = 50_000;
const lowlight = createLowlight(common);

function nodes(tree: RootContent[]): Node[] {
  return tree.map((item) => {
    if (item.type !== "element") return document.createTextNode("value" in item ? item.value : "");
    const span = document.createElement("span");
    const names = item.properties["className"];
    if (Array.isArray(names)) span.className = names.join(" ");
    span.append(...nodes(item.children));
    return span;
  });
}

export function highlight(code: string, language: string): Node[] {
  if (code.length > MOST || !lowlight.registered(language)) return [document.createTextNode(code)];
  return nodes(lowlight.highlight(language, code).children);
}
