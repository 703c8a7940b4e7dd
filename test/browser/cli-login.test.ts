// Logging in from end to end: `arbor` as a process, a service and a login provider
// as `arbor demo` starts them, and a person in a real browser. Needs chromium;
// pictures of all pages are kept in the directory SHOTS names.
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { type Demo, startDemo } from "../../src/cli/host/demo/demo.js";
import { formatAnnouncement } from "../../src/cli/host/demo/walkthrough.js";
import { type Ended, type Running, run } from "../cli/remote/auth/process.js";
import { scriptArguments } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";
import { measure } from "./measure.js";

const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
const SHOTS = process.env.SHOTS;
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
];
const sizes = [
  { width: 390, height: 844 },
  { width: 1280, height: 800 },
];
const GROUPS = ["demo.example", "platform", "production", "research"];

let demo: Demo;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let complaints: string[];
/** Where `arbor` keeps the login of the running test. */
let credentials: string;

before(async () => {
  assert.ok(existsSync(BROWSER), `no browser at ${BROWSER}: apt-get install chromium, or name one in CHROMIUM`);
  if (SHOTS) mkdirSync(SHOTS, { recursive: true });
  browser = await chromium.launch({ executablePath: BROWSER, args: FLAGS });
});

after(() => browser?.close());

beforeEach(async () => {
  credentials = join(tempDir(), "credentials.json");
  complaints = [];
  demo = await startDemo({ data: tempDir(), listen: "127.0.0.1:0" });
  ({ context, page } = await newBrowser());
});

afterEach(async () => {
  await context.close();
  await demo.stop();
  assert.deepEqual(complaints, []);
});

async function newBrowser(): Promise<{ context: BrowserContext; page: Page }> {
  const made = await browser.newContext({ viewport: sizes[1] ?? null });
  const tab = await made.newPage();
  tab.on("console", (message) => {
    // A status is no complaint: pages for what went wrong have one.
    if (!message.text().startsWith("Failed to load resource")) complaints.push(message.text());
  });
  tab.on("pageerror", (error) => complaints.push(error.message));
  return { context: made, page: tab };
}

/** Looks at the page on a small and a large screen: nothing is cut off, too small to hit, or hard to read. */
async function look(title: string, tab = page): Promise<void> {
  await tab.getByRole("heading", { level: 1, name: title, exact: true }).waitFor();
  for (const size of sizes) {
    await tab.setViewportSize(size);
    const path = `${title.replace(/\W+/g, "-")}-${new URL(tab.url()).pathname.split("/")[1]}-${size.width}.png`;
    if (SHOTS) await tab.screenshot({ path: join(SHOTS, path), fullPage: true });
    const { overflow, targets, texts } = await measure(tab);
    assert.ok(overflow <= 0, `${title}: ${overflow} px are cut off`);
    for (const { text, height } of targets) assert.ok(height >= 44, `${title}: ${text} is ${height} px high`);
    for (const { text, contrast } of texts)
      assert.ok(contrast >= 4.5, `${title}: "${text}" has a contrast of ${contrast}`);
  }
}

/** Signs in at the provider. */
async function pick(person: string, tab = page): Promise<void> {
  await look("Who are you?", tab);
  await tab.getByRole("link", { name: person }).click();
}

/** Decides on the page that asks before an invite is accepted or a program gets tokens. */
async function consent(title: string, button: string, tab = page): Promise<void> {
  await look(title, tab);
  await tab.getByRole("button", { name: button }).click();
}

function arbor(args: readonly string[], env: Readonly<Record<string, string>> = {}): Running {
  const settings = { ARBOR_API: demo.url, ARBOR_CREDENTIALS: credentials, DISPLAY: "", ...env };
  return run(process.execPath, [...scriptArguments("src/main.ts"), ...args], settings);
}

/** The address that a login prints. */
async function pageOf(login: Running): Promise<string> {
  const [url = ""] = await login.waitForOutput(/http:\S+/);
  return url;
}

async function groupsFor(token: string): Promise<string[]> {
  const url = `${demo.url}/iam/v2beta1/groups?order_by=name`;
  const { code, stdout } = await run("curl", ["-sS", "--fail", "-H", `Authorization: Bearer ${token}`, url]).ended;
  assert.equal(code, 0, stdout);
  return (JSON.parse(stdout).groups as { name: string }[]).map(({ name }) => name);
}

/** That the user who is logged in sees these groups, by a token and by the command line. */
async function assertSees(names: readonly string[]): Promise<void> {
  const [token, list] = await Promise.all([
    arbor(["auth", "token"]).ended,
    arbor(["iam", "groups", "list", "--order-by", "name", "-o", "json"]).ended,
  ]);
  assert.deepEqual([token.code, token.stderr, list.code, list.stderr], [0, "", 0, ""]);
  assert.deepEqual(await groupsFor(token.stdout.trim()), names);
  const listed = (JSON.parse(list.stdout).groups as { name: string }[]).map(({ name }) => name);
  assert.deepEqual(listed, names);
}

function assertLoggedIn({ code, stdout, stderr }: Ended): void {
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^logged in at http:\S+ as [^,]+, with a token until \S+\n$/);
}

describe("arbor auth login", () => {
  it("opens a browser, and the login can be used and ended", async () => {
    const directory = tempDir();
    const [program, opened] = [join(directory, "browser"), join(directory, "opened")];
    writeFileSync(program, `#!/bin/sh\nprintf %s "$1" > '${opened}.new'\nmv '${opened}.new' '${opened}'\n`);
    chmodSync(program, 0o755);
    const login = arbor(["auth", "login"], { BROWSER: program });
    await pageOf(login);
    await waitUntil(() => existsSync(opened));
    await page.goto(readFileSync(opened, "utf8"));
    await pick("Alice");
    await consent("Give a program access?", "Continue");
    await look("You are logged in");
    assertLoggedIn(await login.ended);
    await assertSees(GROUPS);

    const status = await arbor(["auth", "status", "-o", "json"]).ended;
    const { accepted, email, renewedWith } = JSON.parse(status.stdout) as Record<string, unknown>;
    assert.deepEqual([accepted, email, renewedWith], [true, "alice@demo.example", "refresh token"]);

    assert.equal((await arbor(["auth", "logout"]).ended).code, 0);
    const { code, stdout, stderr } = await arbor(["auth", "token"]).ended;
    assert.deepEqual([code, stdout], [3, ""]);
    assert.match(stderr, /^arbor: not logged in to /);
  });

  it("tells of a login that was cancelled, and then lets the same browser in", async () => {
    const cancelled = arbor(["auth", "login", "--no-browser"]);
    await page.goto(await pageOf(cancelled));
    await pick("Nobody");
    await look("The login failed");
    const { code, stderr } = await cancelled.ended;
    assert.equal(code, 4);
    assert.match(stderr, /\narbor: the login failed: the login was cancelled, or refused by the login provider\n$/);
    const login = arbor(["auth", "login", "--no-browser"]);
    await page.goto(await pageOf(login));
    await pick("Alice");
    await consent("Give a program access?", "Continue");
    await look("You are logged in");
    assertLoggedIn(await login.ended);
  });

  it("tells somebody unknown", async () => {
    const login = arbor(["auth", "login", "--no-browser"]);
    await page.goto(await pageOf(login));
    await pick("Bob");
    await look("The login failed");
    const { code, stdout, stderr } = await login.ended;
    assert.deepEqual([code, stdout], [5, ""]);
    assert.match(
      stderr,
      /\narbor: the login failed: account not found: you need an invite; ask an owner of your organisation for one\n$/,
    );
    assert.equal(existsSync(credentials), false);
  });

  it("is good for a browser in another place", async () => {
    const login = arbor(["auth", "login", "--headless"]);
    const [, code = "", url = ""] = await login.waitForOutput(/code ([A-Z2-7]{4}-[A-Z2-7]{4}) there:\s+(http:\S+)/);
    await page.goto(url);
    await look("Give a terminal access?");
    await page.getByLabel("Code in your terminal").fill("aaaa-aaaa");
    await page.keyboard.press("Enter");
    await page.getByText("That is not the code").waitFor();
    await page.getByLabel("Code in your terminal").fill(code.toLowerCase());
    await page.getByRole("button", { name: "Continue" }).click();
    await look("Code confirmed");
    await page.getByRole("link", { name: "Continue with the demo's login" }).click();
    await pick("Alice");
    await look("Signed in");
    assertLoggedIn(await login.ended);
    await assertSees(GROUPS);
    // It was answered, and nobody can answer it again.
    await page.goto(url);
    await look("This login is over");
  });

  it("shows a page to somebody unknown in another place", async () => {
    const login = arbor(["auth", "login", "--headless"]);
    const [, code = "", url = ""] = await login.waitForOutput(/code (\S+) there:\s+(http:\S+)/);
    await page.goto(url);
    await page.getByLabel("Code in your terminal").fill(code);
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Continue with" }).click();
    await page.getByRole("heading", { name: "Who are you?" }).waitFor();
    const answered = page.waitForResponse((response) => new URL(response.url()).pathname === "/oauth/callback");
    await pick("Bob");
    assert.equal((await answered).status(), 404);
    await look("You have no account here");
    login.child.kill("SIGTERM");
    await login.ended;
  });
});

describe("a device", () => {
  it("gets what somebody approves of in a browser", async () => {
    const metadata = (await (await fetch(`${demo.url}/.well-known/openid-configuration`)).json()) as Record<
      string,
      string
    >;
    const post = async (endpoint: string, form: Readonly<Record<string, string>>) => {
      const response = await fetch(metadata[endpoint] ?? "", { method: "POST", body: new URLSearchParams(form) });
      return { status: response.status, body: (await response.json()) as Record<string, string> };
    };
    const client = { client_id: "build-agent" };
    const { body } = await post("device_authorization_endpoint", { ...client, scope: "openid" });
    const grant = { grant_type: "urn:ietf:params:oauth:grant-type:device_code", device_code: body.device_code ?? "" };
    const poll = () => post("token_endpoint", { ...client, ...grant });
    const early = await poll();
    assert.deepEqual([early.status, early.body.error], [400, "authorization_pending"]);

    await page.goto(body.verification_uri ?? "");
    await look("Connect a device");
    await page.getByLabel("Code on your device").fill(body.user_code ?? "");
    await page.keyboard.press("Enter");
    await look("Sign in for a device");
    await page.getByRole("link", { name: "Continue with" }).click();
    await pick("Alice");
    await look("Give this device access?");
    assert.match((await page.getByRole("main").textContent()) ?? "", /alice@demo\.example.*build-agent/s);
    await page.getByRole("button", { name: "Approve" }).click();
    await look("Approved");

    await new Promise((resolve) => setTimeout(resolve, Number(body.interval) * 1000));
    const { status, body: tokens } = await poll();
    assert.equal(status, 200, JSON.stringify(tokens));
    assert.deepEqual(await groupsFor(tokens.access_token ?? ""), GROUPS);
    // Published clients exchange the ID token.
    const query = new URLSearchParams({ aud: demo.url });
    const headers = { authorization: `Bearer ${tokens.id_token}` };
    const exchanged = await fetch(`${demo.url}/sts/exchange?${query}`, { headers });
    const { token } = (await exchanged.json()) as { token: string };
    assert.deepEqual(await groupsFor(token), GROUPS);
    assert.equal((await poll()).body.error, "invalid_grant");
  });
});

describe("a published client", () => {
  /** Waits as they do, and opens the page they open. */
  async function authorizationRequest(more: Readonly<Record<string, string>> = {}) {
    const server = createServer();
    const got = new Promise<URLSearchParams>((resolve) => {
      server.on("request", (req, res) => {
        const { pathname, searchParams } = new URL(req.url ?? "/", "http://localhost");
        if (pathname === "/callback") resolve(searchParams);
        res.setHeader("content-type", "text/html").end("<h1>Done</h1>");
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const query = new URLSearchParams({
      exit: "redirect",
      redirect: `http://localhost:${(server.address() as AddressInfo).port}/callback?token=true&error=true`,
      client_id: "published",
      audience: demo.url,
      create_refresh_token: "true",
      ...more,
    });
    await page.goto(`${demo.url}/oauth?${query}`);
    return {
      got,
      stop() {
        server.closeAllConnections();
        server.close();
      },
    };
  }

  it("gets a token and a refresh token that are good", async () => {
    const { got, stop } = await authorizationRequest();
    await pick("Alice");
    await consent("Give a program access?", "Continue");
    const query = await got;
    stop();
    assert.deepEqual([...query.keys()].sort(), ["refresh_token", "token"]);
    assert.deepEqual(await groupsFor(query.get("token") ?? ""), GROUPS);
    const renewed = await fetch(`${demo.url}/sts/exchange_refresh_token?${new URLSearchParams({ aud: demo.url })}`, {
      method: "POST",
      headers: { authorization: `Bearer ${query.get("refresh_token")}` },
    });
    const { token } = (await renewed.json()) as { token: { token: string } };
    assert.deepEqual(await groupsFor(token.token), GROUPS);
  });

  it("is told of somebody unknown, without a token", async () => {
    const { got, stop } = await authorizationRequest();
    await pick("Bob");
    const query = await got;
    stop();
    assert.deepEqual(
      [query.get("error"), query.get("status_code"), query.get("token")],
      ["account not found", "404", null],
    );
  });

  it("registers somebody by an invite in the link", async () => {
    const alice = arbor(["auth", "login", "--no-browser"]);
    await page.goto(await pageOf(alice));
    await pick("Alice");
    await consent("Give a program access?", "Continue");
    await alice.ended;
    const { research = "" } = await groupUids();
    const viewer = "63921b2c44617e3f2603851537be0123af4a57d7";
    const flags = ["--parent", research, "--role", viewer, "--ttl", "1h", "--single-use", "-o", "json"];
    const made = await arbor(["iam", "group-invites", "create", ...flags]).ended;
    const { code: invite } = JSON.parse(made.stdout) as { code: string };
    const first = await authorizationRequest({ invite });
    await pick("Bob");
    const offer = page.getByRole("main");
    await look("Accept this invite?");
    assert.match(await offer.innerText(), /bob@demo\.example.*alice@demo\.example.*demo\.example.*research.*viewer/s);
    await consent("Accept this invite?", "Accept");
    assert.deepEqual(await groupsFor((await first.got).get("token") ?? ""), ["research"]);
    first.stop();
    const second = await authorizationRequest({ invite });
    await pick("Bob");
    assert.deepEqual([(await second.got).get("error"), (await second.got).get("token")], ["access_denied", null]);
    second.stop();
  });

  async function groupUids(): Promise<Record<string, string>> {
    const { stdout } = await arbor(["iam", "groups", "list", "-o", "json"]).ended;
    const { groups } = JSON.parse(stdout) as { groups: { name: string; uid: string }[] };
    return Object.fromEntries(groups.map(({ name, uid }) => [name, uid]));
  }
});

describe("docs/demo.md", () => {
  it("invites Bob with commands that work as they stand", async () => {
    const alice = arbor(["auth", "login", "--no-browser"]);
    await page.goto(await pageOf(alice));
    await pick("Alice");
    await consent("Give a program access?", "Continue");
    assertLoggedIn(await alice.ended);
    const shell = formatAnnouncement(demo, { kept: true, hasConsole: true })
      .split("\n")
      .filter((line) => /^ {2}(PLATFORM=|arbor\(\))/.test(line));
    const guide = readFileSync("docs/demo.md", "utf8");
    const [, commands = ""] = /## Bob\n.*?```sh\n(.*?)```/s.exec(guide) ?? [];
    const script = ["set -euo pipefail", ...shell, commands].join("\n");
    const env = { ARBOR_API: demo.url, ARBOR_CREDENTIALS: credentials, DISPLAY: "" };
    const bob = run("bash", ["-c", script], env);
    await page.goto(await pageOf(bob));
    await pick("Bob");
    await consent("Accept this invite?", "Accept");
    await look("You are logged in");
    const { code, stdout, stderr } = await bob.ended;
    assert.equal(code, 0, stderr);
    const [, , ...rows] = stdout.trim().split("\n");
    assert.deepEqual(rows.map((row) => row.split(/ {2,}/)[0]).sort(), ["platform", "production"]);
  });
});
