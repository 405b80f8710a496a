// What differs in a file, as the server compared it: lines with the words that differ, or sizes where it is not text.
import { memo } from "react";
import type { FileDiff, Schemas } from "../api/client";
import { useText } from "../text";
import { classes, Outcome } from "../ui/basics";
import { formatBytes } from "../ui/format";
import { pairs, type Piece, rowsOf } from "./diffRows";

type Diff = Pick<FileDiff, "path" | "old_path" | "status" | "kind" | "added_lines" | "removed_lines" | "hunks" | "notes"> & { old?: FileDiff["old"]; new?: FileDiff["new"] };

/** Somebody has something to say about a line. */
export type OnLine = (line: number, text: string) => void;

export const DiffFile = memo(function DiffFile({ diff, open, onToggle, link, onLine }: { diff: Diff; open: boolean; onToggle: () => void; link?: React.ReactNode; onLine?: OnLine }) {
  const t = useText();
  const isRename = diff.status === "renamed" && diff.old_path && diff.old_path !== diff.path;
  return (
    <article className="panel mb-4 overflow-hidden" aria-label={diff.path}>
      <header className="flex min-h-10 flex-wrap items-center gap-2 border-b bg-sunken px-3 py-1.5">
        <button type="button" aria-expanded={open} onClick={onToggle} className="mono min-w-0 flex-1 truncate text-left" title={diff.path}>
          <span className="mr-2 inline-block w-3 text-muted" aria-hidden>{open ? "▾" : "▸"}</span>
          {isRename && <span className="text-muted">{diff.old_path} → </span>}
          {diff.path}
        </button>
        <Outcome what={diff.status} />
        <Counts added={diff.added_lines} removed={diff.removed_lines} />
        {link}
      </header>
      {open && (
        <>
          {diff.notes.map((note) => <p key={note} className="border-b px-3 py-1 text-xs text-muted">{note}</p>)}
          {diff.hunks.length > 0 ? (
            <div className="overflow-x-auto" tabIndex={0} role="region" aria-label={`${t.compare.title}: ${diff.path}`}>
              {diff.hunks.map((hunk) => <Hunk key={hunk.header + hunk.old_start} hunk={hunk} onLine={onLine} />)}
            </div>
          ) : (
            diff.kind === "binary" && <p className="px-3 py-2 text-sm text-muted">{t.compare.binary} {t.compare.sizes(formatBytes(diff.old?.size ?? 0), formatBytes(diff.new?.size ?? 0))}</p>
          )}
        </>
      )}
    </article>
  );
});

export function Counts({ added, removed }: { added: number; removed: number }) {
  if (!added && !removed) return null;
  return (
    <span className="text-xs tabular">
      {added > 0 && <span className="text-written">+{added}</span>} {removed > 0 && <span className="text-refused">−{removed}</span>}
    </span>
  );
}

type HunkLines = Pick<Schemas["HunkView"], "old_start" | "new_start" | "lines"> & { header?: string };

/** Without a header, the place in the file is not known, and lines have no numbers. */
export function Hunk({ hunk, onLine }: { hunk: HunkLines; onLine?: OnLine }) {
  const t = useText();
  const hasPlace = hunk.header !== undefined;
  return (
    <table className="mono w-full border-collapse">
      <tbody>
        {hasPlace && <tr><td colSpan={4} className="bg-sunken px-3 py-0.5 text-muted">{hunk.header}</td></tr>}
        {pairs(rowsOf(hunk)).map((row, index) => (
          <tr key={index} className={row.mark === "+" ? "bg-written-soft" : row.mark === "-" ? "bg-refused-soft" : ""}>
            {hasPlace && <td className="w-10 min-w-10 px-2 text-right text-muted tabular select-none">{row.old ?? ""}</td>}
            {hasPlace && <td className="w-10 min-w-10 px-2 text-right text-muted tabular select-none">{onLine && row.now !== null ? <button type="button" aria-label={`${t.sessions.changes.comment}: ${row.now}`} title={t.sessions.changes.comment} className="hover:text-accent" onClick={() => onLine(row.now ?? 0, row.pieces.map((piece) => piece.text).join(""))}>{row.now}</button> : (row.now ?? "")}</td>}
            <td className={classes("w-4 select-none", !hasPlace && "pl-3", row.mark === "+" && "text-written", row.mark === "-" && "text-refused")}>{row.mark}</td>
            <td className="pr-4 whitespace-pre"><Pieces pieces={row.pieces} mark={row.mark} /></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Pieces({ pieces, mark }: { pieces: Piece[]; mark: string }) {
  return pieces.map((piece, index) =>
    piece.differs ? (
      <span key={index} className={classes("rounded-[3px]", mark === "+" ? "bg-written/25" : "bg-refused/25")}>{piece.text}</span>
    ) : (
      <span key={index}>{piece.text}</span>
    ),
  );
}
