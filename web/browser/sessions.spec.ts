import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ask, open, script, type Visit, violations, visit } from "./browser";

type Session = { id: string };

const ours = Math.random().toString(36).slice(2, 8); // names that no test took before

async function textOf(path: string): Promise<string | null | undefined> {
  const found = await ask<{ entries: { text: string | null }[] }>("POST", "/api/v1/checkouts", { project: "notes", paths: [path], contents: true });
  return found.entries[0]?.text;
}

async function newSession(title: string, options: object = {}): Promise<string> {
  return (await ask<Session>("POST", "/api/v1/sessions", { project: "notes", provider: "scripted", title, ...options })).id;
}

let browser: Visit;
beforeEach(async () => {
  browser = await visit();
});
afterEach(async () => {
  const { problems } = browser;
  await browser.close();
  expect(problems).toEqual([]);
});

/** Not the reader's own words, which have the script. */
const said = (text: string) => `article[aria-label="Agent"]:has-text("${text}")`;

async function say(text: string): Promise<void> {
  await browser.page.fill('textarea[aria-label="Message"]', text);
  await browser.page.keyboard.press("Enter");
}

describe("a conversation", () => {
  it("goes from the first message to a file in the project", async () => {
    const { page } = browser;
    await open(page, "/sessions/new?project=notes");
    await page.waitForSelector("text=What should be done?");
    await page.selectOption('select:has(option[value="scripted"])', "scripted");
    await say(script({ text: "I write it **now**." }, { tool: "write", input: { path: `greeting-${ours}.md`, content: "Hello.\n" } }, { text: "It is written." }));
    await page.waitForURL(/sessions\/[0-9a-f-]{36}/);
    await page.waitForSelector('article strong:has-text("now")');
    await page.waitForSelector(`[data-tool="write"]:has-text("greeting-${ours}.md")`);
    await page.waitForSelector('[data-testid="landing"]:has-text("1 written")');
    await page.waitForSelector('[data-tool="write"]:has-text("written")');
    expect(await textOf(`greeting-${ours}.md`)).toBe("Hello.\n");
    await page.click(`[data-testid="landing"] button:has-text("greeting-${ours}.md")`);
    await page.waitForSelector('aside .cm-line:has-text("Hello.")');
    await page.waitForSelector('aside[aria-label="History"] a[aria-current="page"]');
    // From the file's history back to the message that made it.
    const conversation = page.url();
    await open(page, `/projects/notes/files/greeting-${ours}.md`);
    await page.click('a:has-text("Conversation")');
    await page.waitForSelector('[data-shown="true"]:has-text("It is written.")');
    expect(new URL(page.url()).pathname).toBe(new URL(conversation).pathname);
  });

  it("has what its page needs first on the way before a script runs, and asks for it once", async () => {
    const { page } = browser;
    const id = await newSession("Early");
    await page.addInitScript(() => {
      const seen = new MutationObserver(() => {
        if (!document.querySelector('[data-testid="thread"]')) return;
        seen.disconnect();
        const loaded = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
        Object.assign(window, { loaded: loaded.map((one) => [one.initiatorType, one.name.replace(location.origin, "")]) });
      });
      seen.observe(document, { childList: true, subtree: true });
    });
    await open(page, `/sessions/${id}`);
    await page.waitForSelector('[data-testid="thread"]');
    const loaded = await page.evaluate(() => (window as unknown as { loaded: string[][] }).loaded);
    expect(loaded.filter(([, address]) => address?.startsWith("/api/v1/me") || address?.includes(id)).sort()).toEqual([
      ["link", `/api/v1/chat/${id}/messages?limit=50`],
      ["link", "/api/v1/me"],
      ["link", `/api/v1/sessions/${id}`],
    ]);
  });

  it("is there again after a reload in the midst of an answer, and in another tab", async () => {
    const { page, context } = browser;
    const session = await newSession("Reload");
    await open(page, `/sessions/${session}`);
    await say(script({ text: "The first half." }, { tool: "bash", input: { command: `while [ ! -e go-${ours} ]; do sleep 0.2; done`, description: "Wait" } }, { text: "The second half." }));
    await page.waitForSelector(said("The first half."));
    await page.reload();
    await page.waitForSelector(said("The first half."));
    await page.waitForSelector('[data-tool="bash"]:has-text("running")');
    const other = await context.newPage();
    await open(other, `/sessions/${session}`);
    await other.waitForSelector('[data-tool="bash"]:has-text("running")');
    await page.click('[role="tab"]:has-text("Files")');
    await page.waitForSelector('[role="treeitem"]:has-text("plan.md")');
    await page.setInputFiles('aside input[type="file"]', { name: `go-${ours}`, mimeType: "text/plain", buffer: Buffer.from("") });
    for (const one of [page, other]) {
      await one.waitForSelector(said("The second half."));
      await one.waitForSelector('button:has-text("Send")');
      expect(await one.locator(said("The first half.")).count()).toBe(1);
    }
  });

  it("stops with Escape, and what was queued comes next", async () => {
    const { page } = browser;
    await open(page, `/sessions/${await newSession("Stop")}`);
    await say(script({ text: "I wait." }, { pause: 600 }));
    await page.waitForSelector(said("I wait."));
    await page.fill('textarea[aria-label="Message"]', script({ text: "My turn." }));
    await page.waitForSelector('[role="radio"][aria-checked="true"]:has-text("Queue")');
    await page.keyboard.press("Enter");
    await page.waitForSelector('[data-testid="queued"]');
    await page.keyboard.press("Escape");
    await page.waitForSelector(said("Stopped"));
    await page.waitForSelector(said("My turn."));
    await page.waitForSelector('[data-testid="queued"]', { state: "detached" });
  });

  it("is steered in the midst of a run", async () => {
    const { page } = browser;
    await open(page, `/sessions/${await newSession("A word in between")}`);
    await say(script({ text: "I begin." }, { tool: "bash", input: { command: `while [ ! -e steered-${ours} ]; do sleep 0.2; done`, description: "Wait" } }, { text: "I go on." }));
    await page.waitForSelector('[data-tool="bash"]:has-text("running")');
    await page.fill('textarea[aria-label="Message"]', "Be brief.");
    await page.click('[role="radio"]:has-text("Steer")');
    await page.click('button:text-is("Steer"):not([role])');
    await page.waitForSelector('[data-testid="queued"]:has-text("Be brief.")');
    await page.click('[role="tab"]:has-text("Files")');
    await page.waitForSelector('[role="treeitem"]:has-text("plan.md")');
    await page.setInputFiles('aside input[type="file"]', { name: `steered-${ours}`, mimeType: "text/plain", buffer: Buffer.from("") });
    await page.waitForSelector(said("said while it worked"));
    await page.waitForSelector('button:has-text("Send")');
    expect(await page.locator('article[aria-label="You"]').count()).toBe(1);
  });

  it("runs nothing of what agents and people write", async () => {
    const { page } = browser;
    const bad = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script><svg onload=window.hacked=1> [x](javascript:window.hacked=1) ![y](https://tracker.example/y.png) <iframe srcdoc="<script>parent.hacked=1</script>">';
    await open(page, `/sessions/${await newSession(bad.slice(0, 200))}`);
    await say(script({ text: bad }, { tool: "bash", input: { command: `printf '%s' '${bad.replaceAll("'", "")}'; printf '\\033]0;x\\007'`, description: bad } }, { tool: "write", input: { path: `bad <b> ${ours}.md`, content: bad } }, { text: `Done ${bad}` }));
    await page.waitForSelector('[data-testid="landing"]');
    await page.click('[data-tool="bash"] button[aria-expanded="false"]');
    await page.waitForSelector("[data-tool=bash] pre:has-text('onerror')");
    expect(await page.evaluate(() => (window as unknown as { hacked?: number }).hacked)).toBeUndefined();
    expect(await page.locator("article img, article iframe, article script, article svg[onload]").count()).toBe(0);
    expect(await page.locator('article a[href^="javascript"]').count()).toBe(0);
    expect(await violations(page)).toEqual([]);
  });

  it("shows a failed run with its reason, and the inbox has it", async () => {
    const { page } = browser;
    const session = await newSession("This one fails");
    await open(page, `/sessions/${session}`);
    await say(script({ error: { status: 400, type: "invalid_request_error", message: "The model refuses." } }));
    await page.waitForSelector('[role="alert"]:has-text("The run failed")');
    await open(page, "/inbox");
    await page.click('button:has-text("This one fails")');
    await page.waitForURL(new RegExp(session));
  });

  it("asks, and goes on with the answer of one key", async () => {
    const { page } = browser;
    await open(page, `/sessions/${await newSession("A question")}`);
    await say(script({ text: "Two price lists." }, { tool: "ask", input: { question: "Which prices?", options: ["Current", "Draft"] } }, { text: "Thank you." }));
    await page.waitForSelector('[data-question]:has-text("Which prices?")');
    await page.waitForSelector('[data-testid="state"]:has-text("waiting for you")');
    await page.waitForSelector('nav a[href="/inbox"]:has-text("1")');
    expect(await violations(page)).toEqual([]);
    await page.locator('[data-testid="thread"]').focus();
    await page.keyboard.press("2");
    await page.waitForSelector(said("Thank you."));
    await page.waitForSelector('[data-question]:has-text("Draft"):has-text("answered")');
  });

  it("goes back to a message, and on from one in a session of its own", async () => {
    const { page } = browser;
    const session = await newSession("Back");
    await open(page, `/sessions/${session}`);
    for (const word of ["One", "Two"]) {
      await say(script({ text: `${word} it is.` }));
      await page.waitForSelector(said(`${word} it is.`));
      await page.waitForSelector('button:has-text("Send")');
    }
    await page.locator(said("One it is.")).hover();
    await page.locator(said("One it is.")).getByLabel("Continue from here in a new session").click();
    await page.waitForURL((found) => !found.href.includes(session));
    await page.waitForSelector("text=This is a new session");
    await page.waitForSelector(said("One it is."));
    expect(await page.locator(said("Two it is.")).count()).toBe(0);
    await open(page, `/sessions/${session}`);
    await page.waitForSelector(said("Two it is."));
    await page.locator('article[aria-label="You"]').last().hover();
    await page.locator('article[aria-label="You"]').last().getByLabel("Go back to here").click();
    await page.click('[role="dialog"] button:has-text("Go back to here")');
    await page.waitForSelector(said("Two it is."), { state: "detached" });
    await page.waitForFunction(() => document.querySelector<HTMLTextAreaElement>('textarea[aria-label="Message"]')?.value.includes("Two it is."));
  });

  it("keeps work out of the project until it is landed", async () => {
    const { page } = browser;
    await open(page, `/sessions/${await newSession("Later", { land: "after_review" })}`);
    await say(script({ tool: "write", input: { path: `later-${ours}.md`, content: "Later.\n" } }, { text: "Written." }));
    await page.waitForSelector('[data-testid="landing"]:has-text("waits here")');
    expect(await textOf(`later-${ours}.md`)).toBeUndefined();
    await page.click('[data-testid="landing"] button:has-text("Land it")');
    await page.waitForSelector("text=The work is in the project.");
    expect(await textOf(`later-${ours}.md`)).toBe("Later.\n");
  });
});

describe("on a phone", () => {
  it("history and details open over the conversation", async () => {
    await browser.close();
    browser = await visit({ width: 360, height: 740, theme: "dark" });
    const { page } = browser;
    await open(page, "/sessions");
    await page.waitForURL(/sessions\/[0-9a-f-]{36}/);
    await page.click('button[aria-label="History"]');
    await page.waitForSelector('[role="dialog"]:has-text("New session")');
    await page.keyboard.press("Escape");
    await page.click('button[aria-label="Details"]');
    await page.waitForSelector('[role="dialog"] [role="tab"]:has-text("Agent")');
    expect(await violations(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
  });
});

it("a newcomer sees three agents collide, and decides what is left", async () => {
  const { page } = browser;
  await open(page, "/sessions/example");
  await page.click('button:has-text("Start the example")');
  await page.waitForSelector('[data-testid="example-result"]', { timeout: 180_000 });
  for (const word of ["written", "merged", "in review"]) await page.waitForSelector(`article:has-text("${word}")`);
  await page.click("text=Decide it");
  await page.waitForSelector('[role="radio"]:has-text("Sow in May")');
});

