import { ChevronDown, ChevronRight, File, FileSymlink, Folder } from "lucide-react";
import { type KeyboardEvent, memo, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { useText } from "../text";
import { classes } from "../ui/basics";
import { useWindow } from "../ui/windowed";
import type { Row, TreeStore } from "./treeStore";

const ROW = 28;

export function Tree({
  store, selected, working, onOpen, onFolder,
}: { store: TreeStore; selected: string; working: Set<string>; onOpen: (path: string) => void; onFolder: (path: string) => void }) {
  const t = useText();
  const rows = useSyncExternalStore(store.subscribe, store.rows);
  const box = useRef<HTMLDivElement>(null);
  const [first, last] = useWindow(box, ROW, rows.length);
  const [active, setActive] = useState(0);
  const shownFor = useRef("");

  // Brings the chosen file into sight once: when it is there, and not again while somebody scrolls.
  useEffect(() => {
    if (!selected || shownFor.current === selected) return;
    const index = rows.findIndex((row) => row.path === selected);
    if (index < 0) return;
    shownFor.current = selected;
    setActive(index);
    scrollTo(index);
  }, [rows, selected]);

  function scrollTo(index: number) {
    const element = box.current;
    if (!element) return;
    const top = index * ROW;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + ROW > element.scrollTop + element.clientHeight) element.scrollTop = top + ROW - element.clientHeight;
  }

  function go(index: number) {
    const next = Math.max(0, Math.min(rows.length - 1, index));
    setActive(next);
    scrollTo(next);
  }

  function onKeyDown(event: KeyboardEvent) {
    const row = rows[active];
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return; // Ctrl K is the palette's
    const page = Math.floor((box.current?.clientHeight ?? 0) / ROW) - 1;
    switch (event.key) {
      case "ArrowDown": case "j": go(active + 1); break;
      case "ArrowUp": case "k": go(active - 1); break;
      case "PageDown": go(active + page); break;
      case "PageUp": go(active - page); break;
      case "Home": go(0); break;
      case "End": go(rows.length - 1); break;
      case "ArrowRight": case "l":
        if (row.isFolder && !store.isOpen(row.path)) store.expand(row.path);
        else if (row.isFolder) go(active + 1);
        break;
      case "ArrowLeft": case "h":
        if (row.isFolder && store.isOpen(row.path)) store.collapse(row.path);
        else {
          const above = row.path.lastIndexOf("/");
          if (above > 0) go(rows.findIndex((one) => one.path === row.path.slice(0, above)));
        }
        break;
      case "Enter": case " ": choose(row); break;
      default: return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  function choose(row: Row) {
    if (row.isFolder) {
      store.toggle(row.path);
      onFolder(row.path);
    } else onOpen(row.path);
  }

  return (
    <div
      ref={box}
      role="tree"
      aria-label={t.tree.label}
      tabIndex={0}
      aria-activedescendant={rows[active] && active >= first && active < last ? `row-${active}` : undefined}
      onKeyDown={onKeyDown}
      className="group min-h-0 flex-1 overflow-auto py-1 focus-visible:outline-offset-[-2px]"
    >
      <div role="presentation" style={{ height: rows.length * ROW, position: "relative" }}>
        {rows.slice(first, last).map((row, offset) => (
          <TreeRow
            key={row.path}
            row={row}
            index={first + offset}
            isOpen={row.isFolder && store.isOpen(row.path)}
            isSelected={row.path === selected}
            isActive={first + offset === active}
            isWorking={working.has(row.path)}
            choose={() => {
              setActive(first + offset);
              choose(row);
            }}
          />
        ))}
      </div>
    </div>
  );
}

type RowProps = { row: Row; index: number; isOpen: boolean; isSelected: boolean; isActive: boolean; isWorking: boolean; choose: () => void };

const TreeRow = memo(
  function TreeRow({ row, index, isOpen, isSelected, isActive, isWorking, choose }: RowProps) {
    const Icon = row.isFolder ? Folder : row.kind === "symlink" ? FileSymlink : File;
    return (
      <div
        id={`row-${index}`}
        role="treeitem"
        aria-level={row.depth + 1}
        aria-selected={isSelected}
        aria-expanded={row.isFolder ? isOpen : undefined}
        onClick={choose}
        style={{ transform: `translateY(${index * ROW}px)`, height: ROW, paddingLeft: 8 + row.depth * 14 }}
        className={classes(
          "absolute inset-x-1 top-0 flex cursor-pointer items-center gap-1.5 rounded-md pr-2 text-sm",
          isSelected ? "bg-accent-soft" : "row-hover",
          isActive && "group-focus-visible:ring-1 group-focus-visible:ring-accent",
        )}
      >
        {row.isFolder ? isOpen ? <ChevronDown size={14} className="shrink-0 text-muted" aria-hidden /> : <ChevronRight size={14} className="shrink-0 text-muted" aria-hidden /> : <span className="w-3.5 shrink-0" />}
        <Icon size={14} strokeWidth={1.5} className="shrink-0 text-muted" aria-hidden />
        <span className="min-w-0 flex-1 truncate" title={row.name}>{row.name}</span>
        {isWorking && <span className="size-1.5 shrink-0 rounded-full bg-merged" role="img" aria-label="●" />}
      </div>
    );
  },
  (a, b) => a.row === b.row && a.index === b.index && a.isOpen === b.isOpen && a.isSelected === b.isSelected && a.isActive === b.isActive && a.isWorking === b.isWorking,
);
