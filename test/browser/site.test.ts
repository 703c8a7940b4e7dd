// The documentation at /docs/ in a real browser: on a telephone and on a large screen, in light and dark, by keyboard, and
// opened as files. SCREENSHOTS names a folder for pictures. Needs chromium.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { pathToFileURL } from "node:url";
import type { AxeResults } from "axe-core";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { type Harness, startHarness } from "../support/harness.js";
import { PROJECT } from "../support/project.js";
import { waitUntil } from "../support/wait-until.js";
import { watchComplaints } from "./complaints.js";

const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
// Its own host name leads nowhere but to the page.
const FLAGS = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const LIMIT_MS = 40_000;
const PICTURES = process.env.SCREENSHOTS;

const pages = ["index", "concepts", "first-hour", "resources/groups", "settings"].map((name) => `/docs/${name}.html`);
const screens = [
  { width: 390, height: 844 },
  { width: 1440, height: 900 },
] as const;
const schemes = ["light", "dark"] as const;

let harness: Harness;
let browser: Browser;

before(async () => {
  assert.ok(existsSync(BROWSER), `no browser at ${BROWSER}: apt-get install chromium, or name one in CHROMIUM`);
  harness = await startHarness();
  browser = await chromium.launch({ executablePath: BROWSER, args: FLAGS });
  if (PICTURES) mkdirSync(PICTURES, { recursive: true });
});

after(async () => {
  await browser?.close();
  await harness?.stop();
});

for (const { width, height } of screens) {
  for (const scheme of schemes) {
    describe(`on a screen of ${width}, ${scheme}`, () => {
      for (const path of ["/", ...pages, "/docs/api"]) {
        it(`${path} is whole, and nobody is kept out`, async () => {
          await look({ viewport: { width, height }, colorScheme: scheme }, path, async (page) => {
            if (path === "/docs/api") await page.locator(".opblock-tag").first().waitFor();
            assert.equal(await page.evaluate("document.documentElement.scrollWidth - window.innerWidth"), 0);
            await takePicture(page, `${width}-${scheme}-${path}`);
            assert.deepEqual(await findViolations(page), []);
            if (path === "/docs/api") await checkOpenOperation(page);
          });
        });
      }
    });
  }
}

it("axe finds what is wrong, of which this is the control", async () => {
  await look({}, "/docs/", async (page) => {
    await page.evaluate(`document.querySelector("main").append(document.createElement("img"))`);
    assert.deepEqual(await findViolations(page), ["image-alt: img"]);
  });
});

it("what the policy of a page forbids is reported, of which this is the control", async () => {
  const path = "/docs/";
  const found = look({}, path, async (page) => {
    await page.evaluate(`document.querySelector("main").setAttribute("style", "color: red")`);
    await waitUntil(async () => (await page.evaluate("reports.length > 0")) as boolean);
  });
  await assert.rejects(found, /style-src/);
});

describe("the search", () => {
  it("finds a page by keyboard alone", async () => {
    await look({ viewport: screens[1] }, "/docs/cli.html", async (page) => {
      await page.keyboard.press("/");
      await page.keyboard.type("restore backup");
      const first = page.locator("#results a").first();
      await first.waitFor();
      await takePicture(page, "search");
      assert.deepEqual(await findViolations(page), []);
      assert.match((await page.locator("#results [role=status]").innerText()) ?? "", /^\d+ found$/);
      await page.keyboard.press("ArrowDown");
      assert.equal(await page.evaluate("document.activeElement === document.querySelector(`#results a`)"), true);
      await page.keyboard.press("Enter");
      await page.waitForURL(/\/docs\/backup\.html/);
      await page.getByRole("heading", { level: 1, name: "Backups" }).waitFor();
    });
  });

  it("finds a method, a setting and a word that is misspelt, and says when there is nothing", async () => {
    await look({ viewport: screens[0] }, "/docs/resources/groups.html", async (page) => {
      for (const [text, address] of [
        ["BatchCreateRoleBindings", "../resources/role-bindings.html#batchcreaterolebindings"],
        ["ARBOR_BEHIND_PROXY", "../settings.html#address-and-tls"],
        ["subscripton", "../resources/subscriptions.html"],
      ] as const) {
        await page.getByLabel("Search").fill(text);
        await page.locator(`#results a[href="${address}"]`).waitFor();
      }
      await page.getByLabel("Search").fill("qqqqzzzz");
      await page.getByText("Nothing found.").waitFor();
      await page.keyboard.press("Escape");
      assert.equal(await page.locator("#results").isVisible(), false);
    });
  });

  it("works in files that are opened without a server", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(pathToFileURL(join(PROJECT, "build/site/index.html")).href);
    await page.getByLabel("Search").fill("glossary");
    await page.locator("#results a", { hasText: "Glossary" }).click();
    await page.getByRole("heading", { name: "Glossary" }).waitFor();
    await context.close();
  });
});

it("leads by keyboard from the home page to the content of a page", async () => {
  await look({ viewport: screens[1] }, "/", async (page) => {
    const focused = () => page.evaluate("document.activeElement.textContent");
    for (let n = 0; n < 3 && (await focused()) !== "Documentation"; n++) await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Documentation" }).waitFor();
    await page.getByRole("main").getByRole("link", { name: "Your first hour" }).press("Enter");
    await page.getByRole("heading", { level: 1, name: "Your first hour" }).waitFor();
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate("document.activeElement.textContent"), "Skip to the content");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate("document.activeElement.id"), "content");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate("document.activeElement.tagName"), "SUMMARY");
  });
});

it("leads from an operation of the former page of the API to the same", async () => {
  await look({}, "/docs#/Groups/v2_GroupsService_ListGroups", async (page) => {
    await page.waitForURL(/\/docs\/api#\/Groups\//);
    await page.locator(".opblock.is-open").waitFor();
  });
});

it("the page of the API has one field to authorize, and a filter of names, paths and operations", async () => {
  await look({ viewport: screens[1] }, "/docs/api", async (page) => {
    await page.locator(".opblock-tag").first().waitFor();
    await page.getByRole("button", { name: "Authorize" }).click();
    await page.locator(".auth-container").first().waitFor();
    assert.equal(await page.locator(".auth-container input").count(), 1);
    await page.getByRole("button", { name: "Close" }).click();
    const shown = () =>
      page.locator(".opblock-tag").evaluateAll((all) => all.map((one) => one.getAttribute("data-tag")));
    const all = (await shown()).length;
    const field = page.locator(".operation-filter-input");
    await field.fill("role bind");
    await waitUntil(async () => (await shown()).length < all);
    const found = await shown();
    for (const name of ["Role bindings", "Role bindings (v2beta1)", "Role bindings (v1)"])
      assert.ok(found.includes(name));
    assert.ok(!found.includes("Tags"), found.join());
    await takePicture(page, "api-filter");
    await field.fill("/sts/exchange");
    await page.locator('.opblock-tag[data-tag="Security token"]').waitFor();
    await waitUntil(async () => (await shown()).length === 1);
  });
});

/** Opens a page, and makes sure that its policy reports nothing, its console says nothing and nobody else is asked. */
async function look(
  options: Parameters<Browser["newContext"]>[0],
  path: string,
  see: (page: Page) => Promise<void>,
): Promise<void> {
  const context: BrowserContext = await browser.newContext(options);
  try {
    context.setDefaultTimeout(LIMIT_MS);
    const page = await context.newPage();
    const complaints = watchComplaints(page, harness.url);
    await page.addInitScript(
      `globalThis.reports = []; document.addEventListener("securitypolicyviolation", (event) => reports.push(event.violatedDirective));`,
    );
    await page.goto(harness.url + path);
    await see(page);
    assert.deepEqual([...complaints, ...((await page.evaluate("reports")) as string[])], []);
  } finally {
    await context.close();
  }
}

async function checkOpenOperation(page: Page): Promise<void> {
  await page.locator(".opblock-tag").first().click();
  await page.locator(".opblock-summary-control").first().click();
  await page.getByText("Responses", { exact: true }).first().waitFor();
  assert.deepEqual(await findViolations(page), []);
}

/** Runs axe in the page; what it finds, with the elements. */
async function findViolations(page: Page): Promise<string[]> {
  const { violations } = (await page.evaluate(`${AXE}; axe.run()`)) as AxeResults;
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(" ")}`));
}

async function takePicture(page: Page, name: string): Promise<void> {
  if (PICTURES) await page.screenshot({ path: join(PICTURES, `${name.replace(/[^\w-]+/g, "_")}.png`) });
}
