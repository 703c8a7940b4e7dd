import assert from "node:assert/strict";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { beforeEach, describe, it, type TestContext } from "node:test";
import { Code } from "@connectrpc/connect";
import { logInWithBrowser } from "../../../../src/cli/remote/auth/browser-login.js";
import { readCredentials } from "../../../../src/cli/remote/auth/credentials-file.js";
import { type Finished, type RunningCommand, runCommand, startCommand } from "../../../support/command.js";
import { startHarness } from "../../../support/harness.js";
import { tempDir } from "../../../support/temp-dir.js";
import { waitUntil } from "../../../support/wait-until.js";
import { jwt, type LoginService, startLoginService } from "./login-service.js";
import { auth, commandErrorOf } from "./process.js";

let env: Record<string, string>;
beforeEach(() => {
  env = { ARBOR_CREDENTIALS: join(tempDir(), "credentials.json") };
});

const readLogin = async (api: string) => (await readCredentials(env.ARBOR_CREDENTIALS ?? "")).logins.get(api);

/** A login that waits for the browser, and the page that the person is asked to open. */
async function startLogin(
  test: TestContext,
  ...flags: string[]
): Promise<RunningCommand & { service: LoginService; page: URL }> {
  const service = await startLoginService(test);
  const running = startCommand(["auth", "login", "--api", service.url, "--no-browser", ...flags], env);
  const [url = ""] = await running.waitForOutput(/http:\S+/);
  const page = new URL(url);
  // Ends a login that a failed test has left.
  test.after(() => visit(rejection(page)).catch(() => {}));
  return { ...running, service, page };
}

/** Where the service sends the browser to when the person has logged in. */
async function callbackOf(page: URL): Promise<URL> {
  const answer = await fetch(page, { redirect: "manual" });
  assert.equal(answer.status, 302);
  return new URL(answer.headers.get("location") ?? "");
}

/** What the loopback server says; `fetch` sends no other Host than that of the address. */
function visit(url: URL, host = url.host, method = "GET"): Promise<{ status: number; body: string; headers: object }> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: { host } }, async (response) => {
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: await text(response) });
    });
    sent.on("error", reject).end();
  });
}

/** The address to which the service sends the browser of a person who has no access. */
function rejection(page: URL): URL {
  const { searchParams } = page;
  const back = new URL(searchParams.get("redirect_uri") ?? "");
  back.search = String(new URLSearchParams({ error: "access_denied", state: searchParams.get("state") ?? "" }));
  return back;
}

const without = (url: URL, name: string) => changeQuery(url, (query) => query.delete(name));
function changeQuery(url: URL, change: (query: URLSearchParams) => void): URL {
  const copy = new URL(url);
  change(copy.searchParams);
  return copy;
}

describe("arbor auth login", () => {
  it("sends the browser to the service and takes what it brings back", async (test) => {
    const flags = [
      "--identity-provider",
      "0123456789abcdef0123456789abcdef01234567/45",
      "--connection",
      "corp",
      "--scope",
      "aa/bb",
      "--scope",
      "cc",
    ];
    const { page, service, ended } = await startLogin(test, ...flags, "--cap", "groups.list");
    assert.equal(page.origin + page.pathname, `${service.url}/oauth`);
    const { redirect_uri = "", code_challenge = "", state = "", ...rest } = Object.fromEntries(page.searchParams);
    assert.match(redirect_uri, /^http:\/\/127\.0\.0\.1:\d+\/callback$/);
    assert.match(code_challenge, /^[\w-]{43}$/);
    assert.match(state, /^[\w-]{43}$/);
    assert.deepEqual(rest, {
      response_type: "code",
      client_id: "arbor-cli",
      code_challenge_method: "S256",
      audience: service.url,
      create_refresh_token: "true",
      idp_id: "0123456789abcdef0123456789abcdef01234567/45",
      connection: "corp",
      scope: "cc",
      cap: "groups.list",
    });
    assert.deepEqual(page.searchParams.getAll("scope"), ["aa/bb", "cc"]);

    const { status, body, headers } = await visit(await callbackOf(page));
    assert.equal(status, 200);
    assert.match(
      body,
      /<html lang="en">[\s\S]*<title>You are logged in - Arbor<\/title>[\s\S]*<main>\s*<h1>You are logged in/,
    );
    const { "content-security-policy": policy, ...other } = headers as Record<string, string>;
    assert.match(
      policy ?? "",
      /^default-src 'none'; style-src 'sha256-[\w+/=]{44}'; base-uri 'none'; form-action 'none'/,
    );
    assert.equal(other["cache-control"], "no-store");
    assert.equal(other["referrer-policy"], "no-referrer");
    assert.equal(other["x-content-type-options"], "nosniff");

    const { code, stdout, stderr } = await ended;
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^logged in at http:\S+ as Ada \\u001b\[31mLovelace \(person\), with a token until 20\S+Z\n$/);
    const login = await readLogin(service.url);
    assert.ok(login?.refreshToken);
    const secrets = [login.token, login.refreshToken];
    for (const secret of secrets) assert.ok(!(stdout + stderr).includes(secret), "nothing secret is shown");
    assert.deepEqual(
      service.requests.map(({ route }) => route),
      ["GET /.well-known/openid-configuration", "GET /oauth", "POST /oauth/token", "GET /auth/v1/ok"],
    );
  });

  it("says how long it waits, and that ARBOR_TOKEN takes precedence over the login", async (test) => {
    const note =
      "arbor: ARBOR_TOKEN is set, and commands use it instead of the login; to use the login: unset ARBOR_TOKEN\n";
    for (const ARBOR_TOKEN of ["a.b.c", ""]) {
      env.ARBOR_TOKEN = ARBOR_TOKEN;
      const { page, ended } = await startLogin(test);
      await visit(await callbackOf(page));
      const { code, stderr } = await ended;
      assert.equal(code, 0, stderr);
      const waiting = `${page}\n\nWaiting for up to 10 minutes; Ctrl-C ends it.\n`;
      assert.ok(stderr.endsWith(`  ${waiting}${ARBOR_TOKEN === "" ? "" : note}`), stderr);
    }
  });

  it("shows no page of a service that cannot be reached, or that nobody can log in at", async (test) => {
    const service = await startLoginService(test);
    service.connections = [];
    for (const flag of ["--no-browser", "--headless"]) {
      const none = await runCommand(["auth", "login", flag, "--api", service.url], env);
      assert.deepEqual([none.code, none.stdout], [6, ""]);
      assert.match(none.stderr, /^arbor: http:\S+ has no login provider, which a login with a browser needs\n/);
      assert.match(
        none.stderr,
        /\n {2}its operator .* ARBOR_LOGIN_PROVIDERS: http:\S+\/docs\/first-hour\.html#2-a-login-provider\n {2}people .*--identity-provider /,
      );
    }
    // Another one, to which this process has no connection that it would use again.
    const stopped = await startLoginService(test);
    await stopped.stop();
    for (const flag of ["--no-browser", "--headless"]) {
      const away = await runCommand(["auth", "login", flag, "--api", stopped.url], env);
      assert.equal(away.code, 8);
      assert.match(away.stderr, /^arbor: \S+ cannot be reached: nothing listens there \(ECONNREFUSED\)\n {2}is the/);
    }
  });

  for (const [what, connections, ...flags] of [
    ["an organisation's provider", [], "--identity-provider", "acme.example"],
    ["a service that publishes no names", undefined],
  ] as [what: string, connections: string[] | undefined, ...flags: string[]][]) {
    it(`goes on with ${what}`, async (test) => {
      const service = await startLoginService(test);
      service.connections = connections;
      const { waitForOutput, ended } = startCommand(
        ["auth", "login", "--api", service.url, "--no-browser", ...flags],
        env,
      );
      const [url = ""] = await waitForOutput(/http:\S+/);
      await visit(rejection(new URL(url)));
      assert.equal((await ended).code, 4);
    });
  }

  it("hears only what knows the state, at its own address, once", async (test) => {
    const { page, service, ended } = await startLogin(test);
    const back = await callbackOf(page);
    const wrong = (value: string) => changeQuery(back, (query) => query.set("state", value));
    const twice = changeQuery(back, (query) => query.append("state", query.get("state") ?? ""));
    const error = new URL(`?error=access_denied`, back);
    const refused: [what: string, url: URL, status: number, host?: string, method?: string][] = [
      ["another path", new URL("/favicon.ico", back), 404],
      ["the path and more", new URL(`/callback/${back.search}`, back), 404],
      ["a name that leads here", back, 404, `evil.example.com:${back.port}`],
      ["localhost, which was not asked for", back, 404, `localhost:${back.port}`],
      ["POST", back, 404, back.host, "POST"],
      ["no state", without(back, "state"), 400],
      ["an empty state", wrong(""), 400],
      ["another state", wrong("x".repeat(43)), 400],
      ["the state twice", twice, 400],
      ["an error without state", error, 400],
    ];
    for (const [what, url, status, host, method] of refused) {
      const answer = await visit(url, host, method);
      assert.equal(answer.status, status, what);
      assert.doesNotMatch(answer.body, /access_denied|x{43}/, "nothing of the request comes back");
    }
    assert.equal(service.count("POST /oauth/token"), 0);
    const both = await Promise.allSettled([visit(back), visit(back)]);
    const statuses = both.map((result) => (result.status === "fulfilled" ? result.value.status : 404));
    assert.deepEqual(statuses.sort(), [200, 404]);
    assert.equal((await ended).code, 0);
    assert.equal(service.count("POST /oauth/token"), 1);
    await assert.rejects(visit(back), { code: "ECONNREFUSED" });
  });

  const failures: [what: string, query: Record<string, string>, code: Code, says: string][] = [
    ["denied", { error: "access_denied" }, Code.PermissionDenied, "access_denied"],
    ["no account", { error: "account not found", status_code: "404" }, Code.NotFound, "account not found"],
    ["busy", { error: "temporarily_unavailable", error_description: "soon" }, Code.Unavailable, "soon"],
    ["bad", { error: "invalid_scope", status_code: "400" }, Code.InvalidArgument, "invalid_scope"],
    ["long", { error: "x".repeat(2_000), status_code: "401" }, Code.Unauthenticated, "x".repeat(500)],
    ["empty", { status_code: "nonsense" }, Code.Unknown, "the browser came back without a code"],
  ];
  for (const [what, query, expected, says] of failures) {
    it(`says why it failed: ${what}`, async () => {
      let page: ReturnType<typeof visit> | undefined;
      const login = logInWithBrowser(
        "http://127.0.0.1:1",
        {},
        async (url) => {
          const { searchParams } = new URL(url);
          const back = new URL(searchParams.get("redirect_uri") ?? "");
          back.search = String(new URLSearchParams({ ...query, state: searchParams.get("state") ?? "" }));
          page = visit(back);
        },
        60_000,
      );
      const { code, message } = await commandErrorOf(login);
      assert.deepEqual([code, message], [expected, `the login failed: ${says}`]);
      const { status, body } = (await page) ?? assert.fail("no page");
      assert.equal(status, 400);
      assert.match(body, /<h1>The login failed<\/h1>/);
    });
  }

  it("ends when nobody comes, and when the page cannot be shown", async () => {
    let redirectUri = "";
    const show = async (url: string) => {
      redirectUri = new URL(url).searchParams.get("redirect_uri") ?? "";
    };
    const { code, message } = await commandErrorOf(logInWithBrowser("http://127.0.0.1:1", {}, show, 60));
    assert.deepEqual([code, message], [Code.DeadlineExceeded, "the browser did not come back within 0.001 minutes"]);
    await assert.rejects(visit(new URL(redirectUri)), { code: "ECONNREFUSED" });
    const broken = logInWithBrowser("http://127.0.0.1:1", {}, () => Promise.reject(new Error("no terminal")), 60_000);
    await assert.rejects(broken, /^Error: no terminal$/);
  });

  it("escapes what a terminal would act upon", async (test) => {
    const { page, ended } = await startLogin(test);
    const back = new URL(page.searchParams.get("redirect_uri") ?? "");
    const query = { error: "x", error_description: "\u001b[2Jno", status_code: "404" };
    back.search = String(new URLSearchParams({ ...query, state: page.searchParams.get("state") ?? "" }));
    assert.equal((await visit(back)).status, 400);
    const { code, stdout, stderr } = await ended;
    assert.deepEqual([code, stdout], [5, ""]);
    assert.ok(stderr.endsWith("arbor: the login failed: \\u001b[2Jno\n"), stderr);
    assert.equal(existsSync(env.ARBOR_CREDENTIALS ?? ""), false);
  });

  it("does not show the code when the service does not take it", async (test) => {
    const { page, ended } = await startLogin(test);
    const back = changeQuery(await callbackOf(page), (query) => query.set("code", "se-cret"));
    assert.equal((await visit(back)).status, 400);
    const { code, stderr } = await ended;
    assert.equal(code, 3);
    assert.ok(stderr.endsWith("arbor: not good: [secret]\n"), stderr);
  });

  it("opens the browser, and goes on without", { skip: process.platform !== "linux" }, async (test) => {
    const service = await startLoginService(test);
    const opened = join(tempDir(), "opened");
    const browser = join(tempDir(), "browser");
    writeFileSync(browser, `#!/bin/sh\nprintf %s "$1" > '${opened}.new'\nmv '${opened}.new' '${opened}'\n`);
    chmodSync(browser, 0o755);
    // Without a desktop it is this variable that says which browser to open.
    const { child, waitForOutput, ended } = auth(["login", "--api", service.url], {
      ...env,
      BROWSER: browser,
      DISPLAY: "",
    });
    test.after(() => child.kill());
    const [url = ""] = await waitForOutput(/http:\S+/);
    await waitUntil(() => existsSync(opened) || child.exitCode !== null);
    assert.equal(readFileSync(opened, "utf8"), url);
    assert.equal((await visit(await callbackOf(new URL(url)))).status, 200);
    assert.equal((await ended).code, 0);
  });

  it("takes an invite from a file, and shows it neither to a browser as an argument nor on the terminal", async (test) => {
    const service = await startLoginService(test);
    const opened = join(tempDir(), "opened");
    const browser = join(tempDir(), "browser");
    writeFileSync(browser, `#!/bin/sh\n: > '${opened}'\n`);
    chmodSync(browser, 0o755);
    const flags = ["login", "--api", service.url, "--invite-file", "-"];
    const { waitForOutput, ended } = auth(flags, { ...env, BROWSER: browser, DISPLAY: "" }, "inv-ite\n");
    const [url = ""] = await waitForOutput(/http:\S+/);
    const start = new URL(url);
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/login\/[\w-]{43}$/);
    const refused: [what: string, url: URL, host?: string, method?: string][] = [
      ["a guess", new URL(`/login/${"x".repeat(43)}`, start)],
      ["no secret", new URL("/login/", start)],
      ["a name that leads here", start, `evil.example.com:${start.port}`],
      ["POST", start, start.host, "POST"],
    ];
    for (const [what, at, host, method] of refused) {
      const { status, body, headers } = await visit(at, host, method);
      assert.deepEqual([status, (headers as { location?: string }).location], [404, undefined], what);
      assert.doesNotMatch(body, /inv-ite/, what);
    }
    const { status, headers } = await visit(start);
    assert.equal(status, 302);
    const page = new URL((headers as { location?: string }).location ?? "");
    assert.equal(page.origin, service.url);
    assert.equal(page.searchParams.get("invite"), "inv-ite");
    await visit(await callbackOf(page));
    const { code, stdout, stderr } = await ended;
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(stdout + stderr, /inv-ite/);
    assert.equal(existsSync(opened), false);
    await assert.rejects(visit(start), { code: "ECONNREFUSED" });
  });
});

describe("arbor auth login --headless", () => {
  const idToken = jwt({ sub: "upstream" });

  async function logInHeadless(test: TestContext, outcome: string, ...flags: string[]) {
    const service = await startLoginService(test);
    service.headless = { outcome, notYet: 1 };
    const { waitForOutput, ended } = startCommand(["auth", "login", "--headless", "--api", service.url, ...flags], env);
    const [, confirmation, url = ""] = await waitForOutput(/code ([A-Z2-7]{4}-[A-Z2-7]{4}) there:\s+(http:\S+)/);
    return { service, confirmation, page: new URL(url), end: await ended };
  }

  it("says that the address has the code of an invite, which it needs in another place", async (test) => {
    const file = join(tempDir(), "invite");
    writeFileSync(file, "inv-ite\n");
    const warning = /The address has the code of the invite: show it to nobody else/;
    const { page, end } = await logInHeadless(test, idToken, "--invite-file", file);
    assert.equal(page.searchParams.get("invite"), "inv-ite");
    assert.match(end.stderr, warning);
    assert.doesNotMatch((await logInHeadless(test, idToken)).end.stderr, warning, "the control");
  });

  it("asks until the person is done, and exchanges what it can open", async (test) => {
    const { service, page, end } = await logInHeadless(test, idToken, "--connection", "corp", "--cap", "groups.list");
    assert.equal(end.code, 0, end.stderr);
    assert.equal(page.origin + page.pathname, `${service.url}/oauth`);
    assert.deepEqual([...page.searchParams.keys()], ["headless_code", "client_id", "connection"]);
    assert.equal(page.searchParams.get("client_id"), "arbor-cli");
    const code = page.searchParams.get("headless_code");
    const polls = service.requests.filter(({ route }) => route === "GET /sts/headless_sessions");
    assert.equal(polls.length, 2);
    for (const { query, bearer } of polls) assert.deepEqual([query.get("code"), bearer], [code, ""]);
    const exchange = service.requests.at(-2);
    assert.equal(exchange?.route, "GET /sts/exchange");
    assert.equal(exchange.bearer, idToken);
    assert.deepEqual(
      [...exchange.query],
      [
        ["aud", service.url],
        ["cap", "groups.list"],
      ],
    );
    assert.match(end.stdout, /^logged in at /);
    assert.ok((await readLogin(service.url))?.token);
    assert.ok(!(end.stdout + end.stderr).includes(idToken));
  });

  it("names the provider that the ID token is from", async (test) => {
    const outcome = JSON.stringify({ id_token: idToken, identity_provider: "01/23" });
    const { service, end } = await logInHeadless(test, outcome, "--identity-provider", "example.com");
    assert.equal(end.code, 0, end.stderr);
    assert.equal(service.requests.at(-2)?.query.get("identity_provider"), "01/23");
  });
});

describe("arbor auth login --identity", () => {
  async function login(test: TestContext, ...flags: string[]): Promise<{ service: LoginService; end: Finished }> {
    const service = await startLoginService(test);
    const tokenFile = join(tempDir(), "oidc");
    writeFileSync(tokenFile, "oidc-token\n");
    env.tokenFile = tokenFile;
    const all = [
      "auth",
      "login",
      "--identity",
      "0123456789abcdef0123456789abcdef01234567/45",
      "--identity-token",
      tokenFile,
      ...flags,
    ];
    return { service, end: await runCommand(all, { ...env, ARBOR_API: `${service.url}/` }) };
  }

  it("exchanges the token and keeps where it came from", async (test) => {
    const { service, end } = await login(test);
    assert.equal(end.code, 0, end.stderr);
    assert.match(end.stdout, /^logged in at http:\S+ as Ada \S+ \(0123456789abcdef0123456789abcdef01234567\/45\), /);
    assert.deepEqual(
      [...(service.requests[0]?.query ?? [])],
      [
        ["aud", service.url],
        ["identity", "0123456789abcdef0123456789abcdef01234567/45"],
      ],
    );
    assert.deepEqual((await readLogin(service.url))?.workload, {
      identity: "0123456789abcdef0123456789abcdef01234567/45",
      tokenFile: env.tokenFile,
    });
  });

  it("keeps nothing when the service refuses", async (test) => {
    const service = await startLoginService(test);
    const tokenFile = join(tempDir(), "oidc");
    writeFileSync(tokenFile, "oidc-token\n");
    service.refused.add("oidc-token");
    const { code, stderr } = await runCommand(
      [
        "auth",
        "login",
        "--api",
        service.url,
        "--identity",
        "0123456789abcdef0123456789abcdef01234567/45",
        "--identity-token",
        tokenFile,
      ],
      env,
    );
    assert.equal(code, 3);
    const fault = `does not hold a JWT, which is three parts with dots between them: is it the whole token, and nothing but the token?`;
    const remedy = `  ${tokenFile} ${fault}\n`;
    assert.equal(stderr, `arbor: token exchange: Unauthenticated: authorization: no\n${remedy}`);
    assert.equal(existsSync(env.ARBOR_CREDENTIALS ?? ""), false);
  });

  it("needs a uid where nobody is logged in, and says where it is", async (test) => {
    const service = await startLoginService(test);
    const tokenFile = join(tempDir(), "oidc");
    writeFileSync(tokenFile, "oidc-token\n");
    for (const command of [["login"], ["configure-docker", "--registry", "registry.example.com"]]) {
      const flags = ["--api", service.url, "--identity", "acme.example/ci", "--identity-token", tokenFile];
      const { code, stderr } = await runCommand(["auth", ...command, ...flags], env);
      assert.deepEqual(
        [code, stderr],
        [
          2,
          `arbor: --identity: must be a uid, because nobody is logged in at ${service.url} to look acme.example/ci up; ` +
            "somebody who may read identities prints it with: arbor iam identities get acme.example/ci -o json | jq -r .uid; " +
            `see arbor auth ${command[0]} --help\n`,
        ],
      );
      assert.deepEqual(service.requests, []);
    }
  });

  it("takes a name where somebody is logged in, and stores the uid", async (test) => {
    const service = await startHarness();
    test.after(() => service.stop());
    const owner = await service.organisation("acme.example");
    const { uid } = await service.identity({ name: "ci" }, owner.group);
    const tokenFile = join(tempDir(), "oidc");
    writeFileSync(tokenFile, "oidc-token\n");
    const flags = ["--api", service.url, "--identity", "acme.example/ci", "--identity-token", tokenFile];
    const loggedIn = { ...env, ARBOR_TOKEN: owner.token };
    // The service knows the identity, and refuses the token, which is none.
    const refused = await runCommand(["auth", "login", ...flags], loggedIn);
    assert.equal(refused.code, 3, refused.stderr);
    assert.match(refused.stderr, /^arbor: token exchange: /);
    const home = tempDir();
    const docker = { ...loggedIn, DOCKER_CONFIG: home, ARBOR_CREDENTIALS: join(home, "credentials.json") };
    const helper = ["configure-docker", "--registry", "registry.example.com", "--bin-dir", home];
    const configured = await runCommand(["auth", ...helper, ...flags], docker);
    assert.equal(configured.code, 0, configured.stderr);
    const { registries } = await readCredentials(docker.ARBOR_CREDENTIALS);
    assert.equal(registries.get("registry.example.com")?.workload?.identity, uid);
    const absent = await runCommand(["auth", "login", ...flags, "--identity", "acme.example/none"], loggedIn);
    assert.equal(absent.code, 5);
    assert.match(absent.stderr, /no identity is named acme\.example\/none where you have roles/);
    // A login that has ended looks nothing up.
    const ended = await runCommand(["auth", "login", ...flags], { ...env, ARBOR_TOKEN: `${owner.token}x` });
    assert.deepEqual([ended.code, /must be a uid, because the login at/.test(ended.stderr)], [2, true], ended.stderr);
  });

  it("goes with no flag of another login", async (test) => {
    const { end } = await login(test, "--headless");
    assert.equal(end.code, 2);
    assert.match(end.stderr, /^arbor: --identity: /);
  });
});
