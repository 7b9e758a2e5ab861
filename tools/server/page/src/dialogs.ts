// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The dialogs: settings of a conversation, and the key of the server.
import { byId, el } from "./dom";
import { serverKey, theme, type Settings } from "./store";

interface Field {
  name: string; // in the request
  label: string;
  min: number;
  max?: number;
  step: number | "any";
}

// An empty field leaves the choice to the server.
const FIELDS: Field[] = [
  { name: "temperature", label: "Temperature", min: 0, max: 2, step: "any" },
  { name: "top_p", label: "Top p", min: 0, max: 1, step: "any" },
  { name: "top_k", label: "Top k", min: 0, step: 1 },
  { name: "min_p", label: "Min p", min: 0, max: 1, step: "any" },
  { name: "repeat_penalty", label: "Repeat penalty", min: 0, step: "any" },
  { name: "frequency_penalty", label: "Frequency penalty", min: -2, max: 2, step: "any" },
  { name: "presence_penalty", label: "Presence penalty", min: -2, max: 2, step: "any" },
  { name: "max_tokens", label: "Most tokens of an answer", min: 1, step: 1 },
  { name: "seed", label: "Seed", min: 0, step: 1 },
];

export function requestFields(settings: Settings): Record<string, number> {
  const out: Record<string, number> = {};
  for (const { name } of FIELDS) {
    const value = settings[name];
    if (value && Number.isFinite(Number(value))) out[name] = Number(value);
  }
  return out;
}

function onSubmit(form: HTMLElement, done: () => void): void {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    done();
  });
}

export function startSettings(get: () => Settings, set: (settings: Settings) => void): void {
  const dialog = byId<HTMLDialogElement>("settings");
  const system = byId<HTMLTextAreaElement>("system");
  const inputs = new Map(FIELDS.map((field) => {
    const { name, min, max, step } = field;
    const input = el("input", { id: `field-${name}`, type: "number", inputmode: "decimal", min, step,
      placeholder: "server's", ...(max === undefined ? {} : { max }) });
    byId("fields").append(el("label", { for: input.id }, field.label), input);
    return [name, input] as const;
  }));
  byId("open-settings").addEventListener("click", () => {
    const settings = get();
    system.value = settings["system"] ?? "";
    for (const [name, input] of inputs) input.value = settings[name] ?? "";
    dialog.showModal();
  });
  byId("reset-settings").addEventListener("click", () => {
    system.value = "";
    for (const input of inputs.values()) input.value = "";
  });
  byId("cancel-settings").addEventListener("click", () => dialog.close());
  onSubmit(byId("settings-form"), () => {
    const settings: Settings = {};
    if (system.value.trim()) settings["system"] = system.value;
    for (const [name, input] of inputs) if (input.value) settings[name] = input.value;
    set(settings);
    dialog.close();
  });
}

// False: the user does not give one.
export function askKey(wrong: boolean): Promise<boolean> {
  const dialog = byId<HTMLDialogElement>("key-dialog");
  const input = byId<HTMLInputElement>("key");
  byId("key-text").textContent = wrong ? "The server does not accept this key." : "This server needs a key.";
  input.value = "";
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "given"), { once: true });
  });
}

export function startKey(): void {
  const dialog = byId<HTMLDialogElement>("key-dialog");
  byId("cancel-key").addEventListener("click", () => dialog.close());
  onSubmit(byId("key-form"), () => {
    serverKey.set(byId<HTMLInputElement>("key").value.trim());
    dialog.close("given");
  });
}

const THEMES = ["auto", "light", "dark"];

export function startTheme(): void {
  const button = byId("theme");
  const use = (name: string) => {
    document.documentElement.dataset["theme"] = name;
    button.textContent = { light: "☀", dark: "☾" }[name] ?? "◐";
    button.setAttribute("aria-label", `Colours: ${name}`);
    button.title = `Colours: ${name}`;
  };
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(theme.get()) + 1) % THEMES.length] ?? "auto";
    theme.set(next);
    use(next);
  });
  use(theme.get());
}
