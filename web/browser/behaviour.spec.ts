import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ask, open, ownerToken, readerToken, url, type Visit, violations, visit } from "./browser";

const HOSTILE = "<img src=x onerror=window.hacked=1>&\"'`{{x}}%2e#?.md";
type Checkout = { seq: number; entries: { path: string; text: string | null }[] };

async function textOf(path: string): Promise<string | null | undefined> {
  const found = await ask<Checkout>("POST", "/api/v1/checkouts", { project: "notes", paths: [path], contents: true });
  return found.entries[0]?.text;
}

async function write(path: string, text: string): Promise<void> {
  const { seq } = await ask<Checkout>("POST", "/api/v1/checkouts", { project: "notes", paths: [] });
  await ask("POST", "/api/v1/commits", { project: "notes", base_seq: seq, changes: [{ action: "write", path, text }] });
}

/** A PDF with a page for each text. */
function pdfOf(...texts: string[]): string {
  const objects = [`<< /Type /Catalog /Pages 2 0 R >>`, `<< /Type /Pages /Count ${texts.length} /Kids [${texts.map((_, index) => `${4 + 2 * index} 0 R`).join(" ")}] >>`, `<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>`];
  for (const text of texts) {
    const drawn = `BT /F1 24 Tf 40 100 Td (${text}) Tj ET`;
    objects.push(`<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Resources << /Font << /F1 3 0 R >> >> /Contents ${objects.length + 2} 0 R >>`, `<< /Length ${drawn.length} >>\nstream\n${drawn}\nendstream`);
  }
  let made = "%PDF-1.4\n";
  const places = objects.map((object, index) => {
    const place = made.length;
    made += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return place;
  });
  const table = places.map((place) => `${String(place).padStart(10, "0")} 00000 n \n`).join("");
  return `${made}xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}trailer << /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${made.length}\n%%EOF\n`;
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

describe("by keyboard alone", () => {
  it("the palette finds a file and opens it", async () => {
    const { page } = browser;
    await open(page, "/projects/notes/files/");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("terms");
    await page.waitForSelector('[role="option"]:has-text("legal/terms.md")');
    await page.keyboard.press("Enter");
    await page.waitForURL(/files\/legal\/terms\.md/);
    await page.waitForSelector('.cm-line:has-text("July is named here.")');
  });

  it("the tree opens folders and files", async () => {
    const { page } = browser;
    await open(page, "/projects/notes/files/");
    await page.waitForSelector('[role="treeitem"]:has-text("legal")');
    await page.locator('[role="tree"]').focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    await page.waitForSelector('[role="treeitem"]:has-text("terms.md")');
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForURL(/files\/legal\/terms\.md/);
  });

  it("? lists the keys of the page", async () => {
    const { page } = browser;
    await open(page, "/projects/notes/log");
    await page.waitForSelector("text=Start the plan");
    await page.keyboard.press("?");
    await page.waitForSelector('[role="dialog"]:has-text("Keyboard shortcuts")');
    await page.keyboard.press("Escape");
    await page.waitForSelector('[role="dialog"]', { state: "detached" });
  });

  it("a review is decided and the next one comes", async () => {
    const { page } = browser;
    const lists = await ask<{ reviews: { id: string; path: string }[] }>("GET", "/api/v1/reviews?project=notes&state=open&path=lists");
    const [first] = lists.reviews;
    await open(page, `/review?project=notes&item=notes/${first?.id}`);
    await page.waitForSelector('[role="radio"]');
    await page.keyboard.press("3");
    await page.waitForSelector('[role="radio"][aria-checked="true"]:has-text("Proposed")');
    await page.keyboard.press("Enter");
    await page.waitForSelector(`text=${first?.path} was decided.`);
    await page.waitForFunction((id) => !window.location.search.includes(String(id)), first?.id);
    await page.waitForSelector('[role="radio"]');
    expect(await textOf(first?.path ?? "")).toMatch(/^b/);
  });
});

describe("changing files", () => {
  it("an edit is saved, shown to others, and taken back with one key", async () => {
    const { page } = browser;
    await write("todo.md", "one\n");
    await open(page, "/projects/notes/files/todo.md");
    await page.waitForSelector('.cm-line:has-text("one")');
    await page.keyboard.press("e");
    await page.waitForSelector('.cm-content[contenteditable="true"]');
    await page.keyboard.type("zero ");
    await page.keyboard.press("Control+s");
    await page.waitForSelector("text=todo.md was saved.");
    expect(await textOf("todo.md")).toBe("zero one\n");
    await page.waitForSelector('.cm-line:has-text("zero one")');
    await page.keyboard.press("u");
    await page.waitForSelector("text=Undone.");
    expect(await textOf("todo.md")).toBe("one\n");
  });

  it("what others write meanwhile is merged into an edit", async () => {
    const { page } = browser;
    await write("both.md", "top\n\nmiddle\n\nend\n");
    await open(page, "/projects/notes/files/both.md?edit=true");
    await page.waitForSelector('.cm-content[contenteditable="true"]');
    await write("both.md", "top\n\nmiddle\n\ntheir end\n");
    await page.keyboard.type("my ");
    await page.keyboard.press("Control+s");
    await page.waitForSelector("text=merged with what others changed");
    expect(await textOf("both.md")).toBe("my top\n\nmiddle\n\ntheir end\n");
  });

  it("files are uploaded, and a deleted one comes back", async () => {
    const { page } = browser;
    const folder = mkdtempSync(join(tmpdir(), "upload-"));
    writeFileSync(join(folder, "new one.txt"), "uploaded");
    await open(page, "/projects/notes/files/");
    await page.setInputFiles('input[type="file"]', join(folder, "new one.txt"));
    await page.waitForSelector("text=1 file uploaded");
    await page.waitForSelector('[role="treeitem"]:has-text("new one.txt")');
    expect(await textOf("new one.txt")).toBe("uploaded");
    await page.click('[role="treeitem"]:has-text("new one.txt")');
    await page.waitForSelector(".cm-line");
    await page.click('button[aria-label="Show more"]');
    await page.click('[role="menuitem"]:has-text("Delete")');
    await page.waitForSelector("text=new one.txt was deleted.");
    await page.waitForSelector('[role="treeitem"]:has-text("new one.txt")', { state: "detached" });
    await page.keyboard.press("u");
    await page.waitForSelector('[role="treeitem"]:has-text("new one.txt")');
  });

  it("an undo of somebody's commit is shown before it is done", async () => {
    const { page } = browser;
    await open(page, "/projects/notes/log?undo=5");
    await page.click('[role="dialog"] summary');
    await page.click('[role="dialog"] button:has-text("Undo it")');
    await page.waitForSelector("text=/Done, as #/");
    expect(await textOf("research/04.md")).toBeUndefined();
  });

  it("who may only read is offered no change", async () => {
    await browser.close();
    browser = await visit({ token: readerToken });
    const { page } = browser;
    await open(page, "/projects/notes/files/plan.md");
    await page.waitForSelector(".cm-line");
    expect(await page.locator('button:has-text("Edit"), button:has-text("Upload")').count()).toBe(0);
    expect(await page.locator('nav a:has-text("Admin")').count()).toBe(0);
  });
});

it("a PDF is drawn page by page", async () => {
  const { page } = browser;
  const { seq } = await ask<Checkout>("POST", "/api/v1/checkouts", { project: "notes", paths: [] });
  await ask("POST", "/api/v1/commits", { project: "notes", base_seq: seq, changes: [{ action: "write", path: "two.pdf", base64: Buffer.from(pdfOf("First", "Second")).toString("base64") }] });
  await open(page, "/projects/notes/files/two.pdf");
  await page.waitForSelector('canvas[data-page="1"]');
  await page.click('button:has-text("Next")');
  await page.waitForSelector('canvas[data-page="2"]');
  expect(await violations(page)).toEqual([]);
});

describe("hostile input", () => {
  it("in names and contents is text and nothing else", async () => {
    const { page } = browser;
    await open(page, "/projects/notes/files/");
    await page.click(`[role="treeitem"]:has-text("<img src=x")`);
    await page.waitForSelector('.cm-line:has-text("<script>")');
    expect(new URL(page.url()).pathname).toContain(encodeURIComponent("<img src=x"));
    await page.reload();
    await page.waitForSelector('.cm-line:has-text("<script>")');
    for (const path of ["search?q=hacked", "compare?old=0&new=head"]) {
      await open(page, `/projects/notes/${path}`);
      await page.waitForSelector("text=/onerror/");
    }
    expect(await page.evaluate(() => (window as { hacked?: number }).hacked)).toBeUndefined();
    expect(await textOf(HOSTILE)).toContain("<script>");
  });

  it("a picture that is a document runs nothing", async () => {
    const { page } = browser;
    await write("evil.svg", '<svg xmlns="http://www.w3.org/2000/svg"><script>window.parent.hacked=1;window.hacked=1</script></svg>');
    await open(page, "/projects/notes/files/evil.svg");
    await page.waitForSelector('img[alt="evil.svg"], .cm-line');
    expect(await page.evaluate(() => (window as { hacked?: number }).hacked)).toBeUndefined();
  });
});

describe("logins and connections", () => {
  it("without a login a pasted token opens the page that was asked for", async () => {
    await browser.close();
    browser = await visit({ token: null });
    const { page } = browser;
    await open(page, "/projects/notes/log");
    await page.fill('input[placeholder="cb_…"]', "cb_wrong");
    await page.click('button:has-text("Log in with the token")');
    await page.waitForSelector('[role="alert"]');
    await page.fill('input[placeholder="cb_…"]', ownerToken);
    await page.click('button:has-text("Log in with the token")');
    await page.waitForSelector("text=Roll back to here"); // the history is there
    expect(new URL(page.url()).pathname).toBe("/projects/notes/log");
  });

  it("a login that ends asks for another, and stays where it was", async () => {
    await browser.close();
    const made = await ask<{ id: string; secret: string }>("POST", "/api/v1/tokens", { principal: "guest", kind: "user", actions: ["read"] });
    browser = await visit({ token: made.secret });
    const { page } = browser;
    await open(page, "/projects/notes/files/plan.md");
    await page.waitForSelector(".cm-line");
    await ask("DELETE", `/api/v1/tokens/${made.id}`);
    await page.click('nav a:has-text("History")');
    await page.waitForSelector("text=Your login has ended");
    expect(new URL(page.url()).pathname).toBe("/projects/notes/log");
  });

  it("what others write shows by itself, in a second tab too, over one connection", async () => {
    const { page, context } = browser;
    const connections = new Set<string>();
    context.on("request", (request) => {
      if (request.url().includes("/api/v1/events?") && request.headers().accept?.includes("event-stream")) connections.add(request.frame().page() === page ? "first" : "second");
    });
    await open(page, "/projects/notes/files/plan.md");
    await page.waitForSelector('[aria-label="Live"]');
    const second = await context.newPage();
    await open(second, "/projects/notes/files/plan.md");
    await second.waitForSelector('[aria-label="Live"]');
    const now = (await textOf("plan.md")) ?? "";
    await write("plan.md", `${now}A line from elsewhere.\n`);
    await page.waitForSelector('.cm-line:has-text("A line from elsewhere.")');
    await second.waitForSelector('.cm-line:has-text("A line from elsewhere.")');
    expect([...connections]).toEqual(["first"]);
    // The tab that holds the connection goes; the other one takes over.
    await page.close();
    await write("plan.md", `${now}Another line.\n`);
    await second.waitForSelector('.cm-line:has-text("Another line.")');
    expect([...connections]).toEqual(["first", "second"]);
  });

  it("a lost connection is said, and what was missed comes when it is back", async () => {
    const { page, context } = browser;
    await write("signal.md", "before\n");
    await open(page, "/projects/notes/files/signal.md");
    await page.waitForSelector('.cm-line:has-text("before")'); // with everything that showing a file needs
    await page.waitForSelector('[aria-label="Live"]');
    await context.setOffline(true);
    await page.evaluate(() => fetch("/healthz").catch(() => null));
    const { seq } = await ask<Checkout>("POST", "/api/v1/checkouts", { project: "notes", paths: [] });
    await ask("POST", "/api/v1/commits", { project: "notes", base_seq: seq, changes: [{ action: "write", path: "signal.md", text: "after\n" }] });
    await context.setOffline(false);
    await page.waitForSelector('.cm-line:has-text("after")');
  });
});

it("the page speaks Chinese to who does", async () => {
  await browser.close();
  browser = await visit({ language: "zh-CN" });
  await open(browser.page, "/projects");
  await browser.page.waitForSelector("text=新建项目");
  expect(url).toContain("http");
});

describe("the health page", () => {
  it("says what works on the server's machine, and looks again when it is asked to", async () => {
    const { page } = browser;
    await open(page, "/admin/health");
    const doctor = page.locator('[data-testid="doctor"]');
    await doctor.locator('dt:has-text("Database")').waitFor();
    const told = await ask<{ findings: { name: string; answer: string; detail: string; advice: string }[] }>("GET", "/api/v1/system/doctor");
    expect(await doctor.locator("dt").count()).toBe(told.findings.length);
    const lacking = told.findings.find((one) => one.answer === "no" && one.advice);
    expect(await doctor.innerText()).toContain(lacking?.advice);
    const again = page.waitForResponse("**/api/v1/system/doctor");
    await doctor.locator('button:has-text("Check again")').click();
    expect((await again).status()).toBe(200);
    await page.route("**/api/v1/system/doctor", (route) => route.fulfill({ status: 503, json: { code: "unavailable", detail: "The checks of this machine take longer than 20 seconds." } }));
    await doctor.locator('button:has-text("Check again")').click();
    await doctor.locator('[role="alert"]:has-text("longer than 20 seconds")').waitFor();
    expect(await violations(page)).toEqual([]);
  });
});
