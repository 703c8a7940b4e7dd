// The session of the console in real browsers: many tabs and renewals, lost answers, and sessions that are ended elsewhere.
// Nobody is signed out who should not be.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { waitUntil } from "../../support/wait-until.js";
import { ada, bob, type ConsoleWorld, call, startConsoleWorld } from "./world.js";

const SESSION = "*/console/session";

let world: ConsoleWorld;
let organisation = "";

before(async () => {
  world = await startConsoleWorld();
  organisation = (await world.organisation("acme.example", ada)).group;
});
after(() => world?.stop());

interface PausedResponse {
  readonly requestId: string;
  readonly responseStatusCode?: number;
  readonly responseHeaders?: { name: string; value: string }[];
}

interface Counts {
  responses: number;
  lost: number;
}

/**
 * Loses responses to requests for tokens on their last step, in the browser: the service has handled the requests. By the
 * protocol of the browser, because requests that are sent in its place lack fields of it.
 *
 * @param isLost which of the responses are lost, counted from 1
 * @param lifeS for how long the page takes a token for valid
 */
async function loseResponses(
  page: Page,
  counts: Counts,
  isLost: (n: number) => boolean,
  lifeS?: number,
): Promise<void> {
  const session = await page.context().newCDPSession(page);
  // A page that is left meanwhile has no such request any more.
  session.on("Fetch.requestPaused", (paused) => void pass(paused).catch(() => {}));
  const pass = async ({ requestId, responseStatusCode, responseHeaders = [] }: PausedResponse) => {
    const n = ++counts.responses;
    if (isLost(n)) {
      counts.lost++;
      await session.send("Fetch.failRequest", { requestId, errorReason: "ConnectionReset" });
    } else if (lifeS === undefined || responseStatusCode !== 200) {
      await session.send("Fetch.continueResponse", { requestId });
    } else {
      const { body } = await session.send("Fetch.getResponseBody", { requestId });
      const answer = { ...JSON.parse(Buffer.from(body, "base64").toString()), expiresIn: lifeS };
      const changed = Buffer.from(JSON.stringify(answer)).toString("base64");
      const headers = responseHeaders.filter(({ name }) => !/^content-(length|encoding)$/i.test(name));
      await session.send("Fetch.fulfillRequest", {
        requestId,
        responseCode: 200,
        responseHeaders: headers,
        body: changed,
      });
    }
  };
  await session.send("Fetch.enable", { patterns: [{ urlPattern: SESSION, requestStage: "Response" }] });
}

async function isSignedIn(page: Page): Promise<void> {
  await page.getByRole("link", { name: "Your account" }).waitFor();
}

async function listSessions(token: string): Promise<number> {
  const response = await call(world.url, token, "arbor.sessions.v1.SessionsService/ListSessions", {});
  return ((await response.json()) as { sessions?: unknown[] }).sessions?.length ?? 0;
}

test("five tabs renew a hundred times, and every seventh answer is lost", async () => {
  const { context, page, complaints } = await world.person();
  await world.signIn({ context, page, complaints }, ada);
  const counts = { responses: 0, lost: 0 };
  const tabs = [page];
  while (tabs.length < 5) tabs.push(await context.newPage());
  for (const tab of tabs) await loseResponses(tab, counts, (n) => n % 7 === 0, 1);
  for (let round = 0; counts.responses < 100; round++) {
    const path = round % 2 === 0 ? `/console/groups/${organisation}` : "/console/account";
    await Promise.all(
      tabs.map(async (tab) => {
        await tab.goto(path);
        await isSignedIn(tab);
      }),
    );
  }
  assert.ok(counts.lost >= 10, `${counts.lost} answers were lost`);
  for (const tab of tabs) {
    await tab.getByRole("main").getByRole("heading").first().waitFor();
    assert.equal(await tab.getByText("Your session has ended").count(), 0);
  }
  await context.close();
});

for (const lost of [1, 2, 3]) {
  test(`${lost} lost ${lost === 1 ? "answer" : "answers"} at the sign-in: the person is signed in, once`, async () => {
    const token = await world.harness.token(world.uidOf(ada));
    const before = await listSessions(token);
    const person = await world.person();
    await loseResponses(person.page, { responses: 0, lost: 0 }, (n) => n <= lost);
    await world.signIn(person, ada);
    assert.equal(await listSessions(token), before + 1);
    await person.context.close();
  });
}

test("no answer at all at the sign-in: the page says so, and goes on when it is tried again", async () => {
  const token = await world.harness.token(world.uidOf(ada));
  const before = await listSessions(token);
  const { context, page } = await world.person();
  let isGone = true;
  await loseResponses(page, { responses: 0, lost: 0 }, () => isGone);
  world.provider.account = ada;
  await page.goto("/console/account");
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("heading", { name: "The service cannot be reached" }).waitFor();
  assert.equal(new URL(page.url()).search, "", "the code has left the address");
  isGone = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("heading", { name: "Your account" }).waitFor();
  assert.equal(await listSessions(token), before + 1);
  await context.close();
});

test("a renewal that cannot be sent signs nobody out", async () => {
  const person = await world.person();
  const { context, page } = person;
  await world.signIn(person, ada);
  await context.route(`*${SESSION}`, (route) => route.abort("internetdisconnected"));
  await page.reload();
  await page.getByRole("heading", { name: "The service cannot be reached" }).waitFor();
  await context.unroute(`*${SESSION}`);
  await page.getByRole("button", { name: "Try again" }).click();
  await isSignedIn(page);
  await context.close();
});

test("signing out in one tab signs out all tabs of the browser, and nobody else", async () => {
  const person = await world.person();
  const other = await world.person();
  await world.signIn(person, ada);
  await world.signIn(other, ada);
  const second = await person.context.newPage();
  await second.goto("/console/");
  await isSignedIn(second);
  await person.page.goto("/console/account");
  await person.page.getByRole("button", { name: "Sign out", exact: true }).first().click();
  for (const tab of [person.page, second]) await tab.getByRole("button", { name: "Sign in", exact: true }).waitFor();
  await person.page.reload();
  await person.page.getByRole("button", { name: "Sign in", exact: true }).waitFor();
  await other.page.reload();
  await isSignedIn(other.page);
  await person.context.close();
  await other.context.close();
});

test("a session that is ended elsewhere: the page says so, and the sign-in leads back to the view with its draft", async () => {
  const person = await world.person();
  const other = await world.person();
  const { page } = person;
  await world.signIn(other, bob);
  await world.signIn(person, ada);
  await page.goto(`/console/groups/${organisation}?view=groups`);
  await page.getByRole("button", { name: "New group" }).click();
  await page.getByLabel("Name", { exact: true }).fill("half typed");
  const token = await world.harness.token(world.uidOf(ada));
  const revoked = await call(world.url, token, "arbor.tokens.v1.TokensService/RevokeTokens", { uid: world.uidOf(ada) });
  assert.equal(revoked.status, 200);
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Your session has ended").waitFor();
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("heading", { name: "acme.example" }).waitFor();
  assert.equal(new URL(page.url()).search, "?view=groups");
  await page.getByRole("button", { name: "New group" }).click();
  assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "half typed");
  await other.page.reload();
  await isSignedIn(other.page);
  await person.context.close();
  await other.context.close();
});

test("a draft is not shown to another person who signs in in the same tab", async () => {
  const person = await world.person();
  const { page, context } = person;
  await world.signIn(person, ada);
  await page.getByRole("button", { name: "New organisation" }).click();
  await page.getByLabel("Name", { exact: true }).fill("of ada");
  await page.goto("/console/account");
  await page.getByRole("button", { name: "Sign out", exact: true }).first().click();
  await page.getByRole("button", { name: "Sign in", exact: true }).waitFor();
  // The provider remembers who has signed in.
  await context.clearCookies();
  await world.signIn(person, bob);
  await page.getByRole("button", { name: "New organisation" }).click();
  assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "");
  await context.close();
});

test("another person signs in in another tab: nothing of the first stays in this one", async () => {
  const person = await world.person();
  const { page, context } = person;
  await world.signIn(person, ada);
  await page.goto(`/console/groups/${organisation}`);
  await page.getByRole("button", { name: "Grant a role" }).click();
  await page.getByRole("heading", { name: "Grant a role" }).waitFor();
  // A second tab takes the place of the session, as somebody else.
  const second = await context.newPage();
  world.provider.account = bob;
  await second.goto("/console/account");
  await second.getByText("ada@acme.example").first().waitFor();
  await second.getByRole("button", { name: "Sign out", exact: true }).first().click();
  await second.getByRole("button", { name: "Sign in", exact: true }).waitFor();
  await context.clearCookies();
  await world.signIn({ ...person, page: second }, bob, "/console/account");
  await page.getByRole("heading", { name: "This group is not shown" }).waitFor();
  assert.equal(await page.getByRole("heading", { name: "Grant a role" }).count(), 0);
  assert.equal(await page.getByText("ada@acme.example").count(), 0);
  await context.close();
});

test("a person of an organisation's provider is renewed at the provider, without a page, and keeps the draft", async () => {
  await world.ownProvider("staff.example");
  const person = await world.person();
  const { page, context } = person;
  const carol = { subject: "carol", claims: { email: "carol@staff.example", email_verified: true, name: "Carol" } };
  world.provider.account = carol;
  await page.goto("/console/account");
  await page.getByText("Sign in with your organisation").click();
  await page.getByLabel("Organisation").fill("staff.example");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.waitForURL(/consent|account/);
  if (page.url().includes("consent")) await page.getByRole("button", { name: "Continue", exact: true }).click();
  await page.getByRole("heading", { name: "Your account" }).waitFor();
  const uid = (await page.getByRole("definition").locator("code").first().textContent()) ?? "";
  await page.goto("/console/");
  await page.getByRole("button", { name: "New organisation" }).click();
  await page.getByLabel("Name", { exact: true }).fill("half typed");
  // The session ends, as it does with its token.
  const token = await world.harness.token(uid);
  const revoked = await call(world.url, token, "arbor.tokens.v1.TokensService/RevokeTokens", { uid });
  assert.equal(revoked.status, 200);
  const [silent] = await Promise.all([
    page.waitForRequest((request) => request.url().includes("/oauth?")),
    page.getByRole("button", { name: "Create" }).click(),
  ]);
  assert.match(silent.url(), /prompt=none/);
  await page.getByRole("button", { name: "New organisation" }).click();
  assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "half typed");
  assert.deepEqual(person.complaints, []);
  await context.close();
});

test("a renewal at the provider that it refuses leads to the sign-in", async () => {
  await world.ownProvider("other.example");
  const person = await world.person();
  const { page, context } = person;
  world.provider.account = {
    subject: "dan",
    claims: { email: "dan@other.example", email_verified: true, name: "Dan" },
  };
  await page.goto("/console/account");
  await page.getByText("Sign in with your organisation").click();
  await page.getByLabel("Organisation").fill("other.example");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.waitForURL(/consent|account/);
  if (page.url().includes("consent")) await page.getByRole("button", { name: "Continue", exact: true }).click();
  await page.getByRole("heading", { name: "Your account" }).waitFor();
  await context.clearCookies();
  world.provider.account = undefined;
  await page.reload();
  await page.getByText("Your session has ended").waitFor();
  await context.close();
});

test("a renewal that is rejected while another tab signs in ends neither tab", async () => {
  const person = await world.person();
  const { page, context } = person;
  await world.signIn(person, ada);
  await context.clearCookies();
  const session = await context.newCDPSession(page);
  const held: string[] = [];
  session.on("Fetch.requestPaused", ({ requestId }) => held.push(requestId));
  await session.send("Fetch.enable", { patterns: [{ urlPattern: SESSION, requestStage: "Response" }] });
  const release = async () => {
    const requestId = await waitUntil(() => held.shift());
    await session.send("Fetch.continueResponse", { requestId });
  };
  const reloaded = page.reload();
  await release();
  // The second rejection is on its way when the other tab signs in.
  await waitUntil(() => held.length > 0);
  const second = await context.newPage();
  await second.goto("/console/account");
  world.provider.account = ada;
  await second.evaluate("localStorage.removeItem('arbor-session')");
  await second.reload();
  await world.signIn({ ...person, page: second }, ada, "/console/account");
  await release();
  await session.send("Fetch.disable");
  await reloaded;
  for (const tab of [page, second]) await isSignedIn(tab);
  await second.reload();
  await isSignedIn(second);
  await context.close();
});

test("the service restarts: the session goes on", async () => {
  const person = await world.person();
  await world.signIn(person, ada);
  await world.restart();
  await person.page.reload();
  await isSignedIn(person.page);
  await person.context.close();
});

test("the control: without the half of the origin, or without the cookie, the session does not go on", async () => {
  const person = await world.person();
  const { context, page } = person;
  await world.signIn(person, ada);
  const cookies = await context.cookies();
  await context.clearCookies();
  await page.reload();
  await page.getByRole("button", { name: "Sign in", exact: true }).waitFor();
  await context.addCookies(cookies);
  await page.evaluate("localStorage.setItem('arbor-session', 'cookie')");
  await page.reload();
  await isSignedIn(page);
  await page.evaluate(`new Promise((resolve) => {
    indexedDB.deleteDatabase("arbor-console").onsuccess = resolve;
  })`);
  await page.reload();
  await page.getByRole("button", { name: "Sign in", exact: true }).waitFor();
  await context.close();
});
