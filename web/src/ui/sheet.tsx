// A panel that slides over the page where there is no room beside it.
import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { useText } from "../text";
import { classes, IconButton } from "./basics";

export function Sheet({ title, side, open, onClose, children }: { title: string; side: "left" | "right"; open: boolean; onClose: () => void; children: ReactNode }) {
  const t = useText();
  return (
    <Radix.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <Radix.Content aria-describedby={undefined} onEscapeKeyDown={(event) => event.target instanceof Element && event.target.closest("[data-own-keys]") && event.preventDefault()} className={classes("fixed inset-y-0 z-50 flex w-[min(420px,calc(100vw-32px))] animate-appear flex-col border bg-background shadow-float focus:outline-none", side === "left" ? "left-0" : "right-0")}>
          <div className="flex h-12 shrink-0 items-center justify-between border-b px-4">
            <Radix.Title className="text-base font-semibold">{title}</Radix.Title>
            <Radix.Close asChild><IconButton label={t.common.close}><X size={16} /></IconButton></Radix.Close>
          </div>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
