// docs/first-hour.md, as it stands: its commands in a shell, a service as a process, a real OpenID Provider, people in a real
// browser, and a stock registry. Needs chromium, jq, skopeo and docker-registry. STORY names a file for the transcript,
// WORKERS is how many workers serve.
import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { type Ended, type Running, run } from "../cli/remote/auth/process.js";
import { REGISTRY, registryMissing } from "../registry-e2e/registry.js";
import { freePort } from "../support/free-port.js";
import { type LocalIssuer, startLocalIssuer } from "../support/local-issuer.js";
import { type OidcAccount, type OidcProvider, startOidcProvider } from "../support/oidc-provider.js";
import { PROJECT, scriptArguments } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";

const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
const PAGE = readFileSync(join(PROJECT, "docs/first-hour.md"), "utf8");
const ARBOR = [process.execPath, ...scriptArguments("src/main.ts")].map((part) => `'${part}'`).join(" ");

const ada: OidcAccount = {
  subject: "ada",
  claims: { email: "Ada@acme.example", email_verified: true, name: "Ada Lovelace" },
};
const bob: OidcAccount = { subject: "bob", claims: { email: "bob@acme.example", email_verified: true, name: "Bob" } };
const eve: OidcAccount = { subject: "eve", claims: { email: "ada@acme.example", email_verified: false, name: "Eve" } };

let directory: string;
let api: string;
let listen: string;
let provider: OidcProvider;
let platform: LocalIssuer;
let browser: Browser;
let server: Running;
let registry: Running;
let bootstrapped: Ended;
let shortToken: { readonly text: string; readonly atMs: number };

before(async () => {
  assert.ok(existsSync(BROWSER), `no browser at ${BROWSER}: apt-get install chromium, or name one in CHROMIUM`);
  assert.equal(registryMissing, false);
  directory = join(tempDir(), "first-hour");
  mkdirSync(directory);
  listen = `127.0.0.1:${await freePort()}`;
  api = `http://${listen}`;
  provider = await startOidcProvider({ redirectUris: [`${api}/oauth/callback`] });
  platform = await startLocalIssuer();
  const { issuer, clientId } = provider;
  const clientSecretFile = join(directory, "work.secret");
  writeFileSync(clientSecretFile, `${provider.clientSecret}\n`, { mode: 0o600 });
  const providers = [{ name: "work", title: "Work account", issuer, clientId, clientSecretFile }];
  writeFileSync(join(directory, "login-providers.json"), JSON.stringify(providers));
  const settings = block("settings").replace("127.0.0.1:8080", listen);
  await succeed(shell("operator", settings, { HOME: join(directory, "..") }));
  browser = await chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox", "--disable-gpu"] });
});

after(async () => {
  await browser?.close();
  registry?.child.kill("SIGTERM");
  await registry?.ended;
  server?.child.kill("SIGTERM");
  await server?.ended;
  await platform?.stop();
  await provider?.stop();
});

/** A block of the page, by the word after `sh`. */
function block(name: string): string {
  const [, commands = ""] = new RegExp(`\`\`\`sh ${name}\\n(.*?)\`\`\``, "s").exec(PAGE) ?? [];
  assert.notEqual(commands, "", `no block ${name}`);
  return commands;
}

/** Runs commands as somebody with a home of their own. */
function shell(who: string, commands: string, more: Readonly<Record<string, string>> = {}): Running {
  const functions = [`arbor() { ${ARBOR} "$@"; }`, 'skopeo() { command skopeo --insecure-policy "$@"; }'];
  const settings = "if [ -e settings.sh ]; then . ./settings.sh; fi";
  const exports = Object.entries(more).map(([name, value]) => `export ${name}='${value}'`);
  const script = ["set -euo pipefail", `cd '${directory}'`, settings, ...exports, ...functions, commands].join("\n");
  const running = run("bash", ["-c", script], {
    ARBOR_TRUSTED_ISSUERS: `${provider.issuer},${platform.issuer}`,
    ARBOR_CREDENTIALS: join(directory, `${who}.json`),
    ARBOR_LOG_LEVEL: "error",
    ARBOR_WORKERS: process.env.WORKERS ?? "1",
    DISPLAY: "",
  });
  void running.ended.then(({ code, stdout, stderr }) => {
    const told = `--- ${who}\n${commands.trimEnd()}\n${stdout}${stderr}(exit ${code})\n\n`;
    if (process.env.STORY) appendFileSync(process.env.STORY, told.replace(/eyJ[\w.-]+/g, "TOKEN"));
  });
  return running;
}

async function succeed(running: Running): Promise<Ended> {
  const ended = await running.ended;
  assert.equal(ended.code, 0, ended.stderr + ended.stdout);
  return ended;
}

async function startServer(): Promise<void> {
  // So that a signal reaches the service and not the shell.
  server = shell("operator", block("serve").replace("arbor", `exec ${ARBOR}`));
  await waitUntil(async () => (await fetch(`${api}/healthz`).catch(() => undefined))?.status === 200);
}

/** Opens the page that a login prints, as the person who has the account at the provider. */
async function open(login: Running, account: OidcAccount): Promise<{ page: Page; context: BrowserContext }> {
  provider.account = account;
  const [url] = await login.waitForOutput(/http:\S+\/(?:oauth|login\/)\S*/);
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(url);
  return { page, context };
}

describe("docs/first-hour.md", () => {
  it("bootstraps, and says what to do next", async () => {
    bootstrapped = await succeed(shell("operator", block("bootstrap")));
    assert.match(bootstrapped.stderr, /ada@acme\.example becomes an owner, within 7 days/);
    const [, identity = ""] = /^identity: (\S+)$/m.exec(bootstrapped.stdout) ?? [];
    const token = await succeed(shell("operator", `arbor admin token --identity ${identity} --ttl 1s`));
    shortToken = { text: token.stdout.trim(), atMs: Date.now() };
    await startServer();
  });

  it("lets nobody in whose address is not confirmed", async () => {
    const login = shell("eve", "arbor auth login");
    const { page, context } = await open(login, eve);
    await page.waitForLoadState();
    const { code, stderr } = await login.ended;
    assert.equal(code, 5, stderr);
    assert.match(stderr, /account not found: you need an invite/);
    await context.close();
  });

  it("logs the owner in, with consent", async () => {
    const login = shell("ada", block("login"));
    const { page, context } = await open(login, ada);
    await page.getByRole("heading", { level: 1, name: "Accept this invite?" }).waitFor();
    const text = await page.getByRole("main").innerText();
    assert.match(text, /Ada Lovelace \(Ada@acme\.example\)/);
    assert.match(text, /Invited by\s+who runs this service with arbor bootstrap, on its host/);
    assert.match(text, /acme\.example[\s\S]*owner/);
    await page.getByRole("button", { name: "Accept" }).click();
    await page.getByRole("heading", { level: 1, name: "You are logged in" }).waitFor();
    assert.match((await succeed(login)).stdout, /acme\.example/);
    await context.close();
    const { stdout } = await succeed(shell("operator", "arbor admin identities list --org acme.example"));
    assert.match(stdout, /Ada Lovelace +Ada@acme\.example +person +owner/);
  });

  it("invites somebody, once", async () => {
    // The workload needs its group, also where nobody is invited.
    await succeed(shell("ada", block("group")));
    await succeed(shell("ada", block("invite")));
    const login = shell("bob", block("accept"));
    const { page, context } = await open(login, bob);
    await page.getByRole("heading", { level: 1, name: "Accept this invite?" }).waitFor();
    assert.match(await page.getByRole("main").innerText(), /Ada Lovelace[\s\S]*acme\.example[\s\S]*editor/);
    await page.getByRole("button", { name: "Accept" }).click();
    await page.getByRole("heading", { level: 1, name: "You are logged in" }).waitFor();
    await succeed(login);
    await context.close();
    const again = shell("eve", "arbor auth login --invite-file invite");
    const late = await open(again, { ...eve, subject: "eve again" });
    const { code, stderr } = await again.ended;
    assert.notEqual(code, 0);
    assert.match(stderr, /this invite was used already/);
    await late.context.close();
  });

  it("lets a workload in with the token of its platform, which pushes an image", async () => {
    const claims = { ISSUER: platform.issuer, SUBJECT: "repo:acme/app" };
    writeFileSync(join(directory, "platform.token"), platform.token({ sub: claims.SUBJECT, aud: api }), {
      mode: 0o600,
    });
    const told = await succeed(shell("ada", block("claims")));
    for (const claim of [claims.ISSUER, claims.SUBJECT, api])
      assert.ok(told.stdout.includes(`'${claim}'`), told.stdout);
    await succeed(shell("ada", block("workload"), claims));
    const { stdout } = await succeed(shell("deployer", block("exchange")));
    const deployer = readFileSync(join(directory, "deployer"), "utf8").trim();
    assert.ok(stdout.includes(deployer), stdout);
  });

  it("sets a registry up, to which the workload pushes", async () => {
    const host = `127.0.0.1:${await freePort()}`;
    const at = (name: string) => block(name).replaceAll("127.0.0.1:5000", host);
    await succeed(shell("operator", at("registry")));
    server.child.kill("SIGTERM");
    await server.ended;
    await startServer();
    registry = shell("operator", at("registry-serve").replace("docker-registry", `exec ${REGISTRY}`));
    await waitUntil(async () => (await fetch(`http://${host}/v2/`).catch(() => undefined))?.status === 401);
    await succeed(shell("ada", at("push")));
    await waitUntil(async () => /^1 .*sha256:/m.test((await shell("ada", block("pushed")).ended).stdout));

    const byPerson = at("push").replace("$DEPLOYER:$(cat platform.token)", "me:$(arbor auth token)");
    await succeed(shell("ada", byPerson));
    const refused: [what: string, who: string, commands: string, says: RegExp][] = [
      ["an editor", "bob", byPerson, /requested access to the resource is denied/],
      ["a name in the path", "ada", at("push").replace(/\$\{DEPLOYER\S+app/, "acme.example/platform/app"), /is denied/],
      [
        "a name as the user",
        "ada",
        at("push").replace('"$DEPLOYER:', '"acme.example/platform/deployer:'),
        /not valid here/,
      ],
    ];
    for (const [what, who, commands, says] of refused) {
      const { code, stderr } = await shell(who, commands).ended;
      assert.notEqual(code, 0, what);
      assert.match(stderr, says, what);
    }
    writeFileSync(join(directory, "platform.token"), platform.token({ sub: "repo:evil/app", aud: api }));
    const { code, stderr } = await shell("ada", at("push")).ended;
    assert.notEqual(code, 0, "another subject");
    assert.match(stderr, /the user name or the password is not valid here: .*the uid of its identity as the user name/);
  });
});

describe("a workload without a platform", () => {
  it("is let in with a key of its own, beside the login of the person", async () => {
    const { token: ARBOR_TOKEN } = JSON.parse(readFileSync(join(directory, "owner.json"), "utf8")) as { token: string };
    assert.notEqual(ARBOR_TOKEN, "");
    assert.ok(!bootstrapped.stdout.includes(ARBOR_TOKEN));
    const { stdout } = await succeed(shell("ada", block("trial"), { ARBOR_TOKEN }));
    assert.ok(stdout.includes(readFileSync(join(directory, "trial"), "utf8").trim()), stdout);
    assert.match(stdout, /viewer/);
    assert.match((await succeed(shell("ada", "arbor whoami"))).stdout, /Ada Lovelace/);
  });

  it("is told what is wrong with its token, which is not printed", async () => {
    const claims = { iss: platform.issuer, sub: "repo:acme/app" };
    const cases: [what: string, token: string, says: RegExp][] = [
      ["garbage", "garbage", /platform\.token does not hold a JWT/],
      ["nothing", "", /platform\.token is empty/],
      ["an expired one", platform.token({ ...claims, aud: api, exp: 1_700_000_000 }), /expired at 2023-11-14T22:13:20/],
      [
        "one for others",
        platform.token({ ...claims, aud: "https://other.example" }),
        /audience "https:\/\/other\.example"; expected is http/,
      ],
      ["another subject", platform.token({ sub: "repo:evil/app", aud: api }), /with the subject "repo:evil\/app"/],
    ];
    for (const [what, token, says] of cases) {
      writeFileSync(join(directory, "platform.token"), token, { mode: 0o600 });
      const { code, stdout, stderr } = await shell("stranger", block("exchange")).ended;
      assert.ok(code === 3 || code === 4, `${what}: ${code} ${stderr}`);
      assert.match(stderr, says, what);
      assert.doesNotMatch(stdout + stderr, /eyJ/, what);
    }
  });
});

describe("when something is lost", () => {
  it("the owner's seven days: the operator invites again", async () => {
    const [, OWNER = ""] = /^identity: (\S+)$/m.exec(bootstrapped.stdout) ?? [];
    await succeed(shell("operator", block("owner"), { OWNER }));
    const login = shell("heir", "arbor auth login --invite-file owner-invite");
    const { page, context } = await open(login, { ...ada, subject: "ada at work" });
    await page.getByRole("heading", { level: 1, name: "Accept this invite?" }).waitFor();
    await page.getByRole("button", { name: "Accept" }).click();
    const { stderr } = await succeed(login);
    assert.ok(!stderr.includes(readFileSync(join(directory, "owner-invite"), "utf8").trim()), "the code is a secret");
    await context.close();
    assert.match((await succeed(shell("heir", "arbor whoami"))).stdout, /owner/);
  });

  it("the login: the first line is that of the table", async () => {
    const { code, stderr } = await shell("nobody", "arbor iam groups list").ended;
    assert.equal(code, 3, stderr);
    assert.match(stderr, new RegExp(`^arbor: not logged in to ${api}\\n {2}run: arbor auth login`));
    assert.ok(PAGE.includes("| “not logged in to …” (exit code 3) |"));
  });

  it("names and rights: the texts are those of the table", async () => {
    const twin = "--parent acme.example/platform --name trial --issuer https://twin.example --subject twin";
    await succeed(shell("ada", `arbor iam identities create ${twin}`));
    const cases: [who: string, commands: string, code: number, says: RegExp][] = [
      [
        "ada",
        "arbor iam groups get acme.example/none",
        5,
        /no group is named acme\.example\/none where you have roles; to list: /,
      ],
      ["ada", "arbor iam identities get acme.example/none", 5, /no identity is named /],
      [
        "ada",
        "arbor iam identities get acme.example/platform/trial",
        2,
        /trial is the name of several; give a uid:\n {2}identity /,
      ],
      [
        "deployer",
        "arbor iam groups create --parent $(cat deployer | cut -d/ -f1) --name mine",
        4,
        /needs the capability groups\.create; arbor whoami/,
      ],
      ["ada", "arbor auth login --invite-file none", 2, /--invite-file: cannot read \/\S+\/none: no such file/],
    ];
    for (const [who, commands, expected, says] of cases) {
      const { code, stderr } = await shell(who, commands).ended;
      assert.equal(code, expected, stderr);
      assert.match(stderr, says);
    }
    const rows = [
      "no group is named …",
      "is the name of several",
      "needs the capability …",
      "cannot read …: no such file",
      "requested access to the resource is denied",
      "the user name or the password is not valid here",
    ];
    for (const row of rows) assert.ok(PAGE.includes(row), row);
  });

  it("the output of bootstrap: again, it names the command that prints a token", async () => {
    const again = await shell("operator", block("bootstrap")).ended;
    assert.equal(again.code, 6, again.stderr);
    assert.match(
      again.stderr,
      /acme\.example exists already: nothing was changed, and the lines above say how to go on\n$/,
    );
    const [, command = ""] = /its token: (arbor admin token \S+ \S+)/.exec(again.stderr) ?? [];
    const token = (await succeed(shell("operator", command))).stdout.trim();
    const groups = await succeed(shell("operator", "arbor iam groups list", { ARBOR_TOKEN: token }));
    assert.match(groups.stdout, /acme\.example/);
  });

  it("the token has expired", async () => {
    // A token is valid for 30 s longer than it says.
    await sleep(Math.max(0, shortToken.atMs + 32_500 - Date.now()));
    const { code, stderr } = await shell("ada", "arbor iam groups list", { ARBOR_TOKEN: shortToken.text }).ended;
    assert.equal(code, 3, stderr);
    assert.match(stderr, /the bearer token has expired/);
  });

  it("the certificate is not trusted, and is with its authority", async () => {
    const port = await freePort();
    const pem = (name: string) => join(PROJECT, `test/support/tls/${name}.pem`);
    const secure = `https://localhost:${port}`;
    const flags = `--listen 127.0.0.1:${port} --tls-cert ${pem("cert")} --tls-key tls.key --base-url ${secure}`;
    writeFileSync(join(directory, "tls.key"), readFileSync(pem("key")), { mode: 0o600 });
    const tls = shell("operator", `exec ${ARBOR} serve ${flags}`, {
      ARBOR_DATA: join(directory, "tls"),
      ARBOR_LISTEN: "",
    });
    try {
      const list = (more: Readonly<Record<string, string>>) =>
        shell("ada", "arbor iam groups list", { ARBOR_API: secure, ARBOR_TOKEN: shortToken.text, ...more });
      let refused: Ended | undefined;
      await waitUntil(async () => {
        refused = await list({}).ended;
        return /certificate/i.test(refused.stderr);
      });
      assert.notEqual(refused?.code, 0);
      const trusted = await list({ NODE_EXTRA_CA_CERTS: pem("cert") }).ended;
      assert.equal(trusted.code, 3, trusted.stderr);
    } finally {
      tls.child.kill("SIGTERM");
      await tls.ended;
    }
  });

  it("the server is down", async () => {
    server.child.kill("SIGTERM");
    await server.ended;
    const { code, stderr } = await shell("ada", "arbor iam groups list").ended;
    assert.equal(code, 8, stderr);
    await startServer();
    await succeed(shell("ada", "arbor iam groups list"));
  });
});
