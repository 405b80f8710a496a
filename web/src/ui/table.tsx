import type { ReactNode } from "react";

export function Table({ label, head, rows }: { label: string; head: ReactNode[]; rows: { key: string; cells: ReactNode[] }[] }) {
  return (
    <div className="panel relative overflow-x-auto" role="region" aria-label={label} tabIndex={0}>
      <table className="w-full border-collapse text-sm">
        <thead>
          <tr>{head.map((cell, index) => <th key={index} scope="col" className="border-b px-3 py-2 text-left text-xs font-medium whitespace-nowrap text-muted">{cell}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.key} className="row-hover border-b last:border-b-0">{row.cells.map((cell, index) => <td key={index} className="px-3 py-2 align-top">{cell}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
