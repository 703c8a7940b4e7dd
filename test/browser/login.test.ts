// Signing in with a real browser: every page on a small and a large screen, light
// and dark, by mouse and by keyboard. Nothing may be refused by the pages' own
// policy. Needs chromium; pictures are kept in the directory SHOTS names.
import assert from "node:assert/strict";
import { createHash, generateKeyPairSync } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { codeRequest, type LoginKit, newPkce, postForm, startLogin } from "../issuer/login/login-kit.js";
import { measure } from "./measure.js";

const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
const SHOTS = process.env.SHOTS;
const FLAGS = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"];
/** WCAG 2.2, success criterion 1.4.3 (AA). */
const MIN_CONTRAST = 4.5;
const MIN_TARGET_PX = 44;

const screens = [
  { name: "small", viewport: { width: 390, height: 844 }, colorScheme: "light" },
  { name: "small-dark", viewport: { width: 390, height: 844 }, colorScheme: "dark" },
  { name: "large", viewport: { width: 1280, height: 800 }, colorScheme: "light" },
  { name: "large-dark", viewport: { width: 1280, height: 800 }, colorScheme: "dark" },
] as const;

let kit: LoginKit;
let browser: Browser;
/** What the program that asked got, the newest last. */
const got: URLSearchParams[] = [];
const program = createServer((req, res) => {
  const { pathname, searchParams } = new URL(req.url ?? "/", "http://program");
  if (pathname === "/callback") got.push(searchParams);
  res.setHeader("content-type", "text/html").end("<title>program</title>The program has it.");
});
let programUrl = "";

before(async () => {
  assert.ok(existsSync(BROWSER), `no browser at ${BROWSER}: apt-get install chromium, or name one in CHROMIUM`);
  if (SHOTS) mkdirSync(SHOTS, { recursive: true });
  kit = await startLogin(({ loginProviders }) => ({
    loginProviders: loginProviders.flatMap((one) => [one, { ...one, name: "other", title: "Another Login Provider" }]),
  }));
  await kit.organisation("example.org");
  await new Promise<void>((resolve) => program.listen(0, "127.0.0.1", resolve));
  programUrl = `http://127.0.0.1:${(program.address() as AddressInfo).port}/callback`;
  browser = await chromium.launch({ executablePath: BROWSER, args: FLAGS });
});

after(async () => {
  await browser?.close();
  await kit?.stop();
  program.closeAllConnections();
  program.close();
});

for (const { name, viewport, colorScheme } of screens) {
  const inBrowser = async (work: (page: Page, look: (title: string) => Promise<void>) => Promise<void>) => {
    const context: BrowserContext = await browser.newContext({ viewport, colorScheme });
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on("console", (message) => {
      // A status is no complaint: pages for what went wrong have one.
      if (!message.text().startsWith("Failed to load resource")) complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    let n = 0;
    try {
      await work(page, (title) => checkPage(page, title, `${name}-${++n}`));
      assert.deepEqual(complaints, []);
    } finally {
      await context.close();
    }
  };

  test(`a program asks, ${name}`, () =>
    inBrowser(async (page, look) => {
      const { challenge } = newPkce();
      await page.goto(oauth(codeRequest(challenge, { redirect_uri: programUrl })));
      await look("How do you sign in?");
      await page.getByRole("link", { name: "Continue with Another Login Provider" }).click();
      await page.waitForURL(`${programUrl}?**`);
      assert.ok(got.at(-1)?.get("code"));
    }));

  test(`through an organisation, by keyboard, ${name}`, () =>
    inBrowser(async (page, look) => {
      const { challenge } = newPkce();
      await page.goto(oauth(codeRequest(challenge, { redirect_uri: programUrl })));
      for (const organisation of ["nobody.example", "example.org"]) {
        await page.getByLabel("Name of your organisation").fill(organisation);
        await page.keyboard.press("Enter");
        await page.waitForURL(`**organisation=${organisation}`);
        await look("How do you sign in?");
      }
      await page.keyboard.press("Tab");
      assert.equal(await page.locator(":focus").textContent(), "Continue with example.org staff");
      await page.keyboard.press("Enter");
      await page.waitForURL(`${programUrl}?**`);
      assert.ok(got.at(-1)?.get("code"));
    }));

  test(`a terminal asks, ${name}`, () =>
    inBrowser(async (page, look) => {
      const { key, code } = terminal();
      await page.goto(oauth({ headless_code: key }));
      await look("Give a terminal access?");
      await page.getByLabel("Code in your terminal").fill("aaaa-aaaa");
      await page.getByRole("button", { name: "Continue" }).click();
      await page.getByText("That is not the code").waitFor();
      await look("Give a terminal access?");
      await page.getByLabel("Code in your terminal").fill(code.toLowerCase());
      await page.keyboard.press("Enter");
      await page.waitForURL(/continue=/);
      await look("Code confirmed");
      await page.getByRole("link", { name: "Continue with Test Login" }).click();
      await page.getByRole("heading", { name: "Signed in" }).waitFor();
      await look("Signed in");
    }));

  test(`a device asks, ${name}`, () =>
    inBrowser(async (page, look) => {
      for (const [decision, outcome] of [
        ["Approve", "Approved"],
        ["Deny", "Denied"],
      ] as const) {
        const { body } = await postForm(`${kit.url}/oauth/device_authorization`, { client_id: "build-agent" });
        await page.goto(String(body.verification_uri_complete));
        await look("Connect a device");
        assert.equal(await page.getByLabel("Code on your device").inputValue(), body.user_code);
        await page.getByRole("button", { name: "Continue" }).click();
        await page.waitForURL(/continue=/);
        await look("Sign in for a device");
        await page.getByRole("link", { name: "Continue with Test Login" }).click();
        await page.waitForURL(/approval=/);
        await look("Give this device access?");
        await page.getByRole("button", { name: decision }).click();
        await page.getByRole("heading", { name: outcome }).waitFor();
        await look(outcome);
      }
      await page.goto(`${kit.url}/activate`);
      await page.getByLabel("Code on your device").fill("bbbb-bbbb");
      await page.keyboard.press("Enter");
      await page.getByText("That is not the code").waitFor();
      await look("Connect a device");
    }));

  test(`what cannot be done, ${name}`, () =>
    inBrowser(async (page, look) => {
      await page.goto(oauth({ response_type: "code", redirect_uri: "http://evil.example/", client_id: "x" }));
      await look("This cannot be done");
      await page.goto(`${kit.url}/oauth/callback?state=unknown&code=x`);
      await look("This login is over");
    }));
}

test("over TLS the cookie is bound to the host, and comes back from the provider", async () => {
  const secure = await startLogin(undefined, { tls: true });
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  try {
    const page = await context.newPage();
    const { challenge } = newPkce();
    const query = new URLSearchParams(codeRequest(challenge, { redirect_uri: programUrl, state: "over TLS" }));
    await page.goto(`${secure.url}/oauth?${query}`);
    assert.equal(got.at(-1)?.get("state"), "over TLS");
    assert.ok(got.at(-1)?.get("code"));
    const [cookie, ...more] = await context.cookies(secure.url);
    assert.deepEqual(
      more.filter(({ name }) => name.includes("arbor")),
      [],
    );
    const { name, secure: isSecure, httpOnly, sameSite, path } = cookie ?? {};
    assert.deepEqual([name, isSecure, httpOnly, sameSite, path], ["__Host-arbor-login", true, true, "Lax", "/"]);
  } finally {
    await context.close();
    await secure.stop();
  }
});

function oauth(parameters: Readonly<Record<string, string>>): string {
  return `${kit.url}/oauth?${new URLSearchParams(parameters)}`;
}

function terminal(): { key: string; code: string } {
  const key = String(generateKeyPairSync("x25519").publicKey.export({ format: "jwk" }).x);
  const hash = createHash("sha256").update(Buffer.from(key, "base64url")).digest("hex").slice(0, 10);
  const bits = BigInt(`0x${hash}`).toString(2).padStart(40, "0");
  const digits = bits.match(/.{5}/g)?.map((five) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[Number.parseInt(five, 2)]);
  return { key, code: digits?.join("") ?? "" };
}

async function checkPage(page: Page, title: string, shot: string): Promise<void> {
  if (SHOTS) await page.screenshot({ path: join(SHOTS, `${shot}-${title.replace(/\W+/g, "-")}.png`), fullPage: true });
  assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), title);
  const { overflow, targets, texts } = await measure(page);
  assert.ok(overflow <= 0, `${title}: ${overflow} px are cut off on the right`);
  for (const { text, height } of targets) assert.ok(height >= MIN_TARGET_PX, `${title}: ${text} is ${height} px high`);
  assert.ok(texts.length > 2, `${title}: no text was found`);
  for (const { text, contrast } of texts) {
    assert.ok(contrast >= MIN_CONTRAST, `${title}: "${text}" has a contrast of ${contrast}`);
  }
}
