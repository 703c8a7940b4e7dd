// What operators do on the host, beside a service that runs.
import assert from "node:assert/strict";
import { chmodSync, copyFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { builtinRoleUid } from "../../src/kernel/ids.js";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";
import {
  arbor,
  type Finished,
  type Host,
  type Organisation,
  type Service,
  startHost,
  startService,
} from "./process.js";

const data = tempDir();
const otherKey = join(tempDir(), "other.key");
const openKey = join(tempDir(), "open.key");
const badKey = join(tempDir(), "bad.key");
const config = join(tempDir(), "arbor.json");
let host: Host;
let service: Service;
let acme: Organisation;
let other: Organisation;

before(async () => {
  // Before the first start there is nothing, not even the directory's content.
  host = startHost();
  acme = await host.bootstrap(data, "acme.example");
  other = await host.bootstrap(data, "other.example");
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
  const response = await fetch(`${service.url}/iam/v2beta1${path}`, { headers: { authorization: `Bearer ${token}` } });
  return { status: response.status, json: (await response.json()) as Readonly<Record<string, unknown>> };
}

/** Runs commands of the host on the data directory of the service. */
function onHost(...commands: readonly (readonly string[])[]): Promise<readonly Finished[]> {
  return Promise.all(commands.map((args) => host.run([...args, "--data", data])));
}

/** A row of `arbor admin keys list --json`. */
interface KeyLine {
  readonly kid: string;
  readonly purpose: string;
  readonly state: string;
}

/** The keys of one purpose, the newest first. */
async function listKeys(purpose: string): Promise<readonly KeyLine[]> {
  const [listed] = await onHost(["admin", "keys", "list", "--json"]);
  const rows = (listed?.stdout ?? "").trim().split("\n");
  return rows.map((row) => JSON.parse(row) as KeyLine).filter((row) => row.purpose === purpose);
}

const statesOf = (keys: readonly KeyLine[]) => keys.map(({ kid, state }) => [kid, state]);

/** A new token of each identity. */
async function tokensOf(...identities: readonly string[]): Promise<string[]> {
  const made = await onHost(...identities.map((identity) => ["admin", "token", "--identity", identity]));
  return made.map(({ stdout }) => stdout.trim());
}

const success = (stdout: string): Finished => ({ code: 0, stdout, stderr: "" });
const failure = (code: number, message: string): Finished => ({ code, stdout: "", stderr: `arbor: ${message}\n` });
const notFoundError = (kind: string, uid: string) => failure(5, `Not found: ${kind}: there is no ${kind} ${uid}`);
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
    assert.equal(again?.code, 6);
    assert.match(
      again?.stderr ?? "",
      /\narbor: the organisation acme\.example exists already: nothing was changed, and the lines above say how to go on\n$/,
    );
    assert.deepEqual(wrong, failure(2, "Invalid argument: org: org must match ^[a-z0-9 ._-]{1,}$"));
    assert.deepEqual(half, failure(2, "Invalid argument: owner: --owner-issuer and --owner-subject go together"));
    assert.match(plain?.stdout ?? "", /^group: [0-9a-f]{40}\nidentity: [0-9a-f]{40}\nroleBinding: \S+\ntoken: \S+\n$/);
    // The base URL of the running service, which the command was not told.
    assert.match(plain?.stderr ?? "", new RegExp(`^the token is for the service at ${service.url}, `));
    const [json, elsewhere] = await onHost(
      ["bootstrap", "--org", "fifth", "--json"],
      ["bootstrap", "--org", "sixth", "--json", "--base-url", "https://arbor.example"],
    );
    assert.equal((JSON.parse(json?.stdout ?? "") as { audience?: string }).audience, service.url);
    assert.equal((JSON.parse(elsewhere?.stdout ?? "") as { audience?: string }).audience, "https://arbor.example");
    assert.match(elsewhere?.stderr ?? "", /^the token is for the service at https:\/\/arbor\.example, /);
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
    const rule = "--ttl: must be a number of s, m or h, more than 0 and at most 1h; see arbor admin token --help";
    assert.deepEqual([late, wrong], [failure(2, rule), failure(2, rule)]);
    assert.deepEqual(nobody, notFoundError("identity", NOBODY));
  });

  it("bind an identity to a role, from the next call on", async () => {
    const [token] = await onHost(["admin", "token", "--identity", other.identity]);
    const bearer = token?.stdout.trim() ?? "";
    assert.equal((await get(`/groups/${acme.group}`, bearer)).status, 403);
    const bind = (identity: string, role: string, group: string) =>
      ["admin", "bind", "--identity", identity, "--role", role, "--group", group] as const;
    const viewer = builtinRoleUid("viewer");
    const results = await onHost(
      bind(other.identity, viewer, acme.group),
      bind(NOBODY, viewer, acme.group),
      bind(other.identity, NOBODY, acme.group),
      bind(other.identity, viewer, NOBODY),
    );
    assert.match(results[0]?.stdout ?? "", new RegExp(`^${acme.group}/[0-9a-f]{16}\n$`));
    assert.deepEqual(results.slice(1), [
      notFoundError("identity", NOBODY),
      notFoundError("role", NOBODY),
      notFoundError("group", NOBODY),
    ]);
    assert.equal((await get(`/groups/${acme.group}`, bearer)).status, 200);
  });

  it("make operator roles, bind them on purpose, and delete them", async () => {
    const role = (...args: readonly string[]) => ["admin", "role", ...args];
    const [created, unknown, none] = await onHost(
      role("create", "--capability", "repo.internal.admin, repo.list", "--capability", "internal", "--name", "editors"),
      role("create", "--capability", "repo.all"),
      role("create"),
    );
    assert.equal(unknown?.code, 2);
    assert.match(unknown?.stderr ?? "", /^arbor: --capability: there is no capability repo\.all: .*repo\.list/);
    assert.match(none?.stderr ?? "", /required option '--capability <names>'/);
    const uid = created?.stdout.trim() ?? "";
    assert.match(uid, /^[0-9a-f]{40}$/);
    const bind = ["admin", "bind", "--identity", other.identity, "--role", uid, "--group", acme.group];
    const [plain] = await onHost(bind);
    assert.deepEqual(
      plain,
      failure(6, `Precondition failed: role ${uid} is an operator role: bind it with --internal`),
    );
    const [bound] = await onHost([...bind, "--internal"]);
    const binding = bound?.stdout.trim() ?? "";
    assert.match(binding, new RegExp(`^${acme.group}/[0-9a-f]{16}$`));
    const [listed, table, early] = await onHost(role("list", "--json"), role("list"), role("delete", uid, "--yes"));
    const { createTime, ...shown } = JSON.parse(listed?.stdout ?? "");
    assert.match(createTime, /^\d{4}-/);
    assert.deepEqual(shown, {
      ...{ uid, name: "editors", description: "", capabilities: ["internal", "repo.list", "repo.internal.admin"] },
      bindings: [{ uid: binding, identityUid: other.identity, groupUid: acme.group }],
    });
    assert.match(table?.stdout ?? "", /^NAME +BOUND +CAPABILITIES +UID\neditors +1 +internal,repo\S+ +[0-9a-f]{40}\n/);
    assert.match(early?.stderr ?? "", /^arbor: Precondition failed: cannot delete role that is in use/);
    assert.deepEqual(await onHost(["admin", "unbind", binding, "--yes"]), [success("")]);
    assert.deepEqual(await onHost(role("delete", uid, "--yes")), [success("")]);
    assert.deepEqual(await onHost(role("delete", uid, "--yes")), [
      failure(5, `Not found: role: there is no operator role ${uid}`),
    ]);
    const [log] = await onHost(["audit", "list", "--json"]);
    const types = (log?.stdout ?? "")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { type: string });
    for (const type of ["roles.created", "rolebindings.created", "rolebindings.deleted", "roles.deleted"]) {
      assert.ok(
        types.some((row) => row.type === `dev.chainguard.api.iam.${type}.v1`),
        type,
      );
    }
  });

  it("print what they create as JSON, as lists print it", async () => {
    const role = ["admin", "role", "create", "--capability", "repo.list", "--name", "readers", "--json"];
    const [made, rotated] = await onHost(role, ["admin", "keys", "rotate", "--purpose", "page-token", "--json"]);
    const { uid } = JSON.parse(made?.stdout ?? "") as { uid: string };
    const [listed] = await onHost(["admin", "role", "list", "--json"]);
    const roles = (listed?.stdout ?? "").trim().split("\n");
    assert.ok(roles.includes((made?.stdout ?? "").trim()), `${made?.stdout} is not in ${listed?.stdout}`);
    const [newest] = await listKeys("page-token");
    assert.deepEqual(JSON.parse(rotated?.stdout ?? ""), { kid: newest?.kid, purpose: "page-token", isNew: true });

    const bind = ["admin", "bind", "--identity", other.identity, "--group", acme.group];
    const [operator, bound] = await onHost(
      [...bind, "--role", uid, "--internal", "--json"],
      [...bind, "--role", builtinRoleUid("editor"), "--json"],
    );
    const fields = { identityUid: other.identity, groupUid: acme.group };
    for (const [result, roleUid] of [[operator, uid] as const, [bound, builtinRoleUid("editor")] as const]) {
      const { uid: binding, ...rest } = JSON.parse(result?.stdout ?? "") as { uid: string };
      assert.deepEqual(rest, { ...fields, roleUid });
      assert.deepEqual(await onHost(["admin", "unbind", binding, "--yes"]), [success("")]);
    }
    assert.deepEqual(await onHost(["admin", "role", "delete", uid, "--yes"]), [success("")]);
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
    assert.deepEqual(nobody, notFoundError("group", NOBODY));
    assert.deepEqual([verified?.code, verified?.stdout], [0, ""]);
    assert.match(verified?.stderr ?? "", /images are pushed and pulled as acme\.example\/REPO from now on\n/);
    const { json } = await get(`/groups/${acme.group}`, token?.stdout.trim() ?? "");
    assert.deepEqual([json.verified, json.kind], [true, "ORG_KIND_CUSTOMER"]);
  });

  it("rotate keys without voiding what they made", async () => {
    const [before] = await listKeys("api-token");
    const [token, tokenKey, pageKey, after] = await onHost(
      ["admin", "token", "--identity", acme.identity],
      ["admin", "keys", "rotate", "--purpose", "api-token"],
      ["admin", "keys", "rotate", "--purpose", "page-token"],
      ["admin", "token", "--identity", acme.identity],
    );
    assert.match(tokenKey?.stdout ?? "", /^[\w-]{43}\n$/);
    assert.match(tokenKey?.stderr ?? "", /^arbor: servers use it once they have published it for as long as /);
    assert.match(pageKey?.stdout ?? "", /^[0-9a-f]{16}\n$/);
    // The new key of API tokens has to be published first; others are used at once.
    assert.deepEqual(statesOf(await listKeys("api-token")), [
      [tokenKey?.stdout.trim(), "pending"],
      [before?.kid, "active"],
    ]);
    assert.deepEqual(statesOf(await listKeys("page-token"))[0], [pageKey?.stdout.trim(), "active"]);
    for (const { stdout } of [token, after] as Finished[]) {
      const header = JSON.parse(Buffer.from(stdout.split(".")[0] ?? "", "base64url").toString());
      assert.equal(header.kid, before?.kid, "the key in use goes on signing");
      assert.equal((await get("/groups", stdout.trim())).status, 200);
    }
  });

  it("make every token void that an identity has, at once", async () => {
    const [ours = "", theirs = ""] = await tokensOf(acme.identity, other.identity);
    const revoked = await onHost(
      ["admin", "identities", "revoke", acme.identity, "--yes"],
      ["admin", "identities", "revoke", NOBODY, "--yes"],
    );
    assert.deepEqual(revoked, [success(""), notFoundError("identity", NOBODY)]);
    assert.equal((await get("/groups", ours)).status, 401);
    assert.equal((await get("/groups", theirs)).status, 200, "another identity keeps its own");
    // Times in tokens are whole seconds, so that those of the running second are void as well.
    await sleep(1_000);
    const [later = ""] = await tokensOf(acme.identity);
    assert.equal((await get("/groups", later)).status, 200);
    assert.equal((await get("/groups", ours)).status, 401);
  });

  it("revoke keys: what the removed one signed is void, and another signs", async () => {
    const [token = ""] = await tokensOf(acme.identity);
    const keys = await listKeys("api-token");
    assert.equal((await get("/groups", token)).status, 200);
    for (const { kid, state } of keys) {
      const [revoked] = await onHost(["admin", "keys", "revoke", kid, "--yes"]);
      assert.match(revoked?.stdout ?? "", new RegExp(`^${kid} is removed; it was ${state}\n`), revoked?.stderr);
    }
    const [again] = await onHost(["admin", "keys", "revoke", keys[0]?.kid ?? "", "--yes"]);
    assert.deepEqual(again, notFoundError("key", keys[0]?.kid ?? ""));
    const left = await listKeys("api-token");
    assert.deepEqual(
      left.map(({ state }) => state),
      ["active"],
    );
    assert.ok(!keys.some(({ kid }) => kid === left[0]?.kid));
    // Servers see within seconds what commands did.
    await waitUntil(async () => (await get("/groups", token)).status !== 200);
    assert.equal((await get("/groups", token)).status, 401);
    const [later = ""] = await tokensOf(acme.identity);
    assert.equal((await get("/groups", later)).status, 200);
  });
});

const SECOND_SERVICE = "a second service on the same data";

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
      name: SECOND_SERVICE,
      args: serve(),
      code: 1,
      stderr: /^arbor: another process holds \S+serve\.lock\n$/,
    },
    {
      name: "another master key",
      args: bootstrap(otherKey),
      code: 6,
      stderr: /^arbor: --master-key-file: \S+other\.key does not open what is stored \(master-key-check\)\n$/,
    },
    {
      name: "a master key that is no key",
      args: bootstrap(badKey),
      code: 6,
      stderr: /^arbor: --master-key-file: \S+bad\.key must hold lines of 32 bytes in base64\n$/,
    },
    {
      name: "a master key that others may read",
      args: bootstrap(openKey),
      code: 6,
      stderr:
        /^arbor: --master-key-file: \S+open\.key must (be readable by its owner alone|not be readable by others) \(mode 0600.*\)\n$/,
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
      args: serve("--tls-cert", join(PROJECT, "test/support/tls/cert.pem")),
      code: 2,
      stderr: /^arbor: --tls-cert and --tls-key go together\n$/,
    },
    {
      name: "a certificate that is not there",
      args: serve("--tls-cert", "/nowhere.pem", "--tls-key", "/nowhere.key"),
      code: 2,
      stderr:
        /^arbor: --tls-cert: cannot read \/nowhere\.pem: no such file\n--tls-key: cannot read \/nowhere\.key: no such file\n$/,
    },
    {
      name: "a variable that is not a setting",
      args: serve(),
      env: { ARBOR_LISEN: "127.0.0.1:0" },
      code: 2,
      stderr: /^arbor: ARBOR_LISEN is not a setting; did you mean ARBOR_LISTEN\?\n$/,
    },
    {
      name: "a variable that is not a setting, for a command on the host",
      args: bootstrap(otherKey),
      env: { ARBOR_DATABASE_URLS: "" },
      code: 2,
      stderr: /^arbor: ARBOR_DATABASE_URLS is not a setting; did you mean ARBOR_DATABASE_URL\?\n$/,
    },
    {
      name: "every setting that is wrong, wherever it was given",
      args: ["serve", "--listen", "8080", "--base-url", "ftp://x", "--config", config],
      env: { ARBOR_ROOT_CREATION: "all", ARBOR_STRICT_BODY: "maybe" },
      code: 2,
      stderr: new RegExp(
        [
          "^arbor: --config: \\S+arbor.json: colour is not a setting",
          "--listen must be host:port, such as 127.0.0.1:8080 or \\[::1\\]:8080",
          "--base-url must be an http or https URL without path, query or user",
          "ARBOR_ROOT_CREATION must be one of users, owners, off",
          "ARBOR_STRICT_BODY must be true or false",
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
      // A service that gets so far as to start would take over the signals of this process.
      const result = await (name === SECOND_SERVICE ? arbor(...args) : host.run(args, env));
      assert.equal(result.code, code, result.stderr);
      assert.match(result.stderr, stderr);
      assert.doesNotMatch(result.stderr, /user:secret|\n {4}at /, "no secret and no stack");
      assert.ok(service.alive());
    });
  }
});
