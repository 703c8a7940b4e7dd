// `arbor audit verify --scope`: what its caller must hold, what it trusts, and what it remembers.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { verifyRemoteLog } from "../../../src/cli/remote/audit/chain-client.js";
import { withSession } from "../../../src/cli/remote/session.js";
import { runCommand } from "../../support/command.js";
import { rootUid } from "../../support/rows.js";
import { tempDir } from "../../support/temp-dir.js";
import { auditRow, type Log, openLog } from "../log-kit.js";
import { type ServedLog, serveLog } from "./chain-service.js";
import { type EventWorld, startEventWorld } from "./event-world.js";

const withGrantors = (root: string) =>
  new RegExp(`at ${root} .*\n  GetChain needs .*\n  can be granted by: .*the operator`);

describe("the chain of an organisation over the API", () => {
  let world: EventWorld;
  before(async () => {
    world = await startEventWorld();
    for (let i = 0; i < 5; i++) await world.add({ rootUid: world.root, subjectUid: world.child });
  });
  after(() => world.stop());

  const arbor = (token: string, ...args: readonly string[]) =>
    runCommand(["audit", ...args, "--api", world.url], { ARBOR_TOKEN: token });

  test("is verified by an owner", async () => {
    let result = await arbor(world.owner.token, "verify", "--scope", world.root);
    for (let tries = 0; tries < 100 && !/, 0 unsealed$/m.test(result.stdout); tries++) {
      await delay(50);
      result = await arbor(world.owner.token, "verify", "--scope", world.root);
    }
    assert.deepEqual([result.code, result.stderr], [0, ""]);
    assert.match(result.stdout, new RegExp(`^${world.root}: \\d+ sealed rows, head signed \\S+Z, 0 unsealed\n`));
    assert.match(result.stdout, /\nhead: \d+:[A-Za-z0-9_-]{43}\n$/);
  });

  test("is verified by the name of the organisation, and remembered by its uid", async () => {
    const { child, owner, root } = world;
    const token = owner.token;
    const { name = "" } = JSON.parse(
      (await runCommand(["iam", "groups", "get", root, "-o", "json", "--api", world.url], { ARBOR_TOKEN: token }))
        .stdout,
    ) as { name?: string };
    const file = join(tempDir(), "state.json");
    for (const scope of [name, root, name]) {
      const { code, stdout, stderr } = await arbor(token, "verify", "--scope", scope, "--state", file);
      assert.equal(code, 0, stderr);
      assert.ok(stdout.startsWith(`${root}: `), stdout);
    }
    const other = JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), organization: child });
    writeFileSync(file, other);
    const { code, stderr } = await arbor(token, "verify", "--scope", name, "--state", file);
    assert.equal(code, 2);
    assert.match(stderr, new RegExp(`is of the organisation ${child}`));
  });

  test("needs both rights at the organisation, and the answer names them", async () => {
    const { root, child, foreign } = world;
    const both = ["role_bindings.list", "role_bindings.create"];
    const needed = `  GetChain needs the capabilities ${both.join(" and ")}; arbor whoami prints what you may do\n`;
    const permissionDenied = (scope: string) =>
      `arbor: Permission denied: ${both.join(" and ")} at ${scope} (or it might not exist)\n${needed}`;
    const [auditor, reader] = [(await world.caller(both)).token, (await world.caller(both.slice(0, 1))).token];
    const below = (await world.caller(both, child)).token;
    const rule = "arbor: Invalid argument: scope: scope must be the uid of an organisation\n";
    const cases: readonly (readonly [token: string, scope: string, code: number, stderr: string | RegExp])[] = [
      [auditor, root, 0, ""],
      // Who may list the bindings sees who could grant the rest.
      [reader, root, 4, withGrantors(root)],
      [(await world.createBound("viewer")).token, root, 4, withGrantors(root)],
      [world.foreignOwner.token, root, 4, permissionDenied(root)],
      [auditor, foreign, 4, permissionDenied(foreign)],
      [auditor, "0".repeat(40), 4, permissionDenied("0".repeat(40))],
      [below, root, 4, permissionDenied(root)],
      [below, child, 2, rule],
      [auditor, child, 2, rule],
      ["x.y.z", root, 3, /^arbor: Unauthenticated/],
    ];
    for (const command of ["verify", "jwks"]) {
      for (const [token, scope, code, stderr] of cases) {
        const result = await arbor(token, command, "--scope", scope);
        if (typeof stderr === "string") assert.equal(result.stderr, stderr);
        else assert.match(result.stderr, stderr);
        assert.equal(result.code, code, result.stderr);
        if (code !== 0) assert.equal(result.stdout, "");
      }
    }
  });

  test("is paged over REST", async () => {
    const rest = world.audit(world.owner.token);
    const sequences: string[] = [];
    for (let pageToken = "", pages = 0; pages < 50; pages++) {
      const query = new URLSearchParams({ scope: world.root, pageSize: "2", pageToken });
      const { status, json = {}, text } = await rest("GET", `/chain/entries?${query}`);
      assert.equal(status, 200, text);
      const entries = json.entries as { sequence: string; row: { rootUid: string; remoteAddress: string } }[];
      for (const { row } of entries) assert.equal(row.rootUid, world.root);
      sequences.push(...entries.map(({ sequence }) => sequence));
      pageToken = String(json.nextPageToken ?? "");
      if (pageToken === "") break;
      const elsewhere = await world.audit(world.foreignOwner.token)(
        "GET",
        `/chain/entries?${new URLSearchParams({ scope: world.foreign, pageSize: "2", pageToken })}`,
      );
      assert.equal(elsewhere.status, 400, "a token of another organisation");
    }
    assert.ok(sequences.length > 5);
    assert.deepEqual(
      sequences,
      sequences.map((_, i) => String(i + 1)),
    );
    const { json = {} } = await rest("GET", `/chain?scope=${world.root}`);
    assert.equal((json.head as { sequence: string }).sequence, sequences.at(-1));
    const negative = await rest("GET", `/chain/entries?scope=${world.root}&pageSize=-1`);
    assert.equal(negative.status, 400);
  });

  test("numbers the rows of an organisation, whatever others do", async () => {
    const rest = world.audit(world.owner.token);
    const read = async () => {
      const chain = (await rest("GET", `/chain?scope=${world.root}`)).json ?? {};
      const listed = (await rest("GET", `/chain/entries?scope=${world.root}&pageSize=500`)).json ?? {};
      const entries = listed.entries as { sequence: string; rowId: string; row: { id: string; version: number } }[];
      return { chain, listed, entries };
    };
    const before = await read();
    for (let i = 0; i < 30; i++) await world.add({ rootUid: world.foreign });
    await world.add({ rootUid: world.root });
    const waiting = await read();
    // The row may have been sealed already.
    if (waiting.chain.unsealedRows === "1") {
      assert.equal(waiting.chain.firstUnsealedId, String(before.entries.length + 1));
      assert.equal(waiting.chain.settledId, String(before.entries.length));
    }
    let after = waiting;
    // The chain is read before its entries: it may be sealed between the two.
    for (let i = 0; i < 100 && after.chain.unsealedRows !== "0"; i++) {
      await delay(50);
      after = await read();
    }
    assert.equal(after.entries.length, before.entries.length + 1);
    for (const [i, { sequence, rowId, row }] of after.entries.entries()) {
      assert.deepEqual([sequence, rowId, row.id, row.version], [String(i + 1), String(i + 1), "0", 3]);
    }
    const { settledId, firstUnsealedId, unsealedRows } = after.chain;
    assert.deepEqual([settledId, firstUnsealedId, unsealedRows], [String(after.entries.length), "0", "0"]);
    assert.equal(after.listed.unsealedRowId, "0");
    const ids = await world.write((tx) => tx.audit.listNewest(1, world.root));
    assert.ok((ids[0]?.id ?? 0) > after.entries.length + 30, "control: the installation counts all rows");
  });

  test("is signed by the keys that --jwks pins, and by no others", async () => {
    const { token } = world.owner;
    const file = join(tempDir(), "jwks.json");
    const { code, stdout } = await arbor(token, "jwks", "--scope", world.root);
    assert.equal(code, 0);
    assert.deepEqual(Object.keys(JSON.parse(stdout).keys[0]).sort(), ["alg", "crv", "kid", "kty", "use", "x", "y"]);
    writeFileSync(file, stdout);
    assert.equal((await arbor(token, "verify", "--scope", world.root, "--jwks", file)).code, 0);
    const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const [known] = JSON.parse(stdout).keys as { kid: string }[];
    const jwk = publicKey.export({ format: "jwk" });
    for (const [keys, what] of [
      [[{ ...jwk, kid: "other" }], "the head is signed with a key that is not one of this installation"],
      [[{ ...jwk, kid: known?.kid }], "the signature of the head is wrong"],
    ] as const) {
      writeFileSync(file, JSON.stringify({ keys }));
      const result = await arbor(token, "verify", "--scope", world.root, "--jwks", file);
      assert.equal(result.code, 1);
      assert.match(
        result.stderr,
        new RegExp(`^arbor: the audit log is not what was sealed\n${world.root}: seq \\d+: ${what}\n$`),
      );
    }
  });

  test("flags that do not fit are refused, and say why", async () => {
    const state = join(tempDir(), "state.json");
    writeFileSync(state, JSON.stringify({ organization: rootUid(7), seq: 1, hash: "a".repeat(43) }));
    const text = join(tempDir(), "text");
    writeFileSync(text, "secret text");
    const cases: readonly (readonly [flags: readonly string[], message: RegExp])[] = [
      [["--org", world.root, "--scope", world.root], /--org: is for the command on the host/],
      [["--jwks", text], /--jwks: needs --scope/],
      [["--state", text], /--state: needs --scope/],
      [["--expect-head", "1:x"], /--expect-head: needs --scope/],
      [["--scope", world.root, "--expect-head", "1:x"], /--expect-head: must be what/],
      [["--scope", world.root, "--jwks", "/missing"], /--jwks: cannot read \/missing: no such file/],
      [["--scope", world.root, "--jwks", text], /--jwks: \S+ is not a JSON object/],
      [["--scope", world.root, "--jwks", state], /--jwks: \S+ has no key/],
      [["--scope", world.root, "--state", text], /--state: \S+ is not a JSON object/],
      [["--scope", world.root, "--state", state], new RegExp(`--state: \\S+ is of the organisation ${rootUid(7)}`)],
      [["--scope", world.root, "--state", state, "--expect-head", `1:${"a".repeat(43)}`], /goes without --state/],
    ];
    for (const [flags, message] of cases) {
      const env = { ARBOR_TOKEN: world.owner.token, ARBOR_API: world.url };
      const { code, stdout, stderr } = await runCommand(["audit", "verify", ...flags], env);
      assert.deepEqual([code, stdout], [2, ""], stderr);
      assert.match(stderr, message);
      assert.doesNotMatch(stderr, /secret/);
    }
  });
});

describe("what a verifier remembers", () => {
  const root = rootUid(0xa);
  let log: Log;
  let served: ServedLog;
  before(async () => {
    log = await openLog();
    served = await serveLog(log, [root]);
  });
  after(async () => {
    await served.stop();
    await log.close();
  });

  async function seal(count: number): Promise<void> {
    for (let i = 0; i < count; i++) await log.append(auditRow(root, { timeMs: Date.now() }));
    await log.sealer().pass();
  }

  const flags = () => ["--scope", root, "--api", served.url, "--token-file", served.tokenFile];
  const verify = (...more: readonly string[]) => runCommand(["audit", "verify", ...flags(), ...more]);
  const headIn = (stdout: string) => /^head: (\S+)$/m.exec(stdout)?.[1] ?? "";

  test("shows that the end was cut, or the log put back, although its signatures are right", async () => {
    const state = join(tempDir(), "state.json");
    await seal(2);
    const first = await verify("--state", state);
    assert.deepEqual(
      [first.code, first.stderr],
      [0, `arbor: ${state} is new: that the end was cut off before now cannot be found\n`],
    );
    assert.equal(statSync(state).mode & 0o777, 0o600);
    const before = await log.store.read((tx) => tx.auditChain.findHead(root));
    assert.ok(before);
    const earlier = { ...before };
    await seal(3);
    const second = await verify("--state", state);
    assert.deepEqual([second.code, second.stderr], [0, ""]);
    assert.equal(JSON.parse(readFileSync(state, "utf8")).seq, 5);
    assert.equal((await verify("--expect-head", headIn(first.stdout))).code, 0);
    assert.equal((await verify("--expect-head", headIn(second.stdout))).code, 0);

    // As somebody with access to the database can: the head of the time was signed.
    await log.store.write(async (tx) => {
      await tx.auditCheckpoints.deleteEntries(root, earlier.seq, 5);
      await tx.auditChain.putHead(earlier);
    });
    assert.equal((await verify()).code, 0, "signatures alone do not show it");
    const remembered = readFileSync(state, "utf8");
    const cut = "seq 3: the log was cut or put back: it ends here, and entry 5 was there before";
    for (const expected of [
      ["--state", state],
      ["--expect-head", headIn(second.stdout)],
    ]) {
      const { code, stderr } = await verify(...expected);
      assert.equal(code, 1);
      assert.equal(stderr, `arbor: the audit log is not what was sealed\n${root}: ${cut}\n`);
    }
    assert.equal(readFileSync(state, "utf8"), remembered, "a failure does not replace what was remembered");

    // The service goes on, and the log is as long as before, with other rows.
    await seal(4);
    const { code, stderr } = await verify("--state", state);
    assert.equal(code, 1);
    assert.match(stderr, /seq 5: the log was replaced: this entry is not the one that was there before\n$/);
  });

  test("is not missed where retention has deleted it", async () => {
    const state = join(tempDir(), "state.json");
    assert.equal((await verify("--state", state)).code, 0);
    await seal(3);
    await log.retention(-60_000).pass();
    const { code, stdout } = await verify("--state", state);
    assert.equal(code, 0);
    assert.match(stdout, /: 1 sealed rows after entry \d+ of /);
  });

  test("a state file is not written when the service does not answer", async () => {
    const state = join(tempDir(), "state.json");
    const { code } = await runCommand([
      "audit",
      "verify",
      "--scope",
      root,
      "--api",
      "http://127.0.0.1:1",
      "--state",
      state,
      "--token-file",
      served.tokenFile,
    ]);
    assert.equal(code, 8);
    assert.equal(existsSync(state), false);
  });
});

describe("a log that changes while it is verified", () => {
  const root = rootUid(0xb);
  let log: Log;
  let served: ServedLog;
  before(async () => {
    log = await openLog();
    served = await serveLog(log, [root]);
    for (let i = 0; i < 6; i++) await log.append(auditRow(root, { timeMs: Date.now() }));
    await log.sealer().pass();
  });
  after(async () => {
    await served.stop();
    await log.close();
  });

  // Verifies, and runs `change` once, after the state of the chain was read.
  async function verifyDuring(change: () => Promise<unknown>) {
    let isDone = false;
    let report: Awaited<ReturnType<typeof verifyRemoteLog>> | undefined;
    await withSession({ output: "table", api: served.url, tokenFile: served.tokenFile }, async ({ call }) => {
      report = await verifyRemoteLog(async (method, request) => {
        const response = await call(method, request);
        if (!isDone) {
          isDone = true;
          await change();
        }
        return response;
      }, root);
    });
    return report ?? assert.fail();
  }

  test("is verified as of the moment when more was sealed", async () => {
    const { fault, sealed } = await verifyDuring(async () => {
      for (let i = 0; i < 3; i++) await log.append(auditRow(root, { timeMs: Date.now() }));
      await log.sealer().pass();
    });
    assert.deepEqual([fault, sealed], [undefined, 6]);
    assert.equal((await served.verify(root)).sealed, 9);
  });

  test("is read again when retention deletes its beginning", async () => {
    const { fault, checkpoint } = await verifyDuring(() => log.retention(-60_000).pass());
    assert.deepEqual([fault, checkpoint?.seq], [undefined, 8]);
  });

  test("control: what an attacker deletes meanwhile is found", async () => {
    for (let i = 0; i < 3; i++) await log.append(auditRow(root, { timeMs: Date.now() }));
    await log.sealer().pass();
    const { fault } = await verifyDuring(() => log.store.write((tx) => tx.auditCheckpoints.deleteEntries(root, 9, 10)));
    assert.equal(fault?.what, "the entry is missing, the next one is 11");
  });
});
