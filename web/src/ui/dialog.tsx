// A dialog: everything that floats over a page and takes the keyboard.
import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { useText } from "../text";
import { classes, IconButton } from "./basics";

export function Dialog({
  title, open, onClose, children, wide, hideTitle,
}: { title: string; open: boolean; onClose: () => void; children: ReactNode; wide?: boolean; hideTitle?: boolean }) {
  const t = useText();
  return (
    <Radix.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <Radix.Content
          aria-describedby={undefined}
          className={classes(
            "fixed top-[10vh] left-1/2 z-50 flex max-h-[80vh] w-[calc(100vw-24px)] -translate-x-1/2 animate-appear flex-col overflow-hidden rounded-xl border bg-panel shadow-float focus:outline-none",
            wide ? "max-w-3xl" : "max-w-lg",
          )}
        >
          <div className={classes("flex items-center justify-between gap-2 border-b px-4 py-2", hideTitle && "sr-only")}>
            <Radix.Title className="text-base font-semibold">{title}</Radix.Title>
            <Radix.Close asChild>
              <IconButton label={t.common.close}><X size={16} /></IconButton>
            </Radix.Close>
          </div>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
