// What an agent is doing, in the eight words that people are shown.
import type { Schemas } from "../api/client";
import type { Tone } from "../ui/basics";

export type AgentState = "restoring" | "linking" | "preparing" | "running" | "syncing" | "stopped" | "error" | "waiting";
export const PHASES = ["restoring", "linking", "preparing", "running", "syncing"] as const;

const STATES: Record<string, AgentState> = {
  restoring: "restoring", linking: "linking", preparing: "preparing", running: "running", waiting_human: "waiting",
  syncing: "syncing", exported: "syncing", failed: "error",
};

/** A run that waits in the queue does nothing yet: its agent is stopped. */
export const agentState = (runState: string | undefined): AgentState => STATES[runState ?? ""] ?? "stopped";

const ENDED = new Set(["succeeded", "failed", "canceled"]);
export const hasEnded = (runState: string | undefined) => runState === undefined || ENDED.has(runState);
export const isWorking = (runState: string | undefined) => !hasEnded(runState) && runState !== "queued";

export const STATE_TONES: Record<AgentState, Tone> = {
  restoring: "merged", linking: "merged", preparing: "merged", running: "merged", syncing: "merged", stopped: "plain", error: "refused", waiting: "accent",
};

/** "0:42", "12:03", "1:02:03". */
export function formatClock(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const two = (value: number) => String(value).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** "340 ms", "4.2 s", "3 min 5 s". */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.floor(ms / 1000) % 60} s`;
}

/** "840", "12.4k", "1.2M". */
export function formatCount(count: number): string {
  if (count < 1000) return String(count);
  return count < 1_000_000 ? `${(count / 1000).toFixed(count < 100_000 ? 1 : 0)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}

export function formatCost(cost: number): string {
  return `$${cost.toFixed(cost > 0 && cost < 0.01 ? 4 : 2)}`;
}

/** The work of a run in all, without the time it waited in the queue. */
export function worked(run: Schemas["RunView"] | undefined): number {
  return Object.entries(run?.phases ?? {}).reduce((sum, [name, ms]) => sum + (name === "queued" || name === "claimed" ? 0 : ms), 0);
}
