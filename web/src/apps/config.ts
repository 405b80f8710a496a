// A configuration as rows, and as a form: what people change most has fields, the rest is JSON.
import type { Schemas } from "../api/client";

export type Config = Schemas["EffectiveConfigView"]["config"];
export const FIELDS = ["provider", "model", "profile", "landing", "system_prompt"] as const;
export type FieldName = (typeof FIELDS)[number];
export type Row = { name: string; value: unknown; layer: string | undefined };

/** Every value that is set, by the name that its provenance has: limits.seconds, environment.CITY. */
export function rowsOf(config: object, provenance: Record<string, string>): Row[] {
  const rows: Row[] = [];
  const walk = (name: string, value: unknown) => {
    if (value === null || value === undefined) return;
    const isOwn = name in provenance;
    if (!isOwn && typeof value === "object" && !Array.isArray(value)) {
      for (const [key, part] of Object.entries(value)) walk(name ? `${name}.${key}` : key, part);
    } else rows.push({ name, value, layer: provenance[name] ?? nearest(name, provenance) });
  };
  walk("", config);
  return rows;
}

function nearest(name: string, provenance: Record<string, string>): string | undefined {
  for (let at = name.lastIndexOf("."); at > 0; at = name.lastIndexOf(".", at - 1)) {
    const found = provenance[name.slice(0, at)];
    if (found) return found;
  }
  return undefined;
}

export function shownValue(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "object" && value && "secret" in value && Object.keys(value).length === 1) return `secret: ${String(value.secret)}`;
  return JSON.stringify(value, null, Array.isArray(value) ? 0 : 2);
}

export function splitConfig(config: object): { fields: Record<FieldName, string>; rest: string } {
  const given = Object.fromEntries(Object.entries(config).filter(([, value]) => value !== null && value !== undefined));
  const fields = Object.fromEntries(FIELDS.map((name) => [name, typeof given[name] === "string" ? given[name] : ""])) as Record<FieldName, string>;
  for (const name of FIELDS) delete given[name];
  return { fields, rest: Object.keys(given).length ? JSON.stringify(given, null, 2) : "" };
}

/** The document that a layer gets; null when the JSON is not an object. */
export function joinConfig(fields: Record<FieldName, string>, rest: string): Record<string, unknown> | null {
  let more: unknown = {};
  try {
    if (rest.trim()) more = JSON.parse(rest);
  } catch {
    return null;
  }
  if (typeof more !== "object" || more === null || Array.isArray(more)) return null;
  const set = Object.entries(fields).filter(([, value]) => value !== "");
  return { ...more, ...Object.fromEntries(set) };
}
