// A service with its console and a real login provider, and people who use it in a real browser.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { AxeResults } from "axe-core";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { formatSecretContext } from "../../../src/iam/identity-providers/identity-provider.js";
import { type BootstrapResult, bootstrap } from "../../../src/iam/operator/bootstrap.js";
import { builtinRoleUid, personUid, randomIds } from "../../../src/kernel/ids.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import { identityProviderKind } from "../../../src/store/iam/identity-providers.js";
import { newDataDir } from "../../support/data-dir.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { type OidcAccount, type OidcProvider, startOidcProvider } from "../../support/oidc-provider.js";
import { PROJECT } from "../../support/project.js";

const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
// Names of hosts lead nowhere; other ports of this machine do.
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** How long a test waits for something to be shown, in milliseconds. */
const PATIENCE_MS = Number(process.env.PATIENCE_MS ?? 60_000);

export const ada: OidcAccount = {
  subject: "ada",
  claims: { email: "ada@acme.example", email_verified: true, name: "Ada Lovelace" },
};
export const bob: OidcAccount = {
  subject: "bob",
  claims: { email: "bob@acme.example", email_verified: true, name: "Bob" },
};

/** A browser of one person. */
export interface Person {
  readonly context: BrowserContext;
  readonly page: Page;
  /** What their pages complained about: errors, and all that the console of the browser says but failed requests. */
  readonly complaints: string[];
}

export interface ConsoleWorld {
  readonly url: string;
  readonly harness: Harness;
  readonly provider: OidcProvider;
  readonly browser: Browser;
  /** Opens a browser for somebody new. */
  person(options?: BrowserContextOptions): Promise<Person>;
  /** Signs in as an account of the provider, at a path of the console. */
  signIn(person: Person, account: OidcAccount, path?: string): Promise<void>;
  /** Makes an organisation with an owner who signs in as an account. */
  organisation(name: string, owner: OidcAccount): Promise<BootstrapResult>;
  /** Stops the service and starts it again, on the same data and address. */
  restart(): Promise<void>;
  /** Makes a verified organisation with an identity provider of its own, at the same OpenID Provider. */
  ownProvider(name: string): Promise<void>;
  /** The uid of an account that signs in with the login provider of the service. */
  uidOf(account: OidcAccount): string;
  stop(): Promise<void>;
}

/** Starts one; `settings` are flags of `arbor serve`. */
export async function startConsoleWorld(
  settings: Readonly<Record<string, string | boolean>> = {},
): Promise<ConsoleWorld> {
  if (!existsSync(BROWSER))
    throw new Error(`no browser at ${BROWSER}: apt-get install chromium, or name one in CHROMIUM`);
  execFileSync(process.execPath, ["scripts/console.mjs"], { cwd: PROJECT, stdio: "inherit" });
  const provider = await startOidcProvider();
  const data = newDataDir();
  const { issuer, clientId, clientSecret = "" } = provider;
  const clientSecretFile = join(data, "client.secret");
  writeFileSync(clientSecretFile, clientSecret, { mode: 0o600 });
  const loginProviders = join(data, "login-providers.json");
  writeFileSync(
    loginProviders,
    JSON.stringify([{ name: "test", title: "Test Login", issuer, clientId, clientSecretFile }]),
  );
  const flags = { data, loginProviders, trustedIssuers: issuer, registration: "open", ...settings };
  let harness = await startHarness(flags);
  const { url } = harness;
  provider.allowRedirect(`${url}/oauth/callback`);
  const browser = await chromium.launch({ executablePath: BROWSER, args: FLAGS });

  return {
    url,
    get harness() {
      return harness;
    },
    provider,
    browser,
    async person(options = {}) {
      const context = await browser.newContext({ ...options, baseURL: url });
      context.setDefaultTimeout(PATIENCE_MS);
      const complaints: string[] = [];
      context.on("page", (page) => watch(page, complaints));
      const page = await context.newPage();
      return { context, page, complaints };
    },
    async signIn({ page }, who, path = "/console/") {
      provider.account = who;
      await page.goto(path);
      await page.getByRole("button", { name: "Sign in", exact: true }).click();
      // Whoever is new is asked whether to register.
      const account = page.getByRole("link", { name: "Your account" });
      const next = page.getByRole("button", { name: "Continue", exact: true });
      await account.or(next).waitFor();
      if (await next.isVisible()) await next.click();
      await account.waitFor();
    },
    organisation: (org, owner) =>
      harness.app.installation.store.write((tx) =>
        bootstrap(tx, { org, owner: { issuer, subject: owner.subject } }, randomIds, Date.now()),
      ),
    async restart() {
      await harness.stop();
      harness = await startHarness({ ...flags, listen: new URL(url).host });
    },
    async ownProvider(name) {
      const { store, masterKey } = harness.app.installation;
      await store.write(async (tx) => {
        const { group } = await bootstrap(tx, { org: name }, randomIds, Date.now());
        await tx.table(groupKind).update(group, { verified: true }, Date.now());
        const uid = randomIds.newUid(group);
        provider.allowRedirect(`${url}/oauth/callback/${uid}`);
        const oidc = { issuer, clientId, additionalScopes: [], groupsClaim: "" };
        await tx.table(identityProviderKind).insert({
          ...{ uid, groupUid: group, name: "staff", description: "", lacksDefaultRole: false, oidc },
          defaultRole: builtinRoleUid("viewer"),
          sealedSecret: masterKey.seal(Buffer.from(clientSecret), formatSecretContext(uid)),
          scim: { enabled: false, tokenHash: "", previousHash: "", revoked: false, etag: "" },
          ...{ createTimeMs: Date.now(), updateTimeMs: Date.now() },
        });
      });
    },
    uidOf: ({ subject }) => personUid(issuer, subject),
    async stop() {
      await browser.close();
      await harness.stop();
      await provider.stop();
    },
  };
}

// A status is no complaint: what went wrong has one.
function watch(page: Page, complaints: string[]): void {
  page.on("console", (message) => {
    if (!message.text().startsWith("Failed to load resource")) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.stack ?? error.message));
}

/**
 * Runs axe in a page, by the protocol of the browser: the policy of the page stays as it is.
 *
 * @returns what it finds, with the elements
 */
export async function findFaults(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: AXE });
  const expression = 'axe.run(document, { resultTypes: ["violations"] }).then((all) => JSON.stringify(all))';
  const { result } = await session.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
  await session.detach();
  const { violations } = JSON.parse(String(result.value)) as AxeResults;
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(" ")).join(", ")}`);
}

/** By how much a page is wider than its screen, in CSS pixels. */
export async function overflowOf(page: Page): Promise<number> {
  return (await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")) as number;
}

/** Opens a part of the group that is shown. */
export async function openPart(page: Page, title: string): Promise<void> {
  await page.getByRole("navigation", { name: "Parts of the group" }).getByRole("link", { name: title }).click();
}

/** Calls a method of the API from outside the browser, with JSON over Connect. */
export async function call(url: string, token: string, method: string, body: object): Promise<Response> {
  return fetch(`${url}/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  });
}
