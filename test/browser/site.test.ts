// The documentation at /docs/ in a real browser: on a telephone and on a large screen, in light and dark, by keyboard, and
// opened as files. SCREENSHOTS names a folder for pictures. Needs chromium.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
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
/** An address that does not exist. */
const NOTHING = "/docs/nothing/at/all";
const SITE = join(PROJECT, "build/site");
/** What a button says for two seconds stays until `later()`. */
const HOLD_TIMERS = "globalThis.setTimeout = (run) => { globalThis.later = run; };";
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
      for (const path of ["/", ...pages, NOTHING, "/docs/api"]) {
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
      const first = page.locator(".results ol a").first();
      await first.waitFor();
      await takePicture(page, "search");
      assert.deepEqual(await findViolations(page), []);
      assert.match((await page.locator(".results [role=status]").innerText()) ?? "", /^\d+ found$/);
      await page.keyboard.press("ArrowDown");
      assert.equal(await page.evaluate("document.activeElement === document.querySelector(`.results a`)"), true);
      await page.keyboard.press("Enter");
      await page.waitForURL(/\/docs\/how-to\/nightly-backup\.html/);
      await page.getByRole("heading", { level: 1, name: "Back up every night, and restore" }).waitFor();
    });
  });

  it("finds a method, a setting and a word that is misspelt, and says when there is nothing", async () => {
    await look({ viewport: screens[0] }, "/docs/resources/groups.html", async (page) => {
      for (const [text, address] of [
        ["BatchCreateRoleBindings", "../resources/role-bindings.html#batchcreaterolebindings"],
        ["ARBOR_BEHIND_PROXY", "../settings.html#--behind-proxy"],
        ["subscripton", "../resources/subscriptions.html"],
      ] as const) {
        await page.getByRole("searchbox").fill(text);
        await page.locator(`.results a[href="${address}"]`).first().waitFor();
      }
      assert.match(await page.locator(".results [role=status]").innerText(), /“subscripton” .* “subscription”/);
      await page.getByRole("searchbox").fill("qqqqzzzz");
      await page.getByText("Nothing found.").waitFor();
      await page.keyboard.press("Escape");
      assert.equal(await page.locator(".results").isVisible(), false);
    });
  });

  it("marks what it found, and says what Arbor has in place of what it has not", async () => {
    for (const viewport of screens) {
      await look({ viewport }, "/docs/cli.html", async (page) => {
        await page.getByRole("searchbox").fill("how do I use SAML for a person?");
        const hint = page.locator(".hints a");
        await hint.waitFor();
        assert.ok((await page.locator(".results ol mark").count()) > 3);
        await takePicture(page, `${viewport.width}-hint`);
        assert.equal(await page.evaluate("document.documentElement.scrollWidth - window.innerWidth"), 0);
        assert.deepEqual(await findViolations(page), []);
        await hint.click();
        await page.getByRole("heading", { level: 1, name: "Login" }).waitFor();
      });
    }
  });

  it("finds its pages from an address that does not exist", async () => {
    await look({}, NOTHING, async (page) => {
      await page.getByRole("searchbox").fill("glossary");
      await page.locator(".results ol a").first().click();
      await page.waitForURL(/\/docs\/concepts\.html#glossary$/);
    });
  });

  it("works in files that are opened without a server", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(pathToFileURL(join(PROJECT, "build/site/index.html")).href);
    await page.getByRole("searchbox").fill("glossary");
    await page.locator(".results ol a", { hasText: "Glossary" }).click();
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
    assert.equal(await page.evaluate("document.activeElement.tagName"), "MAIN");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate("document.activeElement.closest(`article`) !== null"), true);
  });
});

describe("a link to a heading", () => {
  it("of any page leads below the header, on a telephone and on a large screen", async () => {
    const names = readdirSync(SITE, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".html"));
    assert.ok(names.length > 60, String(names.length));
    await look({}, "/docs/", async (page) => {
      let count = 0;
      for (const name of names.filter((one) => one !== "404.html")) {
        await page.goto(`${harness.url}/docs/${name}`);
        for (const viewport of screens) {
          await page.setViewportSize(viewport);
          const { ids, missed } = await followAll(page);
          count += ids;
          assert.deepEqual(missed, [], `${name} at ${viewport.width}`);
        }
      }
      assert.ok(count > 2_000, String(count));
    });
  });

  it("of which this is the control: without the room for the header it is missed", async () => {
    await look({ viewport: screens[0] }, "/docs/operations.html", async (page) => {
      assert.deepEqual((await followAll(page)).missed, []);
      await page.evaluate("document.documentElement.style.scrollPaddingTop = 0");
      assert.ok((await followAll(page)).missed.length > 5);
    });
  });

  it("is beside the heading, by mouse and by keyboard", async () => {
    await look({ viewport: screens[1] }, "/docs/operations.html", async (page) => {
      const link = page.getByRole("link", { name: "Link to Keys" });
      const opacity = () => page.evaluate("getComputedStyle(document.querySelector(`[href='#keys'].anchor`)).opacity");
      assert.equal(await opacity(), "0");
      await page.getByRole("heading", { name: "Keys", exact: true }).hover();
      assert.equal(await opacity(), "1");
      await page.mouse.move(0, 0);
      await page.keyboard.press("Tab");
      await link.focus();
      assert.equal(await opacity(), "1");
      await link.press("Enter");
      await page.waitForURL(/#keys$/);
    });
  });
});

describe("a button copies a block of code", () => {
  it("by mouse and by keyboard, and says so", async () => {
    await look(
      { viewport: screens[1], permissions: ["clipboard-read", "clipboard-write"] },
      "/docs/first-hour.html",
      async (page) => {
        await page.evaluate(HOLD_TIMERS);
        const block = page.locator(".code").nth(1);
        const code = await block.locator("code").evaluate((element) => element.textContent?.trimEnd());
        await block.hover();
        await block.getByRole("button", { name: "Copy" }).click();
        await block.getByRole("button", { name: "Copied" }).waitFor();
        assert.equal(await page.locator(".live").innerText(), "Copied");
        assert.equal(await page.evaluate("navigator.clipboard.readText()"), code);
        await page.evaluate("later()");
        assert.equal(await block.getByRole("button").innerText(), "Copy");
        await page.evaluate("navigator.clipboard.writeText('')");
        const other = page.locator(".code").nth(2).getByRole("button");
        await other.press("Enter");
        await page.locator(".code").nth(2).getByRole("button", { name: "Copied" }).waitFor();
        assert.notEqual(await page.evaluate("navigator.clipboard.readText()"), "");
      },
    );
  });

  it("where scripts have no clipboard, as over http", async () => {
    const context = await browser.newContext({ permissions: ["clipboard-read"] });
    const page = await context.newPage();
    await page.addInitScript("navigator.clipboard.writeText = undefined");
    await page.goto(`${harness.url}/docs/first-hour.html`);
    await page.evaluate(HOLD_TIMERS);
    const block = page.locator(".code").first();
    await block.getByRole("button").click();
    await block.getByRole("button", { name: "Copied" }).waitFor();
    const code = await block.locator("code").evaluate((element) => element.textContent?.trimEnd());
    assert.equal(await page.evaluate("navigator.clipboard.readText()"), code);
    await context.close();
  });
});

it("the theme is that of the system until somebody chooses, and stays so on other pages", async () => {
  await look({ viewport: screens[1], colorScheme: "light" }, "/docs/first-hour.html", async (page) => {
    const colour = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
    const light = await colour();
    const field = page.getByRole("combobox", { name: "Theme" });
    assert.equal(await field.inputValue(), "system");
    await field.selectOption("dark");
    const dark = await colour();
    assert.notEqual(dark, light);
    assert.deepEqual(await findViolations(page), []);
    // Before anything is drawn: when the body begins, the theme is set.
    await page.addInitScript(
      `new MutationObserver((_, watch) => { if (!document.body) return; watch.disconnect(); globalThis.early = document.documentElement.dataset.theme; })
        .observe(document, { childList: true, subtree: true });`,
    );
    await page.getByRole("navigation", { name: "Documentation" }).getByRole("link", { name: "Concepts" }).click();
    await page.getByRole("heading", { level: 1, name: "Concepts" }).waitFor();
    assert.deepEqual([await page.evaluate("early"), await colour()], ["dark", dark]);
    await field.selectOption("system");
    assert.equal(await colour(), light);
    await page.emulateMedia({ colorScheme: "dark" });
    assert.equal(await colour(), dark);
    await field.selectOption("light");
    assert.equal(await colour(), light);
  });
});

it("previous and next lead through the pages", async () => {
  await look({ viewport: screens[0] }, "/docs/first-hour.html", async (page) => {
    assert.equal(await page.locator("[rel=prev]").count(), 0);
    const title = () => page.locator("h1").innerText();
    const first = await title();
    await page.locator("[rel=next]").click();
    await waitUntil(async () => (await title()) !== first);
    await page.locator("[rel=prev]").click();
    await page.getByRole("heading", { level: 1, name: first }).waitFor();
  });
});

it("the contents are beside the text on a large screen, and folded on a telephone", async () => {
  await look({ viewport: screens[1] }, "/docs/operations.html", async (page) => {
    const beside = page.getByRole("navigation", { name: "On this page" });
    await beside.getByRole("link", { name: "Quotas" }).click();
    await page.waitForURL(/#quotas$/);
    assert.equal(await beside.isVisible(), true);
    await page.setViewportSize(screens[0]);
    assert.equal(await beside.isVisible(), false);
    await page.locator(".contents summary").click();
    await page.locator(".contents").getByRole("link", { name: "Quotas" }).click();
    await page.waitForURL(/#quotas$/);
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
    // The browser itself notes that such an address is answered with 404.
    const expected =
      path === NOTHING ? ["Failed to load resource: the server responded with a status of 404 (Not Found)"] : [];
    await page.addInitScript(
      `globalThis.reports = []; document.addEventListener("securitypolicyviolation", (event) => reports.push(event.violatedDirective));`,
    );
    await page.goto(harness.url + path);
    await see(page);
    assert.deepEqual([...complaints, ...((await page.evaluate("reports")) as string[])], expected);
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

/** Follows a link to each heading of a page; those that are not below its header then. */
async function followAll(page: Page): Promise<{ readonly ids: number; readonly missed: readonly string[] }> {
  return page.evaluate(`(async () => {
    const ids = [...document.querySelectorAll("main :is(h2, h3, h4)[id]")].map(({ id }) => id);
    const header = document.querySelector("header");
    const missed = [];
    // What the address has already leads nowhere.
    location.hash = "";
    for (const id of ids) {
      location.hash = id;
      // What is folded away is unfolded by an event.
      const heading = document.getElementById(id);
      if (heading.closest("details")) await new Promise((done) => setTimeout(done));
      const { top, bottom } = heading.getBoundingClientRect();
      if (top < header.getBoundingClientRect().bottom || bottom > innerHeight) missed.push(id);
    }
    return { ids: ids.length, missed };
  })()`);
}

/** Runs axe in the page; what it finds, with the elements. */
async function findViolations(page: Page): Promise<string[]> {
  const { violations } = (await page.evaluate(`${AXE}; axe.run()`)) as AxeResults;
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(" ")}`));
}

async function takePicture(page: Page, name: string): Promise<void> {
  if (PICTURES) await page.screenshot({ path: join(PICTURES, `${name.replace(/[^\w-]+/g, "_")}.png`) });
}
