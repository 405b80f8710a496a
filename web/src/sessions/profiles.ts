// The modes of work that each agent program has, under the program's own names.

const PROFILES: Record<string, string[]> = {
  opencode: ["build", "plan", "general", "explore"],
  claude: ["default", "acceptEdits", "plan", "bypassPermissions"],
  codex: ["default", "read-only", "workspace-write", "full-access"],
};

const NAMES: Record<string, string> = { claude: "Claude Code", codex: "Codex", opencode: "Opencode", scripted: "contextbase agent", acp: "ACP agent" };

export const providerName = (provider: string) => NAMES[provider] ?? provider;

export function profilesOf(provider: string): string[] {
  return PROFILES[provider] ?? [];
}

const key = (session: string) => `profile:${session}`;
export const keptProfile = (session: string): string | undefined => localStorage.getItem(key(session)) ?? undefined;
export function keepProfile(session: string, profile: string): void {
  localStorage.setItem(key(session), profile);
}
