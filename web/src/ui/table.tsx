import type { ReactNode } from "react";
import { classes } from "./basics";

/** Rows of cells; on a narrow screen each row is a block of its own, with the head of its column beside each cell.
 * A column whose head is not a plain text has what can be done with the row: it takes no more room than that. */
export function Table({ label, head, rows }: { label: string; head: ReactNode[]; rows: { key: string; cells: ReactNode[] }[] }) {
  return (
    <div className="panel relative overflow-x-auto" role="region" aria-label={label} tabIndex={0}>
      <table role="table" className="w-full border-collapse text-sm max-sm:block">
        <thead role="rowgroup" className="max-sm:sr-only">
          <tr role="row">
            {head.map((cell, index) => (
              <th key={index} role="columnheader" scope="col" className="border-b px-3 py-2 text-left text-xs font-medium whitespace-nowrap text-muted">{cell}</th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup" className="max-sm:block">
          {rows.map((row) => (
            <tr key={row.key} role="row" className="row-hover border-b last:border-b-0 max-sm:block max-sm:py-2">
              {row.cells.map((cell, index) => (
                <td key={index} role="cell" className={classes("px-3 align-top max-sm:flex max-sm:items-baseline max-sm:gap-3 max-sm:py-1", typeof head[index] === "string" ? "py-2" : "py-1 sm:w-px sm:text-right sm:whitespace-nowrap")}>
                  <span aria-hidden className="w-20 shrink-0 text-xs text-muted sm:hidden">{head[index]}</span>
                  <span className="min-w-0 max-sm:break-words">{cell}</span>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
