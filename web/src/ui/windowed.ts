// Which rows of a long list are in sight; all rows are equally high.
import { type RefObject, useLayoutEffect, useState } from "react";

const MORE = 8; // rows beyond each edge, for fast scrolling

export function windowOf(scrollTop: number, height: number, rowHeight: number, count: number): [number, number] {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - MORE);
  const last = Math.min(count, Math.ceil((scrollTop + height) / rowHeight) + MORE);
  return [Math.min(first, last), last];
}

export function useWindow(box: RefObject<HTMLElement | null>, rowHeight: number, count: number): [number, number] {
  const [sight, setSight] = useState<[number, number]>([0, 0]);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    let frame = 0;
    const measure = () => {
      frame = 0;
      const next = windowOf(element.scrollTop, element.clientHeight, rowHeight, count);
      setSight((now) => (now[0] === next[0] && now[1] === next[1] ? now : next));
    };
    const soon = () => (frame ||= requestAnimationFrame(measure));
    measure();
    element.addEventListener("scroll", soon, { passive: true });
    const observer = new ResizeObserver(soon);
    observer.observe(element);
    return () => {
      cancelAnimationFrame(frame);
      element.removeEventListener("scroll", soon);
      observer.disconnect();
    };
  }, [box, rowHeight, count]);
  return sight;
}
