// What those without a session may cause, and what is written about those who have one.
import assert from "node:assert/strict";
import { after, afterEach, beforeEach, test } from "node:test";
import { createLogger } from "../../../src/telemetry/logger.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { waitUntil } from "../../support/wait-until.js";
import { assertNoSession, assertOpen, ConsoleBrowser, makeCode, newKey } from "./browser.js";

let harness: Harness;
let identity: string;
const lines: string[] = [];

beforeEach(async () => {
  const logger = createLogger("trace", { write: (line) => void lines.push(line) });
  harness = await startHarness({ accessLog: "all" }, { logger });
  identity = (await harness.identity()).uid;
});
afterEach(() => harness.stop());
after(() => assert.ok(lines.length > 0));

const newBrowser = () => new ConsoleBrowser(harness.url);
const codeFor = () => makeCode(harness, harness.url, identity, Date.now());

async function signedIn(): Promise<ConsoleBrowser> {
  const browser = newBrowser();
  assertOpen(await browser.signIn(await codeFor()));
  return browser;
}

/** Sends many requests at once, and counts the responses by status. */
async function burst(
  requests: readonly (() => Promise<{ readonly status: number }>)[],
): Promise<Record<number, number>> {
  const counts: Record<number, number> = {};
  for (const { status } of await Promise.all(requests.map((request) => request())))
    counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

test("a browser that fails often is slowed down, and others at its address are not", async () => {
  const [known, guessing] = [await signedIn(), newBrowser()];
  await waitUntil(async () => (await burst(Array.from({ length: 100 }, () => () => guessing.renew())))[429]);
  const counts = await burst(Array.from({ length: 100 }, () => () => known.renew()));
  assert.deepEqual(counts, { 200: 100 });
});

test("with another key each time it is slowed down too, and one that has a session is not", async () => {
  const known = await signedIn();
  const guess = () => newBrowser().renew({ cookie: `arbor-console=${newKey()}` });
  // A sign-out succeeds without a session, and proves nothing.
  await newBrowser().end();
  await waitUntil(async () => (await burst(Array.from({ length: 150 }, () => guess)))[429]);
  assertOpen(await known.renew());
});

test("successes are never limited", async () => {
  const browser = await signedIn();
  for (let i = 0; i < 4; i++) {
    assert.deepEqual(await burst(Array.from({ length: 100 }, () => () => browser.renew())), { 200: 100 });
  }
});

test("no secret is in a log, neither of what succeeds nor of what fails", async () => {
  lines.length = 0;
  const browser = newBrowser();
  const grant = await codeFor();
  const lost = await browser.send(JSON.stringify(grant));
  const { accessToken } = assertOpen(await browser.signIn(grant));
  const renewed = assertOpen(await browser.renew());
  const wrong = { code: newKey(), codeVerifier: newKey() };
  const { cookie } = browser;
  for (const fields of [{ origin: "null" }, { "content-type": "text/plain" }, { "arbor-console-key": "x" }])
    assert.ok((await browser.renew(fields)).status >= 400);
  assertNoSession(await newBrowser().signIn(wrong));
  assertNoSession(await newBrowser().renew({ cookie }));
  await browser.end();
  const text = await waitUntil(() => {
    const all = lines.join("");
    return all.split("console.session").length > 8 && all;
  });
  const cookies = [cookie, String(lost.headers["set-cookie"]).split(";")[0] ?? ""].map(
    (one) => one.split("=")[1] ?? "",
  );
  const secrets = [grant.code, grant.codeVerifier, wrong.code, wrong.codeVerifier, browser.key, ...cookies];
  for (const secret of [...secrets, accessToken, renewed.accessToken]) {
    assert.ok(secret.length > 40);
    assert.ok(!text.includes(secret));
  }
});
