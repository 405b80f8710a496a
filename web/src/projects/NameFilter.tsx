import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { api, body } from "../api/client";
import type { At } from "../api/queries";
import { useText } from "../text";
import { classes, inputClass } from "../ui/basics";
import { baseName, folderOf } from "../ui/format";

/** Finds files by a few letters of their name; the list lies over the tree while somebody types. */
export function NameFilter({ project, at, onOpen }: { project: string; at: At; onOpen: (path: string) => void }) {
  const t = useText();
  const [words, setWords] = useState("");
  const [active, setActive] = useState(0);
  const question = useDeferredValue(words.trim());
  const found = useQuery({
    queryKey: ["project", project, "names", question, at ?? "head"],
    enabled: question !== "",
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) =>
      body(api.GET("/api/v1/search/names", { params: { query: { project, name: question, at: at === undefined ? "head" : String(at), limit: 50 } }, signal })),
  });
  const paths = question ? (found.data?.paths ?? []) : [];
  const choose = (path: string | undefined) => {
    if (path === undefined) return;
    setWords("");
    onOpen(path);
  };
  return (
    <div className="relative min-w-0 flex-1">
      <input
        type="search"
        role="combobox"
        aria-expanded={paths.length > 0}
        aria-controls="name-matches"
        aria-activedescendant={paths[active] ? `match-${active}` : undefined}
        aria-label={t.tree.filter}
        placeholder={t.tree.filter}
        className={inputClass}
        value={words}
        onChange={(event) => {
          setWords(event.target.value);
          setActive(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") setActive(Math.min(active + 1, paths.length - 1));
          else if (event.key === "ArrowUp") setActive(Math.max(active - 1, 0));
          else if (event.key === "Enter") choose(paths[active]);
          else if (event.key === "Escape") setWords("");
          else return;
          event.preventDefault();
        }}
      />
      <ul
        id="name-matches"
        role="listbox"
        aria-label={t.tree.filter}
        className={classes("absolute top-9 left-0 z-20 max-h-[60vh] w-[min(420px,90vw)] overflow-auto rounded-lg border bg-panel p-1 shadow-float", !question && "hidden")}
      >
        {paths.map((path, index) => (
          <li
            key={path}
            id={`match-${index}`}
            role="option"
            aria-selected={index === active}
            onMouseMove={() => setActive(index)}
            onMouseDown={(event) => {
              event.preventDefault();
              choose(path);
            }}
            className={classes("flex flex-col rounded-md px-2 py-1", index === active && "bg-hover")}
          >
            <span className="truncate text-sm">{baseName(path)}</span>
            <span className="truncate text-xs text-muted">{folderOf(path)}</span>
          </li>
        ))}
        {question && found.isSuccess && paths.length === 0 && <li role="presentation" className="p-2 text-sm text-muted">{t.tree.noneMatch}</li>}
      </ul>
    </div>
  );
}
