import { useText } from "../text";
import { Kbd } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { shown, type Shortcut, useShortcuts } from "./keyboard";

export function ShortcutList({ open, onClose }: { open: boolean; onClose: () => void }) {
  const t = useText();
  const all = useShortcuts();
  const unique = [...new Map(all.map((one) => [one.keys, one])).values()];
  return (
    <Dialog title={t.shortcuts.title} open={open} onClose={onClose}>
      <div className="grid gap-6 overflow-auto p-4 sm:grid-cols-2" tabIndex={0} role="group" aria-label={t.shortcuts.title}>
        <Group title={t.shortcuts.here} shortcuts={unique.filter((one) => !one.everywhere)} />
        <Group title={t.shortcuts.everywhere} shortcuts={unique.filter((one) => one.everywhere)} />
      </div>
    </Dialog>
  );
}

function Group({ title, shortcuts }: { title: string; shortcuts: Shortcut[] }) {
  if (shortcuts.length === 0) return null;
  return (
    <section>
      <h3 className="mb-2 text-xs text-muted">{title}</h3>
      <ul className="flex flex-col gap-2">
        {shortcuts.map((one) => (
          <li key={one.keys} className="flex items-center justify-between gap-4">
            <span>{one.label}</span>
            <span className="flex gap-1">{shown(one.keys).split(" ").map((key) => <Kbd key={key}>{key}</Kbd>)}<span className="sr-only">{shown(one.keys)}</span></span>
          </li>
        ))}
      </ul>
    </section>
  );
}
