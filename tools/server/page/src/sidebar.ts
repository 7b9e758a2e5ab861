// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The list of conversations. On narrow screens it lies over the page and is opened by a button.
import { byId, el } from "./dom";
import type { Conversation } from "./store";

export interface SidebarActions {
  open(id: string): void;
  remove(id: string): void;
}

export function showList(list: Conversation[], current: string, actions: SidebarActions): void {
  const items = list.map((one) => {
    const click = () => actions.open(one.id);
    const open = el("button", { type: "button", class: "open", dir: "auto", click }, one.title);
    if (one.id === current) open.setAttribute("aria-current", "true");
    const remove = el("button", { type: "button", class: "small", "aria-label": `Delete ${one.title}`,
      click: () => actions.remove(one.id) }, "✕");
    return el("li", {}, open, remove);
  });
  byId("conversations").replaceChildren(...items);
}

const narrow = matchMedia("(max-width: 800px)");

export function setOpen(open: boolean): void {
  const bar = byId("sidebar");
  document.body.classList.toggle("menu-open", open && narrow.matches);
  bar.inert = narrow.matches && !open;
  byId("menu").setAttribute("aria-expanded", String(open && narrow.matches));
  if (narrow.matches && open) byId("new-chat").focus();
}

export function startSidebar(): void {
  const menu = byId("menu");
  const close = () => {
    setOpen(false);
    menu.focus();
  };
  menu.addEventListener("click", () => setOpen(!document.body.classList.contains("menu-open")));
  byId("shade").addEventListener("click", close);
  byId("sidebar").addEventListener("keydown", (event) => {
    if (event.key === "Escape" && narrow.matches) close();
  });
  narrow.addEventListener("change", () => setOpen(false));
  setOpen(false);
}
