// How numbers, times and names are written.
import { currentLanguage, text } from "../text";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export function formatBytes(count: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let value = count;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** "2 min", "3 h", "5 d", then a date. */
export function formatAge(at: string | number, now = Date.now()): string {
  const seconds = Math.max(0, (now - new Date(at).getTime()) / 1000);
  const zh = currentLanguage() === "zh";
  if (seconds < 10) return text().common.justNow;
  if (seconds < MINUTE) return zh ? `${Math.floor(seconds)} 秒` : `${Math.floor(seconds)} s`;
  if (seconds < HOUR) return zh ? `${Math.floor(seconds / MINUTE)} 分钟` : `${Math.floor(seconds / MINUTE)} min`;
  if (seconds < DAY) return zh ? `${Math.floor(seconds / HOUR)} 小时` : `${Math.floor(seconds / HOUR)} h`;
  if (seconds < 30 * DAY) return zh ? `${Math.floor(seconds / DAY)} 天` : `${Math.floor(seconds / DAY)} d`;
  return new Date(at).toLocaleDateString(zh ? "zh-CN" : "en-GB", { year: "numeric", month: "short", day: "numeric" });
}

export function formatMoment(at: string): string {
  return new Date(at).toLocaleString(currentLanguage() === "zh" ? "zh-CN" : "en-GB", {
    dateStyle: "medium",
    timeStyle: "medium",
  });
}

/** People by their name alone, everybody else with what they are: agent:planner. */
export function shortName(principal: string): string {
  return principal.startsWith("user:") ? principal.slice(5) : principal;
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

export function folderOf(path: string): string {
  const at = path.lastIndexOf("/");
  return at < 0 ? "" : path.slice(0, at);
}
