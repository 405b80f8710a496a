// What just happened, and the way back: actions are done at once and offer Undo, instead of asking first.
import { X } from "lucide-react";
import { type ReactNode, useSyncExternalStore } from "react";
import { text, useText } from "../text";
import { Button, IconButton } from "./basics";

type Toast = { id: number; message: ReactNode; undo?: () => Promise<void>; isError: boolean };

let toasts: Toast[] = [];
let next = 1;
const listeners = new Set<() => void>();
const LASTS_MS = 8000;

function set(changed: Toast[]): void {
  toasts = changed;
  listeners.forEach((listener) => listener());
}

function dismiss(id: number): void {
  set(toasts.filter((toast) => toast.id !== id));
}

export function tell(message: ReactNode, options: { undo?: () => Promise<void>; isError?: boolean } = {}): void {
  const id = next++;
  set([...toasts.slice(-2), { id, message, undo: options.undo, isError: options.isError ?? false }]);
  if (!options.isError) setTimeout(() => dismiss(id), options.undo ? 2 * LASTS_MS : LASTS_MS);
}

export function tellError(error: unknown): void {
  tell(error instanceof Error ? error.message : text().errors.title, { isError: true });
}

/** The newest undo on offer, for the keyboard. */
export function undoLast(): void {
  const found = [...toasts].reverse().find((toast) => toast.undo);
  if (found) void run(found);
}

async function run(toast: Toast): Promise<void> {
  dismiss(toast.id);
  try {
    await toast.undo?.();
  } catch (error) {
    tellError(error);
  }
}

export function Toasts() {
  const t = useText();
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <div className="pointer-events-none fixed inset-x-3 bottom-16 z-50 flex flex-col items-center gap-2 md:bottom-6" role="status">
      {shown.map((toast) => (
        <div
          key={toast.id}
          role={toast.isError ? "alert" : undefined}
          className="pointer-events-auto flex max-w-xl animate-appear items-center gap-3 rounded-lg border border-line-strong bg-panel py-1.5 pr-1.5 pl-4 shadow-float"
        >
          <span className={toast.isError ? "text-refused" : ""}>{toast.message}</span>
          {toast.undo && <Button small keys="u" onClick={() => void run(toast)}>{t.common.undo}</Button>}
          <IconButton label={t.common.dismiss} onClick={() => dismiss(toast.id)}><X size={14} /></IconButton>
        </div>
      ))}
    </div>
  );
}
