// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Conversations in localStorage, each below a key of its own, so that two tabs write beside each other. The
// oldest are removed where the browser or the limit has no more space. The key of the server is kept for the
// session only, and settings of a new conversation are those of the last one.

export interface Stats {
  tokens: number;
  seconds: number; // from the first token to the last
  first: number; // seconds to the first token
}
export interface TextFile {
  name: string;
  text: string;
}
export interface Message {
  role: "user" | "assistant";
  content: string;
  thoughts?: string;
  files?: TextFile[];
  stats?: Stats;
  end?: string; // "stop", "length", "stopped", "failed"
}
export type Settings = Record<string, string>; // by name of the field; absent: the server's
export interface Conversation {
  id: string;
  title: string;
  changed: number;
  settings: Settings;
  messages: Message[];
}

const PREFIX = "tenon.chat.";
const SETTINGS = "tenon.settings";
const THEME = "tenon.theme";
const KEY = "tenon.key";
export const CHARACTERS_MOST = 4_000_000; // browsers give 5 Mi characters to an origin
const CONVERSATIONS_MOST = 200;

// Storage may be switched off; then everything lasts as long as the page.
function read(area: () => Storage, key: string): string | null {
  try {
    return area().getItem(key);
  } catch {
    return null;
  }
}
function write(area: () => Storage, key: string, value: string | null): boolean {
  try {
    if (value === null) area().removeItem(key);
    else area().setItem(key, value);
    return true;
  } catch {
    return false;
  }
}
const local = () => localStorage;
const session = () => sessionStorage;

function parse(text: string | null): unknown {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

export function newConversation(): Conversation {
  const settings = parse(read(local, SETTINGS));
  const id = Array.from(crypto.getRandomValues(new Uint32Array(3)), (n) => n.toString(36)).join("");
  return { id, title: "New chat", changed: Date.now(), settings: (settings as Settings) ?? {}, messages: [] };
}

export function loadConversation(id: string): Conversation | null {
  const found = parse(read(local, PREFIX + id)) as Conversation | null;
  return found && Array.isArray(found.messages) && typeof found.title === "string" ? found : null;
}

// The newest first.
export function listConversations(): Conversation[] {
  const found: Conversation[] = [];
  try {
    for (const key of Object.keys(localStorage)) {
      const one = key.startsWith(PREFIX) ? loadConversation(key.slice(PREFIX.length)) : null;
      if (one) found.push(one);
    }
  } catch {
    return [];
  }
  return found.sort((a, b) => b.changed - a.changed);
}

// What was removed for it, or null if it cannot be kept.
export function saveConversation(one: Conversation): Conversation[] | null {
  const text = JSON.stringify(one);
  if (text.length > CHARACTERS_MOST) return null;
  const others = listConversations().filter((other) => other.id !== one.id);
  const removed: Conversation[] = [];
  let used = others.reduce((n, other) => n + JSON.stringify(other).length, text.length);
  const dropOldest = () => {
    const oldest = others.pop();
    if (!oldest) return false;
    removeConversation(oldest.id);
    used -= JSON.stringify(oldest).length;
    removed.push(oldest);
    return true;
  };
  while ((used > CHARACTERS_MOST || others.length >= CONVERSATIONS_MOST) && dropOldest()) continue;
  while (!write(local, PREFIX + one.id, text)) if (!dropOldest()) return null;
  write(local, SETTINGS, JSON.stringify(one.settings));
  return removed;
}

export function removeConversation(id: string): void {
  write(local, PREFIX + id, null);
}

export function isConversationKey(key: string | null): boolean {
  return key === null || key.startsWith(PREFIX);
}

export const serverKey = {
  get: () => read(session, KEY),
  set: (key: string) => write(session, KEY, key),
};
export const theme = {
  get: () => read(local, THEME) ?? "auto",
  set: (name: string) => write(local, THEME, name),
};
