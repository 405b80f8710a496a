// Light, dark, or as the system is.
import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

export function currentTheme(): Theme {
  const kept = localStorage.getItem("theme");
  return kept === "light" || kept === "dark" ? kept : "system";
}

export function isDark(): boolean {
  return document.documentElement.dataset.theme === "dark";
}

export function applyTheme(): void {
  const theme = currentTheme();
  document.documentElement.dataset.theme = theme === "system" ? (dark.matches ? "dark" : "light") : theme;
  listeners.forEach((listener) => listener());
}

export function setTheme(theme: Theme): void {
  localStorage.setItem("theme", theme);
  applyTheme();
}

dark.addEventListener("change", applyTheme);

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const useTheme = (): Theme => useSyncExternalStore(subscribe, currentTheme);
export const useIsDark = (): boolean => useSyncExternalStore(subscribe, isDark);
