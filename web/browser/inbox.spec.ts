import { existsSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ask, open, script, type Visit, violations, visit } from "./browser";

const ours = Math.random().toString(36).slice(2, 8);
let browser: Visit;
beforeEach(async () => {
  browser = await visit();
});
afterEach(async () => {
  const { problems } = browser;
  await browser.close();
  expect(problems).toEqual([]);
});

/** A run to its end; what it came to. */
async function ran(session: string, message: string): Promise<string> {
  const { id } = await ask<{ id: string }>("POST", `/api/v1/sessions/${session}/runs`, { message });
  for (;;) {
    const { state } = await ask<{ state: string }>("GET", `/api/v1/runs/${id}`);
    if (["succeeded", "failed", "canceled"].includes(state)) return state;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** A model service that says one word, and has read a million tokens for it. */
async function dearModel(): Promise<Server> {
  const usage = { input_tokens: 1_000_000, output_tokens: 1, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
  const start = { type: "message_start", message: { id: `msg-${ours}`, type: "message", role: "assistant", model: "claude-sonnet-4-5", content: [], stop_reason: null, stop_sequence: null, usage } };
  const events = [
    start,
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Done." } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 1 } },
    { type: "message_stop" },
  ];
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream", "request-id": Math.random().toString(36) });
      response.end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

it("has a budget that is nearly used up, for those who can raise it", async () => {
  const { page } = browser;
  const project = `dear-${ours}`;
  await ask("POST", "/api/v1/projects", { name: project });
  const model = await dearModel();
  try {
    await ask("POST", "/api/v1/model-upstreams", { name: project, protocol: "anthropic", url: `http://127.0.0.1:${(model.address() as AddressInfo).port}`, key: "none", scope: "project", project });
    const { id } = await ask<{ id: string }>("POST", "/api/v1/sessions", { project, provider: "scripted", title: "Dear" });
    expect(await ran(id, "Say it.")).toBe("succeeded");
  } finally {
    await ask("DELETE", `/api/v1/model-upstreams/${project}`);
    model.close();
  }
  const budget = async () => (await ask<{ budgets: { subject: string; spent: number }[] }>("GET", "/api/v1/model-budgets")).budgets.find((one) => one.subject === project);
  await ask("PUT", "/api/v1/model-budgets", { scope: "project", subject: project, monthly_limit: 1_000_000_000 });
  const spent = (await budget())?.spent ?? 0;
  expect(spent).toBeGreaterThan(1_000_000);
  await open(page, "/inbox");
  await page.waitForSelector("text=in review");
  expect(await page.locator(`li:has-text("${project}")`).count()).toBe(0);
  await ask("PUT", "/api/v1/model-budgets", { scope: "project", subject: project, monthly_limit: Math.round(spent * 1.1) });
  await open(page, "/inbox");
  await page.click('[role="radio"]:has-text("Budgets")');
  await page.waitForSelector(`li:has-text("budget"):has-text("${project}"):has-text("spent this month")`);
  expect(await page.locator('li:has-text("in review")').count()).toBe(0);
  expect(await violations(page)).toEqual([]);
  await page.click(`li:has-text("${project}") button`);
  await page.waitForURL("**/admin/usage");
  await ask("PUT", "/api/v1/model-budgets", { scope: "project", subject: project, monthly_limit: null });
});

it("has a session whose files cannot be stored, until they are", async () => {
  const { page } = browser;
  const title = `Full disk ${ours}`;
  const { id } = await ask<{ id: string }>("POST", "/api/v1/sessions", { project: "notes", provider: "scripted", title, land: "never" });
  const large = script({ tool: "bash", input: { command: "head -c 600000 /dev/urandom > large" } }, { text: "Done." });
  // What is large goes below the data folder, where there is a file in its place now.
  const blobs = `${process.env.WORKBENCH_DATA}/blobs`;
  const wasThere = existsSync(blobs);
  if (wasThere) renameSync(blobs, `${blobs}-away`);
  writeFileSync(blobs, "");
  try {
    for (let times = 0; times < 5; times++) expect(await ran(id, large)).toBe("failed");
    await open(page, "/inbox");
    await page.waitForSelector(`li:has-text("not stored"):has-text("${title}"):has-text("could not be stored")`);
    expect(await page.locator(`li:has-text("${title}")`).count()).toBe(1);
    await page.click('[role="radio"]:has-text("Not stored")');
    await page.click(`li:has-text("${title}") button`);
    await page.waitForSelector('[role="alert"]:has-text("could not be stored")');
  } finally {
    unlinkSync(blobs);
    if (wasThere) renameSync(`${blobs}-away`, blobs);
  }
  expect(await ran(id, script({ text: "It is well again." }))).toBe("succeeded");
  await open(page, "/inbox");
  await page.waitForSelector("text=in review");
  await page.waitForSelector(`li:has-text("${title}")`, { state: "detached" });
});
