// Which language is shown, and its texts. English is in the first download; others come when they are chosen.
import { useSyncExternalStore } from "react";
import { en, type Messages } from "./en";

export type Language = "en" | "zh";
export const LANGUAGES: { id: Language; name: string }[] = [
  { id: "en", name: "English" },
  { id: "zh", name: "中文" },
];

let messages: Messages = en;
let language: Language = "en";
const listeners = new Set<() => void>();

export function currentLanguage(): Language {
  return language;
}

export function preferredLanguage(): Language {
  const kept = localStorage.getItem("language");
  if (kept === "en" || kept === "zh") return kept;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export async function setLanguage(wanted: Language): Promise<void> {
  messages = wanted === "zh" ? (await import("./zh")).zh : en;
  language = wanted;
  document.documentElement.lang = wanted === "zh" ? "zh-CN" : "en";
  listeners.forEach((listener) => listener());
}

export function text(): Messages {
  return messages;
}

export function useText(): Messages {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => messages,
  );
}
