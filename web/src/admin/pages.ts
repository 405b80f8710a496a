import type { Messages } from "../text/en";

export const ADMIN_PAGES = ["health", "usage", "people", "roles", "tokens", "audit"] as const;
export type AdminPage = (typeof ADMIN_PAGES)[number];

export function adminTitle(t: Messages, page: AdminPage): string {
  return page === "people" ? t.people.title : page === "roles" ? t.people.roles : page === "usage" ? t.usage.title : t.admin[page];
}
