import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ask, open, script, url, type Visit, visit } from "./browser";

const ours = Math.random().toString(36).slice(2, 8);
const BAD = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script><svg onload=window.hacked=1>[x](javascript:window.hacked=1)`;
let browser: Visit;

beforeEach(async () => {
  browser = await visit();
});
afterEach(async () => {
  const { problems } = browser;
  await browser.close();
  expect(problems).toEqual([]);
});

const hacked = () => browser.page.evaluate(() => (window as { hacked?: number }).hacked);

async function put(path: string, text: string, message = ""): Promise<void> {
  const { seq } = await ask<{ seq: number }>("POST", "/api/v1/checkouts", { project: "notes", paths: [] });
  await ask("POST", "/api/v1/commits", { project: "notes", base_seq: seq, message, changes: [{ action: "write", path, text }] });
}

it("scripts and styles of the server alone are allowed", async () => {
  const answer = await fetch(`${url}/projects`);
  const policy = Object.fromEntries((answer.headers.get("content-security-policy") ?? "").split(";").map((part) => part.trim().split(/\s+(.*)/s).slice(0, 2)));
  expect(policy["default-src"]).toBe("'none'");
  expect(policy["script-src"]).toBe("'self'");
  expect(policy["frame-ancestors"]).toBe("'none'");
  expect(JSON.stringify(policy)).not.toMatch(/unsafe|\*|https?:/);
});

describe("what people and agents write runs nowhere", () => {
  it("in messages of commits, in the audit trail, in names of sessions, apps, people and rules", async () => {
    const { page } = browser;
    await put(`<b>${ours}</b>.md`, BAD, BAD);
    await ask("POST", "/api/v1/sessions", { project: "notes", provider: "scripted", title: BAD.slice(0, 190) });
    await ask("POST", "/api/v1/apps", { name: `bad-${ours}`, title: BAD, description: BAD, icon: "data:image/svg+xml;base64,PHN2Zy8+" }).catch(() => ask("POST", "/api/v1/apps", { name: `bad-${ours}`, title: BAD, description: BAD }));
    await ask("PUT", `/api/v1/apps/bad-${ours}/configs/app`, { system_prompt: BAD, commands: { greet: BAD } });
    await ask("PUT", `/api/v1/apps/bad-${ours}/knowledge-bases/app/kb`, { description: BAD, tags: [] });
    await ask("POST", "/api/v1/users", { login_name: `bad-${ours}`, display_name: BAD });
    await ask("POST", "/api/v1/departments", { name: `bad-${ours}`, title: BAD });
    for (const path of ["/projects/notes/log", "/projects/notes/audit", "/admin/audit", "/admin/people", "/admin/roles", "/sessions/new", "/store", `/store/bad-${ours}`, `/store/bad-${ours}?tab=config`, `/store/bad-${ours}?tab=knowledge`, `/projects/notes/files/${encodeURIComponent(`<b>${ours}</b>.md`)}?blame=true`]) {
      await open(page, path);
      await page.waitForSelector("text=/onerror|bad-|<b>/", { state: "attached" });
      expect(await hacked(), path).toBeUndefined();
      expect(await page.locator("img[onerror], svg[onload], main script, a[href^=javascript]").count(), path).toBe(0);
    }
  });

  it("in a document of the project that somebody opens by itself", async () => {
    const { page } = browser;
    for (const [name, text] of [["evil.html", `<body>${BAD}<p>seen</p></body>`], ["evil.svg", `<svg xmlns="http://www.w3.org/2000/svg"><script>window.hacked=1</script><text>seen</text></svg>`], ["evil.xml", `<html xmlns="http://www.w3.org/1999/xhtml"><script>window.hacked=1</script></html>`]] as const) {
      await put(`${ours}-${name}`, text);
      const answer = await browser.context.request.get(`${url}/api/v1/versions/content?project=notes&path=${ours}-${name}`);
      expect(answer.ok()).toBe(true);
      const headers = answer.headers();
      expect(headers["x-content-type-options"]).toBe("nosniff");
      // Either the browser saves it, or it is shown in a sandbox without scripts and without this origin.
      expect(`${headers["content-disposition"] ?? ""} ${headers["content-security-policy"] ?? ""}`).toMatch(/attachment|sandbox(?! allow-scripts)/);
      await page.goto(`${url}/api/v1/versions/content?project=notes&path=${ours}-${name}`).catch(() => null);
      expect(await hacked()).toBeUndefined();
    }
    browser.problems.length = 0; // the browser says there that it refused to run the scripts
  });

  it("in what an agent prints to a terminal", async () => {
    const { page } = browser;
    const { id } = await ask<{ id: string }>("POST", "/api/v1/sessions", { project: "notes", provider: "scripted", title: `terminal ${ours}` });
    await open(page, `/sessions/${id}`);
    await page.fill('textarea[aria-label="Message"]', script({ tool: "bash", input: { command: `printf '\\033]8;;javascript:window.hacked=1\\007link\\033]8;;\\007 \\033[31mred\\033[0m <img src=x onerror=window.hacked=1>'`, description: BAD } }, { text: "Printed." }));
    await page.keyboard.press("Enter");
    await page.waitForSelector('article[aria-label="Agent"]:has-text("Printed.")');
    await page.click('[data-tool="bash"] button[aria-expanded="false"]');
    await page.waitForSelector("[data-tool=bash] pre:has-text('onerror')");
    expect(await hacked()).toBeUndefined();
    expect(await page.locator("article img, article a[href^=javascript]").count()).toBe(0);
  });
});
