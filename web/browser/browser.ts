// A real Chromium against a real server, for the tests: see tests/e2e/web.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";

export const url = process.env.WORKBENCH_URL ?? "http://127.0.0.1:8080";
export const ownerToken = process.env.WORKBENCH_OWNER ?? "";
export const readerToken = process.env.WORKBENCH_READER ?? "";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

export type Options = { token?: string | null; width?: number; height?: number; theme?: "light" | "dark"; language?: string };
export type Visit = { page: Page; context: BrowserContext; problems: string[]; close: () => Promise<void> };

let started: Promise<Browser> | undefined;

/** One browser for all tests of a file; it ends with the process. */
function browser(): Promise<Browser> {
  started ??= chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args: FLAGS });
  return started;
}

/** A profile with nothing in it but a login. `problems` gathers errors of scripts and of the content security policy. */
export async function visit(options: Options = {}): Promise<Visit> {
  const context = await (await browser()).newContext({
    viewport: { width: options.width ?? 1440, height: options.height ?? 900 },
    colorScheme: options.theme ?? "light",
    locale: options.language ?? "en-GB",
    permissions: ["clipboard-read", "clipboard-write"],
    acceptDownloads: true,
  });
  const token = options.token === undefined ? ownerToken : options.token;
  if (token) {
    const answer = await context.request.post(`${url}/login`, { data: { token }, headers: { Origin: url, Accept: "application/json" } });
    if (!answer.ok()) throw new Error(`login: ${answer.status()} ${await answer.text()}`);
  }
  const problems: string[] = [];
  const watch = (page: Page) => {
    page.on("pageerror", (error) => problems.push(`script: ${error.message}`));
    page.on("console", (message) => {
      const text = message.text();
      if (/Content Security Policy|Refused to/i.test(text)) problems.push(`policy: ${text}`);
    });
  };
  context.on("page", watch);
  const page = await context.newPage();
  page.setDefaultTimeout(Number(process.env.WORKBENCH_PATIENCE_MS ?? 60_000));
  return { page, context, problems, close: () => context.close() };
}

export async function open(page: Page, path: string): Promise<void> {
  await page.goto(url + path);
  await page.waitForSelector("main");
}

/** What the built-in model says and does, written into the message. */
export const script = (...steps: object[]) => `Do as the plan says.\n\`\`\`script\n${JSON.stringify(steps)}\n\`\`\``;

/** What axe finds wrong with the page, once nothing on it changes its colour or opacity any more. */
export async function violations(page: Page): Promise<string[]> {
  await page.waitForFunction(() => document.getAnimations().every((one) => one.playState !== "running" || one.effect?.getComputedTiming().endTime === Number.POSITIVE_INFINITY));
  // As a file of the browser's own: the page's policy allows no scripts but the server's.
  await page.evaluate(readFileSync(AXE, "utf8"));
  return await page.evaluate(async () => {
    const axe = (window as unknown as { axe: { run: (what: Document, options: object) => Promise<{ violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[] }> } }).axe;
    const found = await axe.run(document, { resultTypes: ["violations"] });
    return found.violations.flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.html.slice(0, 160)} — ${(node.failureSummary ?? "").split("\n").slice(1, 3).join(" ").slice(0, 220)}`));
  });
}

/** A request as the owner, beside the browser. */
export async function ask<T>(method: string, path: string, body?: unknown, token = ownerToken): Promise<T> {
  const answer = await fetch(url + path, { method, headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" }, body: body === undefined ? undefined : JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

/** Somebody with a role in the project, in a browser of their own. */
export async function guest(name: string, role: string): Promise<Visit> {
  await ask("POST", "/api/v1/users", { login_name: name, display_name: name });
  await ask("PUT", "/api/v1/roles/bindings", { user: name, role, scope: "project:notes" });
  const { secret } = await ask<{ secret: string }>("POST", "/api/v1/tokens", { principal: name, kind: "user" });
  return await visit({ token: secret });
}
