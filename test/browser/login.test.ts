// Signing in with a real browser: every page on a small and a large screen, light
// and dark, by mouse and by keyboard. Nothing may be refused by the pages' own
// policy. Needs chromium; pictures are kept in the directory SHOTS names.
import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, randomBytes } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { takeHeadlessSession } from "../../src/issuer/oauth/headless.js";
import { builtinRoleUid, personUid, randomIds } from "../../src/kernel/ids.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import {
  alice,
  claimsOf,
  codeRequest,
  inviteTo,
  type LoginKit,
  newPkce,
  postForm,
  startLogin,
} from "../issuer/oauth/login-kit.js";
import { startAttacker } from "../issuer/oauth/mix-up-kit.js";
import { bindingRow, groupRow } from "../support/rows.js";
import { measure } from "./measure.js";

const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
const SHOTS = process.env.SHOTS;
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost, EXCLUDE ::1",
];
/** WCAG 2.2, success criterion 1.4.3 (AA). */
const MIN_CONTRAST = 4.5;
const MIN_TARGET_PX = 44;

const screens = [
  { name: "small", viewport: { width: 390, height: 844 }, colorScheme: "light" },
  { name: "small-dark", viewport: { width: 390, height: 844 }, colorScheme: "dark" },
  { name: "large", viewport: { width: 1280, height: 800 }, colorScheme: "light" },
  { name: "large-dark", viewport: { width: 1280, height: 800 }, colorScheme: "dark" },
] as const;

/** Login providers as they are, and such as do not say who they are (RFC 9207). */
const variants = [
  { provider: "a provider as it is", stripIss: false, sizes: screens },
  { provider: "a provider behind a proxy that takes iss away", stripIss: true, sizes: [screens[0], screens[2]] },
];

let kit: LoginKit;
let organisation: { readonly group: string; readonly owner: string };
let browser: Browser;
/** What the program got that sent the request, the newest last. */
const got: URLSearchParams[] = [];
const answerBrowser = (req: IncomingMessage, res: ServerResponse) => {
  const { pathname, searchParams } = new URL(req.url ?? "/", "http://program");
  if (pathname === "/callback") got.push(searchParams);
  res.setHeader("content-type", "text/html").end("<title>program</title>The program has it.");
};
const program = createServer(answerBrowser);
const program6 = createServer(answerBrowser);
const otherProgram = createServer(answerBrowser);
let programUrl = "";
let otherUrl = "";

before(async () => {
  assert.ok(existsSync(BROWSER), `no browser at ${BROWSER}: apt-get install chromium, or name one in CHROMIUM`);
  if (SHOTS) mkdirSync(SHOTS, { recursive: true });
  await new Promise<void>((resolve) => program.listen(0, "127.0.0.1", resolve));
  await new Promise<void>((resolve) => program6.listen(0, "::1", resolve));
  await new Promise<void>((resolve) => otherProgram.listen(0, "127.0.0.1", resolve));
  programUrl = `http://127.0.0.1:${portOf(program)}/callback`;
  otherUrl = `http://127.0.0.1:${portOf(otherProgram)}/callback`;
  browser = await chromium.launch({ executablePath: BROWSER, args: FLAGS });
});

after(async () => {
  await browser?.close();
  for (const server of [program, program6, otherProgram]) {
    server.closeAllConnections();
    server.close();
  }
});

for (const { provider, stripIss, sizes } of variants) {
  describe(provider, () => {
    before(async () => {
      kit = await startLogin(
        ({ loginProviders }) => ({
          loginProviders: loginProviders.flatMap((one) => [
            one,
            { ...one, name: "other", title: "Another Login Provider" },
          ]),
        }),
        { stripIss },
      );
      organisation = await kit.organisation("example.org");
    });

    after(() => kit?.stop());

    for (const { name, viewport, colorScheme } of sizes) {
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
          await page.waitForURL(/consent/);
          await look("Give a program access?");
          const count = got.length;
          await page.getByRole("button", { name: "Cancel" }).click();
          await page.waitForURL(`${programUrl}?**`);
          assert.deepEqual([got.length - count, got.at(-1)?.get("error")], [1, "access_denied"]);
          // Signed in at the provider, and asked again: with the same port, and with another.
          for (const redirect_uri of [programUrl, programUrl, otherUrl]) {
            await page.goto(oauth(codeRequest(challenge, { redirect_uri, connection: "test" })));
            await look("Give a program access?");
            assert.match(await page.getByRole("main").innerText(), new RegExp(new URL(redirect_uri).host));
            await page.getByRole("button", { name: "Continue" }).click();
            await page.waitForURL(`${redirect_uri}?**`);
            assert.ok(got.at(-1)?.get("code"));
          }
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
          await page.waitForURL(/consent/);
          await look("Give a program access?");
          await page.getByRole("button", { name: "Continue" }).focus();
          await page.keyboard.press("Enter");
          await page.waitForURL(`${programUrl}?**`);
          assert.ok(got.at(-1)?.get("code"));
        }));

      test(`a terminal asks, ${name}`, () =>
        inBrowser(async (page, look) => {
          const { key, code } = terminal();
          await page.goto(oauth({ headless_code: key, client_id: "arbor-cli" }));
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

      test(`a terminal asks that shows no code, by keyboard, ${name}`, () =>
        inBrowser(async (page, look) => {
          const { key } = terminal();
          const outcome = () => kit.store.write((tx) => takeHeadlessSession(tx, key, Date.now()));
          await page.goto(oauth({ headless_code: key, client_id: "auth0" }));
          await look("Give another computer access?");
          const main = (await page.getByRole("main").innerText()).replace(/\s+/g, " ");
          assert.match(main, /Program auth0 .* It may act in your name Rights all of them Requested from unknown/);
          const field = page.getByLabel("Type “give access” to go on");
          await field.focus();
          await page.keyboard.press("Enter");
          assert.equal(await page.getByRole("heading", { name: "Confirmed" }).count(), 0, "nothing was typed");
          await page.keyboard.type("yes");
          await page.keyboard.press("Enter");
          await page.getByText("Those are not the words").waitFor();
          await look("Give another computer access?");
          assert.equal(await outcome(), undefined);
          await field.fill("give access");
          await page.getByRole("button", { name: "Continue" }).click();
          await page.waitForURL(/continue=/);
          await look("Confirmed");
          await page.getByRole("link", { name: "Continue with Test Login" }).click();
          await page.getByRole("heading", { name: "Signed in" }).waitFor();
          assert.ok(await outcome());
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

      test(`a program asks for a token, ${name}`, () =>
        inBrowser(async (page, look) => {
          await page.goto(oauth({ redirect: `${programUrl}?token=true`, create_refresh_token: "true" }));
          await page.getByRole("link", { name: "Continue with Test Login" }).click();
          await look("Give a program access?");
          const count = got.length;
          await page.getByRole("button", { name: "Cancel" }).click();
          await page.waitForURL(`${programUrl}?**`);
          assert.deepEqual(
            [got.length - count, got.at(-1)?.get("error"), got.at(-1)?.get("token")],
            [1, "access_denied", null],
          );
          await page.goto(oauth({ redirect: `${programUrl}?token=true`, connection: "test" }));
          await page.getByRole("button", { name: "Continue" }).focus();
          await page.keyboard.press("Enter");
          await page.waitForURL(`${programUrl}?**`);
          assert.equal(claimsOf(got.at(-1)?.get("token")).sub, personUid(kit.provider.issuer, "alice"));
        }));

      test(`a link brings an invite, ${name}`, () =>
        inBrowser(async (page, look) => {
          const group = `${organisation.group}/${randomBytes(8).toString("hex")}`;
          await kit.store.write((tx) => tx.table(groupKind).insert(groupRow(group, { name: "builders" })));
          const invite = await inviteTo(kit, group, organisation.owner, { role: "owner" });
          const invited = codeRequest(newPkce().challenge, { redirect_uri: programUrl, invite, connection: "test" });
          await page.goto(oauth(invited));
          await look("Accept this invite?");
          await page.getByText("What the role allows").click();
          await look("Accept this invite?");
          const text = (await page.getByRole("main").innerText()).replace(/\s+/g, " ");
          assert.match(
            text,
            /You are (Alice \(alice@example\.org\)|alice@example\.org) .* Organisation example\.org Group builders Role owner/,
          );
          await page.getByRole("button", { name: "Accept" }).click();
          await page.waitForURL(`${programUrl}?**`);
          assert.ok(got.at(-1)?.get("code"));
          const bindings = await kit.store.read((tx) =>
            tx.table(roleBindingKind).findByIdentity(personUid(kit.provider.issuer, "alice")),
          );
          assert.ok(bindings.some(({ groupUid }) => groupUid === group));
        }));

      test(`others gave roles, by keyboard, ${name}`, () =>
        inBrowser(async (page, look) => {
          kit.provider.account = { ...alice, subject: `bound ${name}` };
          try {
            const uid = personUid(kit.provider.issuer, `bound ${name}`);
            const offers = await Promise.all(
              [`kept ${name}`, `later ${name}`, name.padEnd(255, "x")].map(async (title) => {
                const { group } = await kit.organisation(title, false);
                const binding = bindingRow(randomIds.newUid(group), uid, builtinRoleUid("viewer"), { pending: true });
                await kit.store.write((tx) => tx.table(roleBindingKind).insert(binding));
                return binding.uid;
              }),
            );
            const parameters = codeRequest(newPkce().challenge, { redirect_uri: programUrl, connection: "test" });
            await page.goto(oauth(parameters));
            await look("Give a program access?");
            for (const [label, letter, value] of [
              [/^kept/, "a", "accept"],
              [new RegExp(`^${name}x`), "r", "remove"],
            ] as const) {
              await page.getByLabel(label).focus();
              await page.keyboard.press(letter);
              assert.equal(await page.getByLabel(label).inputValue(), value);
            }
            assert.equal(await page.getByLabel(/^later/).inputValue(), "later");
            const count = got.length;
            await page.getByRole("button", { name: "Continue" }).focus();
            await page.keyboard.press("Enter");
            await page.waitForURL(`${programUrl}?**`);
            assert.deepEqual([got.length - count, got.at(-1)?.has("code")], [1, true]);
            const left = await kit.store.read((tx) => tx.table(roleBindingKind).findByIdentity(uid));
            assert.deepEqual(
              new Map(left.map((row) => [row.uid, row.pending])),
              new Map([[offers[0], false] as const, [offers[1], true] as const].sort()),
            );
          } finally {
            kit.provider.account = alice;
          }
        }));

      test(`what cannot be done, ${name}`, () =>
        inBrowser(async (page, look) => {
          await page.goto(oauth({ response_type: "code", redirect_uri: "http://evil.example/", client_id: "x" }));
          await look("This cannot be done");
          await page.goto(`${kit.url}/oauth/callback?state=unknown&code=x`);
          await look("This login is over");
        }));
    }

    test("a login that another provider's is mixed into leads nowhere", async () => {
      const attacker = await startAttacker();
      const attacked = await startLogin(undefined, { stripIss, trustedIssuers: [attacker.issuer] });
      const context = await browser.newContext();
      try {
        const mallory = await attacker.join(attacked);
        const page = await context.newPage();
        const lure = codeRequest(newPkce().challenge, { redirect_uri: programUrl });
        await page.goto(`${attacked.url}/oauth?${new URLSearchParams({ ...lure, connection: "test" })}`);
        await page.getByRole("button", { name: "Continue" }).click();
        await page.waitForURL(`${programUrl}?**`);
        assert.ok(got.at(-1)?.get("code"), "the control: the victim is signed in at the honest provider");
        await page.goto(`${attacked.url}/oauth?${new URLSearchParams({ ...lure, idp_id: mallory })}`);
        assert.equal(got.at(-1)?.get("error"), "access_denied");
        assert.deepEqual(attacker.stolen, []);
        assert.equal((await attacker.redeem(attacked)).accessToken, undefined);
      } finally {
        await context.close();
        await attacked.stop();
        await attacker.stop();
      }
    });
  });
}

test("over TLS the cookie is bound to the host, and comes back from the provider", async () => {
  const secure = await startLogin(undefined, { tls: true });
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  try {
    const page = await context.newPage();
    const { challenge } = newPkce();
    const query = new URLSearchParams(codeRequest(challenge, { redirect_uri: programUrl, state: "over TLS" }));
    await page.goto(`${secure.url}/oauth?${query}`);
    await page.getByRole("button", { name: "Continue" }).click();
    await page.waitForURL(`${programUrl}?**`);
    assert.equal(got.at(-1)?.get("state"), "over TLS");
    assert.ok(got.at(-1)?.get("code"));
    // A form on a page by https may lead to a program on the same machine, by whatever address it listens at.
    for (const url of [
      programUrl,
      programUrl.replace("127.0.0.1", "localhost"),
      `http://[::1]:${portOf(program6)}/callback`,
    ]) {
      const count = got.length;
      await page.goto(`${secure.url}/oauth?${new URLSearchParams({ redirect: url })}`);
      await page.getByRole("button", { name: "Continue" }).click();
      await page.waitForURL(`${url}?**`);
      assert.equal(got.length, count + 1);
      assert.ok(got.at(-1)?.get("token"), url);
    }
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

test("a page of another site with 310 images, frames and scripts of logins starts none", async () => {
  const flooded = await startLogin();
  const request = () => `${flooded.url}/oauth?${new URLSearchParams(codeRequest(newPkce().challenge))}`;
  const sources = Array.from({ length: 310 }, request).map((url) => url.replaceAll("&", "&amp;"));
  const evil = createServer((_req, res) => {
    const tags = sources.map((url, i) => {
      if (i % 100 === 1) return `<iframe src="${url}"></iframe>`;
      return i % 100 === 2 ? `<script src="${url}"></script>` : `<img src="${url}">`;
    });
    res.setHeader("content-type", "text/html").end(`<title>evil</title>${tags.join("")}`);
  });
  await new Promise<void>((resolve) => evil.listen(0, "127.0.0.1", resolve));
  const context = await browser.newContext();
  const unfinished = () =>
    flooded.store.read((tx) => tx.tickets.findExcess("authorization", "address 127.0.0.1", 0, Date.now()));
  try {
    const page = await context.newPage();
    let sent = 0;
    page.on("request", (one) => {
      if (one.url().startsWith(flooded.url)) sent++;
    });
    await page.goto(`http://localhost:${portOf(evil)}/`, { waitUntil: "load" });
    assert.equal(sent, 310);
    assert.deepEqual(await unfinished(), []);
    await page.goto(
      request().replace(encodeURIComponent("http://127.0.0.1:9/callback"), encodeURIComponent(programUrl)),
    );
    await page.getByRole("button", { name: "Continue" }).click();
    await page.waitForURL(`${programUrl}?**`);
    assert.ok(got.at(-1)?.get("code"), "the control: the same browser signs in");
  } finally {
    await context.close();
    evil.closeAllConnections();
    evil.close();
    await flooded.stop();
  }
});

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

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
