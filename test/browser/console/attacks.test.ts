// What another port of the same host, and a page of another site, can do to people who use the console: cookies ignore
// ports, so such a port reads and sets those of the console. It signs nobody in, and nobody in as somebody else.
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { waitUntil } from "../../support/wait-until.js";
import { ada, bob, type ConsoleWorld, call, type Person, startConsoleWorld } from "./world.js";

let world: ConsoleWorld;
let attacker: Server;
/** Another port of the host of the service: the same site. */
let sibling = "";
/** Another host: another site. */
let stranger = "";
/** What the attacker's server answers, and got. */
let html = "";
let setCookie: string[] = [];
const got: IncomingMessage[] = [];

before(async () => {
  world = await startConsoleWorld();
  await world.organisation("acme.example", ada);
  attacker = createServer((request, response) => {
    got.push(request);
    if (setCookie.length > 0) response.setHeader("set-cookie", setCookie);
    response.setHeader("content-type", "text/html").end(html);
  });
  await new Promise<void>((resolve) => attacker.listen(0, "127.0.0.1", resolve));
  const { port } = attacker.address() as AddressInfo;
  sibling = `http://127.0.0.1:${port}`;
  stranger = `http://localhost:${port}`;
});
after(async () => {
  attacker?.closeAllConnections();
  attacker?.close();
  await world?.stop();
});

async function signedIn(): Promise<Person> {
  const person = await world.person();
  await world.signIn(person, ada);
  return person;
}

/** Opens a page of the attacker in a browser. */
async function lure({ context }: Person, origin: string, body: string, path = "/"): Promise<Page> {
  html = `<!doctype html><title>attacker</title>${body}`;
  const page = await context.newPage();
  await page.goto(`${origin}${path}`);
  return page;
}

/** Asserts that a browser is signed in as Ada, or as nobody. */
async function assertNobodyElse({ page }: Person): Promise<void> {
  await page.goto("/console/account");
  const account = page.getByText("ada@acme.example");
  await account
    .or(page.getByRole("button", { name: "Sign in", exact: true }))
    .first()
    .waitFor();
  assert.equal(await page.getByText("bob@acme.example").count(), 0);
}

/** The cookie of the console, as the browser sends it. */
async function cookieOf({ context }: Person): Promise<string> {
  const cookie = (await context.cookies(`${world.url}/console/`)).find(({ name }) => name.endsWith("arbor-console"));
  return cookie === undefined ? "" : `${cookie.name}=${cookie.value}`;
}

const OWN = (origin: string) => ({ origin, "sec-fetch-site": "same-origin", "content-type": "application/json" });

test("a sibling port gets the cookie from the browser, and gets no token with it", async () => {
  const person = await signedIn();
  got.length = 0;
  await lure(person, sibling, "", "/console/");
  const [request] = got;
  const stolen = request?.headers.cookie ?? "";
  // This is what makes the second half needed.
  assert.match(stolen, /arbor-console=/);
  for (const half of [undefined, "A".repeat(43)]) {
    const headers = { ...OWN(world.url), cookie: stolen, ...(half !== undefined && { "arbor-console-key": half }) };
    const response = await fetch(`${world.url}/console/session`, { method: "POST", headers, body: "{}" });
    assert.ok(response.status === 400 || response.status === 401, String(response.status));
    assert.doesNotMatch(await response.text(), /accessToken/);
  }
  await assertNobodyElse(person);
  await person.context.close();
});

test("the control: with the half of the origin, the same request gets a token", async () => {
  const person = await signedIn();
  const half = await person.page.evaluate(`new Promise((resolve) => {
    indexedDB.open("arbor-console").onsuccess = ({ target }) => {
      const read = target.result.transaction("session").objectStore("session").get("half");
      read.onsuccess = () => resolve(read.result);
    };
  })`);
  const headers = { ...OWN(world.url), cookie: await cookieOf(person), "arbor-console-key": String(half) };
  const response = await fetch(`${world.url}/console/session`, { method: "POST", headers, body: "{}" });
  assert.equal(response.status, 200);
  await person.context.close();
});

test("a sibling port that plants its own cookie signs nobody in as itself", async () => {
  const mallory = await world.person();
  await world.signIn(mallory, bob);
  const planted = (await cookieOf(mallory)).split("=")[1];
  for (const person of [await signedIn(), await world.person()]) {
    setCookie = ["/console", "/console/session", "/"].map((path) => `arbor-console=${planted}; Path=${path}`);
    await lure(person, sibling, "");
    setCookie = [];
    await assertNobodyElse(person);
    await person.context.close();
  }
  await mallory.context.close();
});

test("a login that somebody else has begun signs nobody in", async () => {
  const mallory = await world.person();
  await world.signIn(mallory, bob);
  await mallory.context.clearCookies();
  // The code of the attacker's own login, which the attacker does not redeem.
  let stolen = "";
  mallory.page.on("request", (request) => {
    if (request.url().includes("/console/callback?")) stolen = request.url();
  });
  world.provider.account = bob;
  await mallory.page.goto("/console/");
  const signIn = mallory.page.getByRole("button", { name: "Sign in", exact: true });
  await signIn.waitFor();
  await mallory.page.route("**/console/session", (route) => route.abort());
  await signIn.click();
  await waitUntil(() => stolen !== "");
  assert.match(stolen, /code=/);
  for (const person of [await signedIn(), await world.person()]) {
    const page = await lure(person, sibling, `<a href="${stolen.replaceAll("&", "&amp;")}">a prize</a>`);
    await page.getByRole("link", { name: "a prize" }).click();
    await page.waitForURL(/\/console\//);
    await assertNobodyElse(person);
    await person.context.close();
  }
  await mallory.context.close();
});

const requests = [
  {
    name: "a request of a script with credentials",
    body: (url: string) => `<script>
      fetch("${url}/console/session", { method: "POST", credentials: "include", body: "{}",
        headers: { "content-type": "application/json", "arbor-console-key": "${"A".repeat(43)}" } })
        .then((response) => response.text()).then((text) => { window.outcome = text; }, (error) => { window.outcome = "refused"; });
    </script>`,
  },
  {
    name: "a request of a script without CORS",
    body: (url: string) => `<script>
      fetch("${url}/console/session", { method: "POST", mode: "no-cors", credentials: "include", body: '{"end":true}' })
        .then((response) => response.text()).then((text) => { window.outcome = text || "refused"; }, () => { window.outcome = "refused"; });
    </script>`,
  },
] as const;

for (const { name, body } of requests) {
  for (const kind of ["sibling", "stranger"] as const) {
    test(`${name}, from a ${kind}: refused, and the person stays signed in`, async () => {
      const person = await signedIn();
      const page = await lure(person, kind === "sibling" ? sibling : stranger, body(world.url));
      await page.waitForFunction("window.outcome !== undefined");
      assert.equal(await page.evaluate("window.outcome"), "refused");
      await person.page.goto("/console/account");
      await person.page.getByText("ada@acme.example").first().waitFor();
      await person.context.close();
    });
  }
}

for (const enctype of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
  test(`a form of another origin (${enctype}): refused, and the person stays signed in`, async () => {
    const person = await signedIn();
    const field = `<input name='{"end":true,"a":"' value='"}'>`;
    const form = `<form method="post" enctype="${enctype}" action="${world.url}/console/session">${field}<button>go</button></form>`;
    const page = await lure(person, sibling, form);
    const [response] = await Promise.all([
      page.waitForResponse((one) => one.url().endsWith("/console/session")),
      page.getByRole("button", { name: "go" }).click(),
    ]);
    assert.ok(response.status() >= 400 && response.status() < 500, String(response.status()));
    await person.page.goto("/console/account");
    await person.page.getByText("ada@acme.example").first().waitFor();
    await person.context.close();
  });
}

test("a frame of another origin shows nothing of the console", async () => {
  const person = await signedIn();
  for (const origin of [sibling, stranger]) {
    const page = await lure(person, origin, `<iframe src="${world.url}/console/"></iframe>`);
    await page.waitForLoadState("networkidle");
    const frames = page.frames().filter((frame) => frame !== page.mainFrame());
    for (const frame of frames) assert.equal(await frame.getByText("Organisations").count(), 0);
    assert.ok(
      frames.every((frame) => !frame.url().startsWith(world.url)),
      frames.map((frame) => frame.url()).join(),
    );
  }
  await person.context.close();
});

test("an image and a script of another origin begin no login and end no session", async () => {
  const person = await signedIn();
  const query = `response_type=code&client_id=console&redirect_uri=${encodeURIComponent(`${world.url}/console/callback`)}`;
  const sources = [`${world.url}/console/session`, `${world.url}/oauth?${query}&code_challenge=${"A".repeat(43)}`];
  const images = sources.map(
    (source) =>
      `<img src="${source.replaceAll("&", "&amp;")}"><script src="${source.replaceAll("&", "&amp;")}"></script>`,
  );
  await (await lure(person, sibling, images.join(""))).waitForLoadState("networkidle");
  await person.page.goto("/console/account");
  await person.page.getByText("ada@acme.example").first().waitFor();
  await person.context.close();
});

test("a token of the console is not found anywhere that outlives the tab", async () => {
  const person = await signedIn();
  const token = await person.page.evaluate(
    `JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])`,
  );
  assert.doesNotMatch(String(token), /eyJ|arbor-console=/);
  const response = await call(world.url, "x", "arbor.sessions.v1.SessionsService/ListSessions", {});
  assert.equal(response.status, 401);
  await person.context.close();
});
