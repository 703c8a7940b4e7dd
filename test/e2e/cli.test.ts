// What operators do on the host, beside a service that runs.
import assert from "node:assert/strict";
import { chmodSync, copyFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { builtinRoleUid } from "../../src/kernel/ids.js";
import { tempDir } from "../support/temp-dir.js";
import { type Finished, type Host, type Organisation, type Service, startHost, startService } from "./process.js";

const data = tempDir();
const otherKey = join(tempDir(), "other.key");
const openKey = join(tempDir(), "open.key");
const badKey = join(tempDir(), "bad.key");
const config = join(tempDir(), "arbor.json");
let host: Host;
let service: Service;
let acme: Organisation;
let rival: Organisation;

before(async () => {
  // Before the first start there is nothing, not even the directory's content.
  host = startHost();
  acme = await host.bootstrap(data, "acme.example");
  rival = await host.bootstrap(data, "rival.example");
  service = await startService(data, "--log-level", "error");
  writeFileSync(otherKey, `${Buffer.alloc(32, 7).toString("base64")}\n`, { mode: 0o600 });
  writeFileSync(badKey, "short\n", { mode: 0o600 });
  copyFileSync(otherKey, openKey);
  chmodSync(openKey, 0o644);
  writeFileSync(config, JSON.stringify({ logLevel: "loud", colour: "red" }));
});

after(async () => {
  host?.close();
  await service?.stop();
});

async function get(path: string, token: string): Promise<{ status: number; json: Readonly<Record<string, unknown>> }> {
  const answer = await fetch(`${service.url}/iam/v2beta1${path}`, { headers: { authorization: `Bearer ${token}` } });
  return { status: answer.status, json: (await answer.json()) as Readonly<Record<string, unknown>> };
}

/** Runs commands of the host on the data directory of the service. */
function onHost(...commands: readonly (readonly string[])[]): Promise<readonly Finished[]> {
  return Promise.all(commands.map((args) => host.run([...args, "--data", data])));
}

const done = (stdout: string): Finished => ({ code: 0, stdout, stderr: "" });
const failed = (code: number, message: string): Finished => ({ code, stdout: "", stderr: `arbor: ${message}\n` });
const missing = (noun: string, uid: string) => failed(5, `Not found: ${noun}: there is no ${noun} ${uid}`);
const NOBODY = "0".repeat(40);

describe("commands on the host", () => {
  it("keep what they make for their owner alone", () => {
    assert.equal(statSync(join(data, "master.key")).mode & 0o777, 0o600);
  });

  it("bootstrap an organisation once, with a name that will do", async () => {
    const [again, wrong, half, plain] = await onHost(
      ["bootstrap", "--org", "acme.example"],
      ["bootstrap", "--org", "Acme"],
      ["bootstrap", "--org", "third", "--owner-issuer", "https://idp.example"],
      ["bootstrap", "--org", "fourth", "--owner-issuer", "https://idp.example", "--owner-subject", "42"],
    );
    assert.deepEqual(again, failed(6, "Precondition failed: a root group named acme.example exists already"));
    assert.deepEqual(wrong, failed(2, "Invalid argument: org: org must match ^[a-z0-9 ._-]{1,}$"));
    assert.deepEqual(half, failed(2, "Invalid argument: owner: --owner-issuer and --owner-subject go together"));
    assert.match(plain?.stdout ?? "", /^group: [0-9a-f]{40}\nidentity: [0-9a-f]{40}\nroleBinding: \S+\ntoken: \S+\n$/);
  });

  it("make tokens that the running service takes", async () => {
    const make = ["admin", "token", "--identity", acme.identity];
    const [hour, minute, foreign, late, wrong, nobody] = await onHost(
      make,
      [...make, "--ttl", "1m"],
      [...make, "--audience", "https://elsewhere.example"],
      [...make, "--ttl", "61m"],
      [...make, "--ttl", "soon"],
      ["admin", "token", "--identity", NOBODY],
    );
    for (const { stdout } of [hour, minute] as Finished[]) {
      assert.equal((await get(`/groups/${acme.group}`, stdout.trim())).status, 200);
    }
    const claims = JSON.parse(Buffer.from(minute?.stdout.split(".")[1] ?? "", "base64url").toString());
    assert.deepEqual([claims.exp - claims.iat, claims.aud, claims.iss], [60, service.url, service.url]);
    assert.equal((await get("/groups", foreign?.stdout.trim() ?? "")).status, 401);
    const rule = "Invalid argument: ttl: ttl must be a number of s, m or h, more than 0 and at most 1h";
    assert.deepEqual([late, wrong], [failed(2, rule), failed(2, rule)]);
    assert.deepEqual(nobody, missing("identity", NOBODY));
  });

  it("bind an identity to a role, from the next call on", async () => {
    const [token] = await onHost(["admin", "token", "--identity", rival.identity]);
    const bearer = token?.stdout.trim() ?? "";
    assert.equal((await get(`/groups/${acme.group}`, bearer)).status, 403);
    const bind = (identity: string, role: string, group: string) =>
      ["admin", "bind", "--identity", identity, "--role", role, "--group", group] as const;
    const viewer = builtinRoleUid("viewer");
    const results = await onHost(
      bind(rival.identity, viewer, acme.group),
      bind(NOBODY, viewer, acme.group),
      bind(rival.identity, NOBODY, acme.group),
      bind(rival.identity, viewer, NOBODY),
    );
    assert.match(results[0]?.stdout ?? "", new RegExp(`^${acme.group}/[0-9a-f]{16}\n$`));
    assert.deepEqual(results.slice(1), [
      missing("identity", NOBODY),
      missing("role", NOBODY),
      missing("group", NOBODY),
    ]);
    assert.equal((await get(`/groups/${acme.group}`, bearer)).status, 200);
  });

  it("verify a root group", async () => {
    const verify = ["admin", "group", "verify", acme.group];
    const [token, wrong, nobody, verified] = await onHost(
      ["admin", "token", "--identity", acme.identity],
      [...verify, "--kind", "ORG_KIND_BIG"],
      ["admin", "group", "verify", NOBODY],
      [...verify, "--kind", "ORG_KIND_CUSTOMER"],
    );
    assert.equal(wrong?.code, 2);
    assert.match(wrong?.stderr ?? "", /^arbor: Invalid argument: kind: kind must be one of ORG_KIND_UNSPECIFIED, /);
    assert.deepEqual([nobody, verified], [missing("group", NOBODY), done("")]);
    const { json } = await get(`/groups/${acme.group}`, token?.stdout.trim() ?? "");
    assert.deepEqual([json.verified, json.kind], [true, "ORG_KIND_CUSTOMER"]);
  });

  it("rotate keys without voiding what they made", async () => {
    const [before, tokenKey, pageKey, after] = await onHost(
      ["admin", "token", "--identity", acme.identity],
      ["admin", "keys", "rotate", "--purpose", "api-token"],
      ["admin", "keys", "rotate", "--purpose", "page-token"],
      ["admin", "token", "--identity", acme.identity],
    );
    assert.match(tokenKey?.stdout ?? "", /^[\w-]{43}\n$/);
    assert.match(pageKey?.stdout ?? "", /^[0-9a-f]{16}\n$/);
    assert.equal((await get("/groups", before?.stdout.trim() ?? "")).status, 200);
    const header = JSON.parse(Buffer.from(after?.stdout.split(".")[0] ?? "", "base64url").toString());
    assert.equal(`${header.kid}\n`, tokenKey?.stdout);
  });
});

describe("what is refused before anything is opened", () => {
  const serve = (...args: readonly string[]) => ["serve", "--data", data, "--listen", "127.0.0.1:0", ...args];
  const bootstrap = (file: string) => ["bootstrap", "--org", "fifth", "--data", data, "--master-key-file", file];
  const cases: readonly {
    name: string;
    args: readonly string[];
    env?: Readonly<Record<string, string>>;
    code: number;
    stderr: RegExp;
  }[] = [
    {
      name: "a second service on the same data",
      args: serve(),
      code: 1,
      stderr: /^arbor: another process holds \S+serve\.lock\n$/,
    },
    {
      name: "another master key",
      args: bootstrap(otherKey),
      code: 1,
      stderr: /^arbor: the master key \S+other\.key does not open what is stored \(master-key-check\)\n$/,
    },
    {
      name: "a master key that is no key",
      args: bootstrap(badKey),
      code: 1,
      stderr: /^arbor: the master key \S+bad\.key must hold lines of 32 bytes in base64\n$/,
    },
    {
      name: "a master key that others may read",
      args: bootstrap(openKey),
      code: 1,
      stderr: /^arbor: the master key \S+open\.key must be readable by its owner alone \(mode 0600\)\n$/,
    },
    {
      name: "cleartext for everybody",
      args: serve("--listen", "0.0.0.0:0"),
      code: 2,
      stderr:
        /^arbor: --listen on a non-loopback address needs TLS, or --behind-proxy where a proxy in front ends it\n$/,
    },
    {
      name: "half of TLS",
      args: serve("--tls-cert", "cert.pem"),
      code: 2,
      stderr: /^arbor: --tls-cert and --tls-key go together\n$/,
    },
    {
      name: "every setting that is wrong, wherever it was given",
      args: ["serve", "--listen", "8080", "--base-url", "ftp://x", "--config", config],
      env: { ARBOR_ROOT_CREATION: "all", ARBOR_STRICT_BODY: "maybe" },
      code: 2,
      stderr: new RegExp(
        [
          "^arbor: \\S+arbor.json: colour is no setting",
          "--listen must be host:port, such as 127.0.0.1:8080 or \\[::1\\]:8080",
          "--base-url must be an http or https URL without path, query or user",
          "ARBOR_STRICT_BODY must be true or false",
          "ARBOR_ROOT_CREATION must be one of users, owners, off",
          "\\S+arbor.json: logLevel must be one of fatal, error, warn, info, debug, trace, silent\n$",
        ].join("\n"),
      ),
    },
    {
      name: "a database without a key that nodes share",
      args: serve("--database-url", "postgres://user:secret@db.example/x"),
      code: 2,
      stderr: /^arbor: --database-url needs --master-key-file: nodes that share a database share the key\n$/,
    },
    { name: "a command there is not", args: ["destroy"], code: 2, stderr: /unknown command 'destroy'/ },
    { name: "an option there is not", args: serve("--fast"), code: 2, stderr: /unknown option '--fast'/ },
    { name: "no name", args: ["bootstrap"], code: 2, stderr: /required option '--org <name>'/ },
  ];

  for (const { name, args, env, code, stderr } of cases) {
    it(name, async () => {
      const result = await host.run(args, env);
      assert.equal(result.code, code, result.stderr);
      assert.match(result.stderr, stderr);
      assert.doesNotMatch(result.stderr, /user:secret|\n {4}at /, "no secret and no stack");
      assert.ok(service.alive());
    });
  }
});
