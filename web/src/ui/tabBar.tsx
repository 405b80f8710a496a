import { type ReactNode, type RefObject, useEffect, useRef } from "react";
import { classes } from "./basics";

/** For tabs that scroll sideways where there is little room: the open one is in sight. */
export function useShownTab<E extends HTMLElement>(open: string): RefObject<E | null> {
  const bar = useRef<E>(null);
  useEffect(() => {
    bar.current?.querySelector('[aria-current="page"], [data-state="active"]')?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [open]);
  return bar;
}

/** Links to the pages beside this one. */
export function TabBar({ label, open, className, children }: { label: string; open: string; className?: string; children: ReactNode }) {
  const bar = useShownTab<HTMLElement>(open);
  return <nav ref={bar} aria-label={label} className={classes("flex shrink-0 gap-1 overflow-x-auto px-3", className)}>{children}</nav>;
}
