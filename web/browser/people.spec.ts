import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ask, open, ownerToken, url, type Visit, violations, visit } from "./browser";

const PASSWORD = "a long enough password";
const ours = Math.random().toString(36).slice(2, 8);
const hana = `Hana ${ours}`;
let browser: Visit;

beforeEach(async () => {
  browser = await visit();
});
afterEach(async () => {
  const { problems } = browser;
  await browser.close();
  expect(problems).toEqual([]);
});

/** A browser of a person with a password. */
async function visitAs(name: string, password = PASSWORD): Promise<Visit> {
  const found = await visit({ token: null });
  const answer = await found.context.request.post(`${url}/login`, { data: { login_name: name, password }, headers: { Origin: url, Accept: "application/json" } });
  expect(answer.ok()).toBe(true);
  return found;
}

describe("people", () => {
  it("are invited, choose a password, change it, and are out when they are disabled", async () => {
    const { page } = browser;
    await open(page, "/admin/people");
    await page.waitForSelector('td:has-text("Dora Lind")');
    await page.keyboard.press("n");
    await page.fill('[role="dialog"] input[maxlength="200"]', ours);
    await page.fill('[role="dialog"] input[maxlength="400"]', hana);
    await page.click('[role="dialog"] button[type="submit"]');
    const link = await page.locator('[data-testid="link"]').innerText();
    const guest = await visit({ token: null });
    await guest.page.goto(link);
    await guest.page.fill('input[type="password"]', PASSWORD);
    await guest.page.click('button:has-text("Choose a password")');
    await guest.page.waitForSelector('nav a:has-text("Projects")');
    expect(await guest.page.locator('nav a:has-text("Admin")').count()).toBe(0);
    const other = await visitAs(ours);
    await open(guest.page, "/account");
    await guest.page.waitForSelector(`text=${hana}`);
    expect(await violations(guest.page)).toEqual([]);
    const fields = guest.page.locator('input[type="password"]');
    await fields.nth(0).fill(PASSWORD);
    await fields.nth(1).fill(`${PASSWORD} 2`);
    await fields.nth(2).fill(`${PASSWORD} 2`);
    await guest.page.click('button:has-text("Change the password")');
    await guest.page.waitForSelector("text=/password was changed/");
    // Every other browser is out; this one stays.
    await open(other.page, "/projects");
    await other.page.waitForSelector('button:has-text("Log in")');
    await page.keyboard.press("Escape");
    await page.click(`button[aria-label="What to do: ${hana}"]`);
    await page.click('[role="menuitem"]:has-text("Disable")');
    await page.waitForSelector(`text=${hana} is disabled`);
    await open(guest.page, "/projects");
    await guest.page.waitForSelector('button:has-text("Log in")');
    await page.keyboard.press("u");
    await page.waitForSelector(`tr:has-text("${hana}"):has-text("active")`);
    for (const one of [guest, other]) await one.close();
  });

  it("get and lose roles, and the page says why somebody may do something", async () => {
    const { page } = browser;
    await open(page, "/admin/roles");
    await page.fill('section:first-of-type input[placeholder="ann"]', "fay");
    await page.click('button:has-text("Give the role")');
    await page.waitForSelector("text=/fay has the role|so already/");
    await open(page, "/admin/roles?who=fay&action=admin&scope=project%3Anotes");
    await page.waitForSelector('[data-testid="explained"]:has-text("project_admin")');
    await page.click('tr:has-text("fay"):has-text("project_admin") button:has-text("Take away")');
    await page.waitForSelector('[data-testid="explained"]:has-text("not allowed")');
    await page.keyboard.press("u");
    await page.waitForSelector('[data-testid="explained"]:has-text("project_admin")');
  });

  it("log out everywhere", async () => {
    const first = await visitAs("dora");
    const second = await visitAs("dora");
    await open(first.page, "/account");
    await first.page.click('section button:has-text("Log out everywhere")');
    await first.page.waitForSelector('button:has-text("Log in")');
    await open(second.page, "/projects");
    await second.page.waitForSelector('button:has-text("Log in")');
    for (const one of [first, second]) await one.close();
  });
});

describe("apps", () => {
  it("are in the store with the reason why not, and a session of one begins with a message", async () => {
    const dora = await visitAs("dora");
    const { page } = dora;
    await open(page, "/store");
    await page.waitForSelector('article[aria-label="Archive"]:has-text("You may not use it")');
    await page.waitForSelector('article[aria-label="Sales helper"]:has-text("sales")');
    expect(await violations(page)).toEqual([]);
    await page.click('article[aria-label="Sales helper"] a:has-text("Start a session")');
    await page.fill("textarea", "Hello");
    await page.keyboard.press("Enter");
    await page.waitForURL(/sessions\/[0-9a-f-]{36}/);
    await page.waitForSelector('header a[href="/store/helper"]');
    await page.waitForSelector('article[aria-label="You"]:has-text("Hello")');
    await open(page, "/store/helper?tab=config");
    await page.waitForSelector('tr:has-text("limits.seconds"):has-text("300"):has-text("project")');
    expect(await page.locator('a:has-text("Who sees it")').count()).toBe(0);
    await page.setViewportSize({ width: 360, height: 740 });
    await open(page, "/store/helper?tab=secrets");
    // Of tabs that scroll sideways the open one is in sight, and no other is marked as the open one.
    await page.waitForFunction(() => {
      const current = document.querySelectorAll('main nav a[aria-current="page"]');
      return current.length === 1 && current[0]?.textContent === "Secrets" && current[0].getBoundingClientRect().right <= window.innerWidth;
    });
    await dora.close();
  });

  it("are configured layer by layer, and each value says where it is from", async () => {
    const { page } = browser;
    await open(page, "/store/helper?tab=config");
    await page.click('button:has-text("Edit: yours")');
    await page.fill('[role="dialog"] input[placeholder="as the layer before"]', `model-${ours}`);
    await page.fill('[role="dialog"] textarea[spellcheck="false"]', "no JSON");
    await page.click('[role="dialog"] button:has-text("Save")');
    await page.waitForSelector('[role="alert"]:has-text("not a JSON object")');
    await page.fill('[role="dialog"] textarea[spellcheck="false"]', '{"environment": {"REGION": "west"}}');
    await page.click('[role="dialog"] button:has-text("Save")');
    await page.waitForSelector(`tr:has-text("model-${ours}"):has-text("yours")`);
    await page.waitForSelector('tr:has-text("environment.REGION"):has-text("west"):has-text("yours")');
    await page.waitForSelector('tr:has-text("CRM_TOKEN"):has-text("sealed"):has-text("app")');
    expect(await page.content()).not.toContain("not to be seen");
  });

  it("keep secrets sealed, list knowledge by tag, and are disabled with a way back", async () => {
    const { page } = browser;
    await open(page, "/store/helper?tab=secrets");
    await page.fill("form input.mono", `key-${ours}`);
    await page.fill('input[type="password"]', "sesame");
    await page.click('button[type="submit"]');
    await page.waitForSelector(`td:has-text("key-${ours}")`);
    await page.click(`tr:has-text("key-${ours}") button`);
    await page.waitForSelector(`td:has-text("key-${ours}")`, { state: "detached" });
    await open(page, "/store/helper?tab=knowledge");
    await page.click('button[aria-pressed="false"]:has-text("prices")');
    await page.waitForSelector('td:has-text("handbook")', { state: "detached" });
    await page.waitForSelector('td:has-text("app/helper/project/default/kb/prices/")');
    await page.click('header button:has-text("Disable")');
    await page.waitForSelector("text=Sales helper is disabled");
    await page.waitForSelector('header:has-text("disabled")');
    await page.keyboard.press("u");
    await page.waitForSelector('header:has-text("enabled")');
  });
});

it("the store's button looks the same before and after its apps are there", async () => {
  const { page } = browser;
  let answer = () => {};
  const isWanted = new Promise<void>((resolve) => {
    answer = resolve;
  });
  await page.route("**/api/v1/apps/store", async (route) => {
    await isWanted;
    await route.continue();
  });
  await open(page, "/store");
  const button = page.locator('main button:has-text("New app")');
  const before = await button.getAttribute("class");
  answer();
  await page.waitForSelector("article");
  expect(await button.getAttribute("class")).toBe(before);
});

it("one person on one machine meets no store, and no account to make", async () => {
  // The test's server has apps; the page is told that there are none.
  const { page } = browser;
  await page.route("**/api/v1/apps/store", (route) => route.fulfill({ json: { apps: [] } }));
  await open(page, "/projects");
  await page.waitForSelector('nav a:has-text("Projects")');
  expect(await page.locator('nav a:has-text("Store")').count()).toBe(0);
  await open(page, "/account");
  await page.waitForSelector("text=the owner of this server");
  expect(await page.locator('input[type="password"]').count()).toBe(0);
  expect(ownerToken).toBeTruthy();
  expect(await ask<{ is_owner: boolean }>("GET", "/api/v1/me")).toMatchObject({ is_owner: true });
});
