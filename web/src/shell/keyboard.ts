// Shortcuts: pages say which keys they take and what for; one listener runs them, and ? lists them.
import { useEffect, useRef, useSyncExternalStore } from "react";

export type Shortcut = { keys: string; label: string; everywhere?: boolean; run: (event: KeyboardEvent) => void };

let shortcuts: Shortcut[] = [];
const listeners = new Set<() => void>();
let pending = "";
let pendingTimer: ReturnType<typeof setTimeout> | undefined;

function changed(next: Shortcut[]): void {
  shortcuts = next;
  listeners.forEach((listener) => listener());
}

/** "mod+k", "?", "j", or two after each other: "g p". */
export function nameOf(event: KeyboardEvent): string {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  return event.metaKey || event.ctrlKey ? `mod+${key}` : key;
}

export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

export function handleKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.altKey) return;
  const name = nameOf(event);
  const withModifier = name.startsWith("mod+");
  if (!withModifier && name !== "Escape" && isTyping(event.target)) return;
  const inDialog = event.target instanceof Element && event.target.closest('[role="dialog"], [role="menu"]');
  if (inDialog && !withModifier) return;
  // Enter and Space on a button or link are that button's own.
  if ((name === "Enter" || name === " ") && event.target instanceof Element && event.target.closest("button, a, summary")) return;
  const sequence = pending ? `${pending} ${name}` : name;
  const found = [...shortcuts].reverse().find((one) => one.keys === sequence);
  clearTimeout(pendingTimer);
  pending = "";
  if (found) {
    event.preventDefault();
    found.run(event);
  } else if (shortcuts.some((one) => one.keys.startsWith(`${name} `))) {
    pending = name;
    pendingTimer = setTimeout(() => (pending = ""), 1200);
  }
}

export function useShortcut(keys: string, label: string, run: (event: KeyboardEvent) => void, enabled = true, everywhere = false): void {
  const latest = useRef(run);
  useEffect(() => {
    latest.current = run;
  });
  useEffect(() => {
    if (!enabled) return;
    const one: Shortcut = { keys, label, everywhere, run: (event) => latest.current(event) };
    changed([...shortcuts, one]);
    return () => changed(shortcuts.filter((other) => other !== one));
  }, [keys, label, enabled, everywhere]);
}

export function useShortcuts(): Shortcut[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => shortcuts,
  );
}

const MAC = /Mac|iPhone|iPad/.test(navigator.platform);
export function shown(keys: string): string {
  return keys.replace("mod+", MAC ? "⌘ " : "Ctrl ").replace(/\b([a-z])$/, (letter) => (keys.includes("mod+") ? letter.toUpperCase() : letter));
}
