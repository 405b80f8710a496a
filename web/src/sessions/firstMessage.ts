// The first message of a session, between the page that made it and the page that shows it.
const waiting = new Map<string, string>();

export function giveFirstMessage(session: string, text: string): void {
  waiting.set(session, text);
}

export function takeFirstMessage(session: string): string | undefined {
  const text = waiting.get(session);
  waiting.delete(session);
  return text;
}
