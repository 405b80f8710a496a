// j/k and the arrow keys through a list, Enter to open.
import { useEffect, useRef, useState } from "react";
import { useShortcut } from "../shell/keyboard";
import { useText } from "../text";

export function useListKeys(count: number, open?: (index: number) => void, start = -1) {
  const t = useText();
  const [active, setActive] = useState(start);
  const box = useRef<HTMLUListElement>(null);
  const move = (step: number) => setActive((at) => Math.max(0, Math.min(count - 1, at + step)));
  useShortcut("j", t.shortcuts.nextItem, () => move(1), count > 0);
  useShortcut("k", t.shortcuts.previousItem, () => move(-1), count > 0);
  useShortcut("Enter", t.common.open, () => active >= 0 && open?.(active), count > 0 && !!open);
  useEffect(() => {
    box.current?.children[active]?.scrollIntoView({ block: "nearest" });
  }, [active]);
  return { active: Math.min(active, count - 1), setActive, props: { ref: box } };
}
