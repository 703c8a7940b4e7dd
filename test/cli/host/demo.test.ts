// The demo as a newcomer meets it: started by its command, followed as printed,
// ended, started again.
import assert from "node:assert/strict";
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import { type Demo, hasDisplay, renewTokenFile, startDemo } from "../../../src/cli/host/demo/demo.js";
import { type Host, startHost } from "../../e2e/process.js";
import { Agent, claimsOf, codeRequest, linksIn, newPkce, PROGRAM } from "../../issuer/oauth/login-kit.js";
import { execFile } from "../../support/child-process.js";
import { scriptArguments } from "../../support/project.js";
import { tempDir } from "../../support/temp-dir.js";
import { waitUntil } from "../../support/wait-until.js";
import { type Ended, run } from "../remote/auth/process.js";

/** What a newcomer has patience for, in milliseconds. */
const MINUTE_MS = 60_000;
const MARK = "@@@@";
const LISTEN = "127.0.0.1:0";

interface Shown {
  /** What was printed until the demo was ready. */
  readonly text: string;
  readonly commands: readonly string[];
  readonly readyMs: number;
  /** As Ctrl-C does. */
  interrupt(): Promise<Ended>;
}

/** Starts `arbor demo` as a process. */
async function demo(test: TestContext, ...flags: string[]): Promise<Shown> {
  const startMs = performance.now();
  const { child, ended } = run(process.execPath, [...scriptArguments("src/main.ts"), "demo", ...flags]);
  test.after(() => child.kill("SIGKILL"));
  let text = "";
  await new Promise<void>((resolve, reject) => {
    child.stdout.on("data", (chunk: string) => {
      text += chunk;
      if (/\n {2}arbor iam role-bindings list\n$/.test(text)) resolve();
    });
    void ended.then(({ stderr }) => reject(new Error(`it ended: ${stderr}`)));
  });
  return {
    text,
    readyMs: performance.now() - startMs,
    commands: text
      .slice(text.indexOf("\nPaste "))
      .split("\n")
      .filter((line) => line.startsWith("  "))
      .map((line) => line.slice(2)),
    interrupt() {
      child.kill("SIGINT");
      return ended;
    },
  };
}

/** Runs commands one after another in one bash, and returns what each printed. */
async function runPasted(commands: readonly string[], env: Readonly<Record<string, string>>): Promise<string[]> {
  const script = commands.flatMap((command) => [command, `printf '${MARK}'`]).join("\n");
  const file = join(tempDir(), "pasted");
  writeFileSync(file, `set -euo pipefail\n${script}\n`);
  const { stdout } = await execFile("bash", ["--norc", file], { env, timeout: MINUTE_MS });
  return stdout.split(MARK).slice(0, -1);
}

/** A browser for `arbor auth login`, in which somebody picks a person. */
function browser(person: string): { readonly env: Record<string, string>; readonly done: Promise<string> } {
  const directory = tempDir();
  const [program, opened] = [join(directory, "browser"), join(directory, "opened")];
  writeFileSync(program, `#!/bin/sh\nprintf %s "$1" > '${opened}.new'\nmv '${opened}.new' '${opened}'\n`);
  chmodSync(program, 0o755);
  const browse = async () => {
    await waitUntil(() => existsSync(opened));
    return (await pick(new Agent(), readFileSync(opened, "utf8"), person)).text;
  };
  const env = { PATH: process.env.PATH ?? "", HOME: directory, BROWSER: program, DISPLAY: "" };
  return { env, done: browse() };
}

/** Goes to a login of the demo, picks a person there, and lets the program in. */
async function pick(agent: Agent, url: string, person: string) {
  const page = await agent.get(url);
  assert.match(page.text, /<h1>Who are you\?<\/h1>/);
  const link = linksIn({ ...page, text: page.text.replaceAll("button plain", "button") }).find(
    (href) => new URL(href).searchParams.get("person") === person,
  );
  assert.ok(link, `there is no ${person || "way to cancel"}`);
  return agent.decide(await agent.get(link));
}

const namesIn = (table: string) =>
  table
    .trim()
    .split("\n")
    .slice(1)
    .map((line) => line.split(/ {2,}/)[0]);

describe("arbor demo", () => {
  let host: Host;
  before(() => {
    host = startHost();
  });
  after(() => host.close());

  it("shows commands that work as printed, within a minute, and again on the same data", async (test) => {
    const data = join(tempDir(), "it's here");
    const first = await demo(test, "--data", data, "--listen", LISTEN);
    const beginMs = performance.now();
    const { env, done } = browser("alice");
    const responses = await runPasted(first.commands, env);
    const walkthroughMs = performance.now() - beginMs;
    test.diagnostic(`ready after ${Math.round(first.readyMs)} ms, the commands took ${Math.round(walkthroughMs)} ms`);
    assert.ok(first.readyMs + walkthroughMs < MINUTE_MS);
    assert.match(await done, /You are logged in/);
    const console = /^ {2}console {2}(http:\/\/127\.0\.0\.1:\d+\/console)/m.exec(first.text)?.[1] ?? "";
    assert.equal((await fetch(console)).status, 200);

    assert.equal(responses.length, 11);
    const [, , , , , listed, login, table, bound, created, bindings] = responses as string[];
    const groups = ["demo.example", "platform", "production", "research"];
    const seen = JSON.parse(listed ?? "").groups as { name: string; verified: boolean }[];
    assert.deepEqual(
      seen.map(({ name, verified }) => [name, verified]),
      groups.map((name) => [name, name === "demo.example"]),
    );
    assert.match(
      login ?? "",
      /^logged in at http:\/\/127\.0\.0\.1:\d+ as Alice \(alice@demo\.example\), with a token until /,
    );
    assert.deepEqual(namesIn(table ?? ""), groups);
    const { identity, role, group } = JSON.parse(bound ?? "") as Record<string, { name: string; issuer: string }>;
    assert.deepEqual([identity?.name, role?.name, group?.name], ["ci", "builder", "platform"]);
    assert.equal(JSON.parse(created ?? "").name, "built by ci");
    for (const role of ["owner", "viewer", "builder"]) assert.match(bindings ?? "", new RegExp(` ${role} `));

    assert.deepEqual(await first.interrupt(), { code: 0, signal: null, stdout: first.text, stderr: "" });
    const second = await demo(test, "--data", data, "--listen", LISTEN);
    const uids = (shown: Shown) => shown.commands.filter((command) => command.startsWith("PLATFORM="));
    assert.deepEqual(uids(second), uids(first));
    assert.equal(/login +(\S+),/.exec(second.text)?.[1], /login +(\S+),/.exec(first.text)?.[1]);
    const again = await runPasted(second.commands.slice(0, 6), env);
    const found = (JSON.parse(again[5] ?? "").groups as { name: string }[]).map(({ name }) => name);
    assert.deepEqual(found, ["built by ci", ...groups]);

    const twice = await host.run(["demo", "--data", data]);
    assert.deepEqual([twice.code, twice.stdout], [1, ""]);
    assert.match(twice.stderr, /^arbor: 127\.0\.0\.1:\d+ is taken, .*Perhaps that demo runs already\n$/);
    assert.equal((await second.interrupt()).code, 0);
  });

  it("leaves nothing behind unless told where", async (test) => {
    const shown = await demo(test, "--listen", LISTEN);
    const directory = /data +(\S+),/.exec(shown.text)?.[1] ?? "";
    assert.ok(existsSync(join(directory, "arbor.db")));
    assert.equal((await shown.interrupt()).code, 0);
    assert.equal(existsSync(directory), false);
  });

  it("opens the console only where somebody can see it", () => {
    for (const [platform, env, expected] of [
      ["linux", { DISPLAY: ":0" }, true],
      ["linux", { WAYLAND_DISPLAY: "wayland-0" }, true],
      ["linux", { BROWSER: "firefox" }, true],
      ["linux", { DISPLAY: "" }, false],
      ["linux", {}, false],
      ["darwin", {}, true],
      ["win32", {}, true],
    ] as const)
      assert.equal(hasDisplay({ platform, env }), expected, `${platform} ${JSON.stringify(env)}`);
  });

  const refused: readonly [name: string, flags: readonly string[], code: number, message: RegExp][] = [
    [
      "an address of a network",
      ["--listen", "0.0.0.0:8080"],
      2,
      /^arbor: --listen must be 127.0.0.1 or localhost with a port: /,
    ],
    ["every address", ["--listen", "[::]:0"], 2, /^arbor: --listen must be 127.0.0.1 or localhost with a port: /],
    ["IPv6", ["--listen", "[::1]:0"], 2, /^arbor: --listen must be 127.0.0.1 or localhost with a port: /],
    ["no address", ["--listen", "8080"], 2, /^arbor: --listen must be host:port, such as /],
    ["an argument", ["now"], 2, /too many arguments/],
  ];
  for (const [name, flags, code, message] of refused) {
    it(`refuses ${name}`, async () => {
      const data = join(tempDir(), "data");
      const end = await host.run(["demo", "--data", data, ...flags]);
      assert.deepEqual([end.code, end.stdout], [code, ""]);
      assert.match(end.stderr, message);
      assert.equal(existsSync(data), false);
    });
  }

  it("takes no setting from the environment, which may be meant for a service in earnest", async () => {
    const env = { ARBOR_LISTEN: "0.0.0.0:1", ARBOR_DATABASE_URL: "postgres://127.0.0.1:1/x", ARBOR_BASE_URL: "x" };
    Object.assign(process.env, env);
    try {
      const made = await startDemo({ data: tempDir(), listen: LISTEN });
      await made.stop();
    } finally {
      for (const name of Object.keys(env)) delete process.env[name];
    }
  });

  it("keeps out of directories that hold something else", async () => {
    const data = tempDir();
    const kept = join(data, "master.key");
    writeFileSync(kept, "in earnest");
    const rule = new RegExp(`^Error: ${data} has other content than a demo`);
    await assert.rejects(startDemo({ data, listen: LISTEN }), rule);
    writeFileSync(join(data, "demo.json"), "[]");
    await assert.rejects(startDemo({ data, listen: LISTEN }), rule);
    assert.deepEqual(readdirSync(data).sort(), ["demo.json", "master.key"]);
    assert.equal(readFileSync(kept, "utf8"), "in earnest");
  });

  it("names the port that is taken, and leaves nothing running", async (test) => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    test.after(() => other.close());
    const { port } = other.address() as AddressInfo;
    const data = tempDir();
    const taken = startDemo({ data, listen: `127.0.0.1:${port}` });
    await assert.rejects(taken, new RegExp(`^Error: 127.0.0.1:${port} is taken: choose another with --listen`));
    const made = await startDemo({ data, listen: LISTEN });
    await made.stop();
  });
});

describe("the demo's login", () => {
  let made: Demo;
  before(async () => {
    made = await startDemo({ data: join(tempDir(), "new"), listen: LISTEN });
  });
  after(() => made?.stop());

  function login(): { readonly url: string; redeem(code: string): Promise<Record<string, unknown>> } {
    const { verifier, challenge } = newPkce();
    const fields = { grant_type: "authorization_code", code_verifier: verifier, redirect_uri: PROGRAM };
    return {
      url: `${made.url}/oauth?${new URLSearchParams(codeRequest(challenge))}`,
      async redeem(code) {
        const body = new URLSearchParams({ ...fields, client_id: "arbor-cli", code });
        const response = await fetch(`${made.url}/oauth/token`, { method: "POST", body });
        return (await response.json()) as Record<string, unknown>;
      },
    };
  }

  it("keeps its files for their owner alone", () => {
    assert.equal(statSync(made.data).mode & 0o777, 0o700);
    for (const file of ["login-providers.json", "demo.json", "ci.token"]) {
      assert.equal(statSync(join(made.data, file)).mode & 0o777, 0o600, file);
    }
    const { iss, sub, aud, iat, exp } = claimsOf(readFileSync(made.workloadToken, "utf8"));
    assert.deepEqual([iss, sub, aud], [made.issuer, "workload:ci", made.url]);
    assert.equal(Number(exp) - Number(iat), 900);
  });

  it("signs Alice in, and asks the same browser again", async () => {
    const agent = new Agent();
    for (const [person, error] of [
      ["alice", undefined],
      ["bob", "access_denied"],
      ["alice", undefined],
      ["", "access_denied"],
    ] as const) {
      const { url, redeem } = login();
      const { program } = await pick(agent, url, person);
      assert.ok(program);
      assert.equal(program.get("error") ?? undefined, error, `${program}`);
      if (person === "bob") assert.equal(program.get("error_description")?.split(":")[0], "account not found");
      if (error !== undefined) continue;
      const { access_token: token } = await redeem(program.get("code") ?? "");
      const { email, email_verified: verified } = claimsOf(token);
      assert.deepEqual([email, verified], ["alice@demo.example", true]);
    }
  });

  it("goes on in the browser it was begun in, and nowhere else", async () => {
    const page = await new Agent().get(login().url);
    for (const url of [page.url, linksIn(page)[0] ?? ""]) {
      const elsewhere = await new Agent().get(url);
      assert.equal(elsewhere.status, 400);
      assert.match(elsewhere.text, /This login is over, or was begun in another browser\./);
    }
  });

  it("has pages for what cannot be done", async () => {
    const wrong = await new Agent().get(`${made.issuer}/auth?client_id=other`);
    assert.equal(wrong.status, 400);
    assert.match(wrong.text, /<h1>This cannot be done<\/h1>/);
    assert.match(wrong.headers.get("content-security-policy") ?? "", /^default-src 'none'/);
    const host = "rebound.example";
    const status = await new Promise((resolve) => {
      get(`${made.issuer}/.well-known/openid-configuration`, { headers: { host } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
    });
    assert.equal(status, 421);
  });
});

describe("the workload's token", () => {
  it("is replaced long before it runs out, also after a failure", async (test) => {
    test.mock.timers.enable({ apis: ["setInterval"] });
    const file = join(tempDir(), "token");
    const steps: string[] = [];
    let resolveNext = () => {};
    const next = () =>
      new Promise<void>((resolve) => {
        resolveNext = resolve;
        test.mock.timers.tick(300_000);
      });
    const sign = async (lifeS: number) => {
      if (steps.push(`signed for ${lifeS} s`) === 2) throw new Error("no ink");
      setImmediate(resolveNext);
      return `token ${steps.length}`;
    };
    const { stop } = await renewTokenFile(file, sign, (error) => {
      steps.push(String(error));
      resolveNext();
    });
    assert.equal(readFileSync(file, "utf8"), "token 1\n");
    await next();
    assert.equal(readFileSync(file, "utf8"), "token 1\n");
    await next();
    // Ends when what was begun is written.
    await stop();
    assert.equal(readFileSync(file, "utf8"), "token 4\n");
    test.mock.timers.tick(900_000);
    const signed = "signed for 900 s";
    assert.deepEqual(steps, [signed, signed, "Error: no ink", signed]);
  });
});
