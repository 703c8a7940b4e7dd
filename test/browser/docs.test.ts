// The page at /docs/api in a real browser: everything is shown, nothing is refused by
// the page's own policy, and no other host is contacted. Needs chromium.
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer, request as sendRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { type Browser, chromium, type Page } from "playwright-core";
import { type Harness, startHarness } from "../support/harness.js";
import { operationsOf, type PlacedOperation } from "../support/openapi/document.js";
import { readDocument } from "../support/openapi/request.js";
import { watchComplaints } from "./complaints.js";

const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
// Its own host name leads nowhere but to the page.
const FLAGS = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"];
const TIMEOUT_MS = 60_000;
const OPERATION = ".opblock";

const sizes = [
  { width: 1280, height: 900 },
  { width: 390, height: 844 },
] as const;

let harness: Harness;
let browser: Browser;
let operations: readonly PlacedOperation[] = [];

before(async () => {
  assert.ok(existsSync(BROWSER), `no browser at ${BROWSER}: apt-get install chromium, or name one in CHROMIUM`);
  harness = await startHarness();
  operations = operationsOf(await readDocument(harness.url));
  browser = await chromium.launch({ executablePath: BROWSER, args: FLAGS });
});

after(async () => {
  await browser?.close();
  await harness?.stop();
});

test("every operation is shown, on a large screen and on a small one", async () => {
  const expected = operations.map(({ method, path, operationId }) => `${method} ${path} ${operationId}`).sort();
  // Both on one page, because Swagger UI takes most of the time to open.
  await browse("/docs/api", async (page) => {
    const groups = page.locator(".opblock-tag");
    await groups.first().waitFor({ timeout: TIMEOUT_MS });
    assert.equal(await page.locator(OPERATION).count(), 0, "it opens folded");
    const names = await groups.evaluateAll((all) => all.map((one) => one.getAttribute("data-tag") ?? ""));
    assert.ok(names.indexOf("Groups") < names.indexOf("Groups (v2beta1)"), names.join());
    assert.ok(names.indexOf("Groups (v2beta1)") < names.indexOf("Groups (v1)"), names.join());
    await page.evaluate("for (const group of document.querySelectorAll('.opblock-tag')) group.click()");
    for (const size of sizes) {
      await page.setViewportSize(size);
      await page.evaluate("window.scrollTo(0, 0)");
      const shown = await findDrawnOperations(page);
      assert.deepEqual([...shown].sort(), expected, `${size.width} by ${size.height}`);
      const wider = await page.evaluate("document.documentElement.scrollWidth - window.innerWidth");
      assert.equal(wider, 0, `the page is wider than a screen of ${size.width}`);
      assert.ok((await page.screenshot()).length > 20_000, "there is hardly anything on the picture");
    }
  });
});

test("an operation opens by its address, with parameters, example and answers", async () => {
  const create = operations.find(({ operationId }) => operationId === "v2_GroupsService_CreateGroup");
  assert.ok(create);
  await browse(`/docs/api#/Groups/${create.operationId}`, async (page) => {
    const open = page.locator(`${OPERATION}.is-open`);
    await open.waitFor({ timeout: TIMEOUT_MS });
    for (const text of ["Parameters", "Request body", "What it is for", "4XX", "Try it out"]) {
      await open.getByText(text).first().waitFor({ timeout: TIMEOUT_MS });
    }
  });
});

test("below the prefix of a proxy, an operation opens from the page of its resource and is sent below the prefix", async (t) => {
  const service = new URL(harness.url);
  const proxy = createServer((request, response) => {
    const [, path] = /^\/platform(\/.*)$/.exec(request.url ?? "") ?? [];
    if (path === undefined) return response.writeHead(404).end();
    const { method, headers } = request;
    const onward = sendRequest({ host: service.hostname, port: service.port, path, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    request.pipe(onward);
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  t.after(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const origin = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  await browse(
    "/platform/docs/resources/role-bindings.html",
    async (page) => {
      const open = page.locator(`${OPERATION}.is-open`);
      await page.locator('a[href$="v2_RoleBindingsService_ListRoleBindings"]', { hasText: "Try it" }).click();
      await open.getByText("/iam/v2/roleBindings").first().waitFor({ timeout: TIMEOUT_MS });
      // Without a token the console would speak of the error.
      await page.goto(`${origin}/platform/docs/resources/ping.html`);
      await page.getByRole("link", { name: "Try it" }).first().click();
      await open.getByRole("button", { name: "Try it out" }).click();
      await open.getByRole("button", { name: "Execute" }).click();
      const sent = await open.locator(".request-url").innerText({ timeout: TIMEOUT_MS });
      assert.equal(sent.split("\n").at(-1)?.trim(), `${origin}/platform/ping/v2/ping`);
      assert.match(await open.locator(".live-responses-table").innerText(), /200/);
    },
    origin,
  );
});

// What a reader sees who scrolls to the end: only what is on the screen is drawn.
async function findDrawnOperations(page: Page): Promise<ReadonlySet<string>> {
  const shown = new Set<string>();
  const until = Date.now() + TIMEOUT_MS;
  while (shown.size < operations.length && Date.now() < until) {
    const drawn = await page.locator(OPERATION).evaluateAll((all) =>
      all.map((one) => {
        const method = one.querySelector(".opblock-summary-method")?.textContent ?? "";
        const path = one.querySelector("[data-path]")?.getAttribute("data-path") ?? "";
        return `${method} ${path} ${one.id.slice(one.id.indexOf("-", "operations-".length) + 1)}`;
      }),
    );
    for (const one of drawn) shown.add(one);
    await page.mouse.wheel(0, 500);
    await page.waitForTimeout(50);
  }
  return shown;
}

// Opens a page, and makes sure that the console says nothing but advice on addresses that nobody here
// writes, and that only the service was contacted.
async function browse(path: string, look: (page: Page) => Promise<void>, origin = harness.url): Promise<void> {
  const context = await browser.newContext({ viewport: sizes[0] });
  try {
    const page = await context.newPage();
    const complaints = watchComplaints(page, origin);
    await page.goto(origin + path);
    await look(page);
    assert.deepEqual(complaints, []);
  } finally {
    await context.close();
  }
}
