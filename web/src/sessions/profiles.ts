// Which program works, and how much it does by itself; both can change from message to message.
export const PROFILES = ["default", "ask", "plan"] as const;
export type Profile = (typeof PROFILES)[number];
export type Wishes = { provider?: string; executionProfile?: Profile };

const NAMES: Record<string, string> = { claude: "Claude Code", "claude-code": "Claude Code", codex: "Codex", "codex-cli": "Codex", opencode: "Opencode", scripted: "contextbase agent", acp: "ACP agent" };

export const providerName = (provider: string) => NAMES[provider] ?? provider;

const key = (session: string) => `wishes:${session}`;

export function keptWishes(session: string): Wishes {
  try {
    return JSON.parse(localStorage.getItem(key(session)) ?? "{}") as Wishes;
  } catch {
    return {};
  }
}

export function keepWishes(session: string, wishes: Wishes): void {
  localStorage.setItem(key(session), JSON.stringify(wishes));
}
