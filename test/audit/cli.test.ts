// What operators see of the log, beside a service that runs and without one.
import assert from "node:assert/strict";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as afterMs } from "node:timers/promises";
import { escapeControls } from "../../src/cli/output/terminal.js";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import type { AuditRow } from "../../src/store/tables/audit.js";
import { type Host, type Organisation, startHost, startService } from "../e2e/process.js";
import { spawn } from "../support/child-process.js";
import { runCommand } from "../support/command.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { attack, auditRow, openLog } from "./log-kit.js";

const [ann, bob, zoe, nobody] = ["a", "b", "c", "d"].map((digit) => digit.repeat(40)) as [
  string,
  string,
  string,
  string,
];

const TIME = "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z";

describe("arbor audit", () => {
  const data = tempDir();
  let host: Host;
  let acme: Organisation;
  let other: Organisation;
  before(async () => {
    host = startHost();
    acme = await host.bootstrap(data, "acme.example");
    other = await host.bootstrap(data, "other.example");
  });
  after(() => host.close());
  const audit = (...args: readonly string[]) => host.run(["audit", ...args, "--data", data]);

  test("unsealed rows are reported, and are no failure", async () => {
    const { code, stdout, stderr } = await audit("verify", "--root", acme.group);
    assert.deepEqual(
      { code, stdout },
      { code: 0, stdout: `${acme.group}: 0 sealed rows, no signed head, 1 unsealed\n` },
    );
    assert.equal(stderr, "");
  });

  test("beside a running service everything is sealed and verified", async () => {
    const service = await startService(data, "--log-level", "error");
    const { code } = await host.run(["admin", "keys", "rotate", "--purpose", "audit", "--data", data]);
    assert.equal(code, 0);
    let result = await audit("verify");
    for (let tries = 0; tries < 100 && !/^(.*, 0 unsealed\n){3}$/.test(result.stdout); tries++) {
      await afterMs(50);
      result = await audit("verify");
    }
    assert.match(
      result.stdout,
      new RegExp(`^\\(installation\\): 1 sealed rows, head signed ${TIME}, 0 unsealed$`, "m"),
    );
    assert.match(result.stdout, new RegExp(`^${acme.group}: 1 sealed rows, head signed ${TIME}, 0 unsealed$`, "m"));
    assert.deepEqual([result.code, result.stderr], [0, ""]);
    const stopped = await service.stop();
    assert.deepEqual([stopped.code, stopped.stderr], [0, ""]);
  });

  test("an empty organisation is not taken for that of the installation", async () => {
    const { code, stdout, stderr } = await audit("verify", "--root", "");
    assert.deepEqual([code, stdout], [2, ""]);
    assert.match(stderr, /--org: must not be empty/);
  });

  test("where there is no log yet, that is said", async () => {
    const data = join(tempDir(), "data");
    assert.equal((await runCommand(["migrate", "--expand", "--data", data])).code, 0);
    readMasterKey(join(data, "master.key"), true);
    const { code, stdout } = await runCommand(["audit", "verify", "--data", data]);
    assert.deepEqual([code, stdout], [0, "no audit logs\n"]);
  });

  test("the sealed rows of an organisation are exported, with the signed head last", async () => {
    const { code, stdout } = await audit("export", "--root", acme.group);
    assert.equal(code, 0);
    const [entry, last] = stdout.split("\n", 2).map((line) => JSON.parse(line));
    assert.deepEqual([entry.seq, entry.row.type, entry.row.rootUid], [1, "arbor.bootstrap.v1", acme.group]);
    assert.deepEqual([last.head.seq, last.head.hash, last.key.crv], [1, entry.hash, "P-256"]);
  });

  for (const command of ["verify", "list", "tail", "export"]) {
    test(`${command} of an organisation that has no log fails`, async () => {
      const root = "0".repeat(40);
      const { code, stdout, stderr } = await audit(command, "--root", root);
      assert.deepEqual([code, stdout], [5, ""]);
      assert.equal(stderr, `arbor: Not found: audit log: there is no log of ${root}\n`);
    });
  }

  test("rows are listed newest first, with nothing that a terminal would act upon", async () => {
    const log = await openLog(data);
    const evil = {
      requestId: "\u001b[2Jgone\u0007\n",
      type: "\u202Etxt",
      actorUid: "\u009b1A",
      subjectUid: "ü",
      actorName: "\u202eA",
    };
    await log.append(auditRow(acme.group, { ...evil, timeMs: 1_763_675_334_123, remoteAddress: "" }));
    await log.close();
    const table = await audit("list", "--root", acme.group);
    assert.equal(table.code, 0);
    const [header, first, second, ...rest] = table.stdout.split("\n");
    assert.match(header ?? "", /^TIME +TYPE +BY +CHANGE +FROM +REQUEST +ACTOR +SUBJECT$/);
    assert.deepEqual(first?.split(/ {2,}/), [
      "2025-11-20T21:48:54.123Z",
      "\\u202etxt",
      "\\u202eA",
      "-",
      "-",
      "\\u001b[2Jgone\\u0007\\u000a",
      "\\u009b1A",
      "ü",
    ]);
    assert.match(second ?? "", new RegExp(`^${TIME} +arbor.bootstrap.v1 +- .* +${acme.group}$`));
    assert.deepEqual(rest, [""]);
    const json = await audit("list", "--json", "--page-size", "1");
    assert.equal((await audit("list", "--json", "--limit", "1")).stdout, json.stdout);
    assert.doesNotMatch(json.stdout, /[^\x20-\x7e\nü]/);
    assert.deepEqual(JSON.parse(json.stdout), {
      ...evil,
      time: "2025-11-20T21:48:54.123Z",
      rootUid: acme.group,
      method: "/test.Things/Make",
      tokenId: "token",
      remoteAddress: "",
      version: 3,
      bodyHash: "",
      traceId: "",
    });
    assert.equal((await audit("list", "--root", "")).stdout.split("\n").length, 3, "what belongs to no organisation");
    for (const flag of ["--subject", "--actor"]) {
      const { code, stderr } = await audit("list", flag, "");
      assert.deepEqual([code, stderr.includes(`${flag}: must not be empty`)], [2, true], flag);
    }
  });

  test("an old unsealed tail is a warning", async () => {
    const { code, stderr } = await audit("verify", "--root", acme.group);
    assert.equal(code, 0);
    assert.match(
      stderr,
      new RegExp(
        `^arbor: warning: ${acme.group}: the oldest unsealed row waits for \\d+ s; a running server seals within one, so none runs or it cannot\n$`,
      ),
    );
  });

  test("a tampered log fails with its name and entry, and other logs are reported too", async () => {
    attack(data, `UPDATE audit SET actor_uid = 'x' WHERE root_uid = '${acme.group}' AND type = 'arbor.bootstrap.v1'`);
    const { code, stdout, stderr } = await audit("verify");
    assert.equal(code, 1);
    assert.equal(stdout.split("\n").length, 4);
    assert.match(
      stdout,
      new RegExp(`^${acme.group}: 0 sealed rows before the first fault, head signed ${TIME}, 1 unsealed$`, "m"),
    );
    const fault = `${acme.group}: seq 1: row 1 is not what was sealed here: it was changed, moved or inserted`;
    assert.ok(stderr.endsWith(`arbor: the audit log is not what was sealed\n${fault}\n`), stderr);
    attack(data, `UPDATE audit SET actor_uid = '' WHERE root_uid = '${acme.group}' AND type = 'arbor.bootstrap.v1'`);
    assert.equal((await audit("verify")).code, 0);
  });

  test("rows are listed by what was changed, by whom, when and by which request", async () => {
    const log = await openLog(data);
    const at = (timeMs: number, values: object) => auditRow(other.group, { timeMs, ...values });
    await log.append(
      at(1_000, { actorUid: ann, requestId: "r-1" }),
      at(2_000, { actorUid: bob, requestId: "r-2", type: "test.thing.deleted.v1" }),
      at(3_000, { actorUid: ann, requestId: "r-3", subjectUid: `${other.group}/3` }),
      auditRow(acme.group, { timeMs: 4_000, actorUid: ann, requestId: "r-4" }),
    );
    await log.close();
    const root = ["--root", other.group];
    const cases: readonly { flags: readonly string[]; found: readonly string[] }[] = [
      { flags: ["--actor", ann], found: ["r-4", "r-3", "r-1"] },
      { flags: ["--actor", ann, ...root], found: ["r-3", "r-1"] },
      { flags: ["--actor", nobody, ...root], found: [] },
      { flags: ["--type", "test.thing.deleted.v1"], found: ["r-2"] },
      { flags: ["--subject", `${other.group}/3`], found: ["r-3"] },
      { flags: ["--request-id", "r-2"], found: ["r-2"] },
      { flags: ["--request-id", "r-2", "--actor", ann], found: [] },
      { flags: ["--since", "1970-01-01T00:00:02Z", "--until", "1970-01-01T00:00:04Z"], found: ["r-3", "r-2"] },
      { flags: ["--until", "1970-01-01T00:00:02.001Z", ...root], found: ["r-2", "r-1"] },
      { flags: ["--actor", ann, "--page-size", "1"], found: ["r-4"] },
    ];
    for (const { flags, found } of cases) {
      const { code, stdout, stderr } = await audit("list", "--json", ...flags);
      assert.deepEqual([code, stderr], [0, ""]);
      const lines = stdout.split("\n").filter((line) => line !== "");
      assert.deepEqual(
        lines.map((line) => JSON.parse(line).requestId),
        found,
        flags.join(" "),
      );
    }
    const backwards = await audit("list", "--since", "2026-01-02", "--until", "2026-01-01");
    assert.deepEqual([backwards.code, backwards.stdout], [2, ""]);
    assert.match(backwards.stderr, /--until: must be after --since/);
    const exported = await audit("export", "--root", acme.group, "--actor", ann);
    assert.deepEqual([exported.code, exported.stdout], [2, ""], "a chain has no gaps");
  });

  describe("tail", () => {
    const spawnTail = (...args: readonly string[]) => {
      const child = spawn(
        process.execPath,
        [...scriptArguments("src/main.ts"), "audit", "tail", "--data", data, ...args],
        { cwd: PROJECT, env: environmentWithoutSettings(), stdio: ["ignore", "pipe", "pipe"] },
      );
      const texts = { stdout: "", stderr: "" };
      for (const name of ["stdout", "stderr"] as const)
        child[name].setEncoding("utf8").on("data", (chunk: string) => (texts[name] += chunk));
      return { child, texts, ended: once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]> };
    };
    // A row that is written before the command follows the log is not printed, so rows are written until one is.
    async function appendUntil(isDone: () => boolean, values: Partial<AuditRow>): Promise<void> {
      const log = await openLog(data);
      for (let tries = 0; tries < 100 && !isDone(); tries++) {
        await log.append(
          auditRow(other.group, { ...values, requestId: "tail-other-root" }),
          auditRow(acme.group, { ...values, actorUid: "eve", requestId: "tail-other-actor" }),
          auditRow(acme.group, { ...values, requestId: "tail-1" }),
        );
        await afterMs(100);
      }
      await log.close();
      assert.ok(isDone());
    }

    test("prints the rows that its filters select, until SIGINT", async (t) => {
      const { child, texts, ended } = spawnTail("--root", acme.group, "--actor", zoe, "--json");
      t.after(() => child.kill("SIGKILL"));
      await appendUntil(() => texts.stdout.includes("\n"), { actorUid: zoe, timeMs: 5_000 });
      child.kill("SIGINT");
      assert.deepEqual(await ended, [null, "SIGINT"]);
      const rows = texts.stdout.trimEnd().split("\n");
      for (const row of rows) {
        const { time, requestId, actorUid, rootUid } = JSON.parse(row);
        assert.deepEqual([time, requestId, actorUid, rootUid], ["1970-01-01T00:00:05.000Z", "tail-1", zoe, acme.group]);
      }
      assert.equal(texts.stderr, "");
      const listed = await audit("list", "--actor", zoe, "--root", acme.group, "--page-size", "1", "--json");
      assert.deepEqual(JSON.parse(rows[0] ?? ""), JSON.parse(listed.stdout), "a row looks as in a list");
    });

    test("ends when nobody reads what it prints", async (t) => {
      const { child, texts, ended } = spawnTail();
      t.after(() => child.kill("SIGKILL"));
      await appendUntil(() => texts.stdout.includes("tail-other-root"), { actorUid: "yan" });
      assert.match(texts.stdout, /^TIME +TYPE +BY +CHANGE +FROM +REQUEST +ACTOR +SUBJECT\n/);
      child.stdout.destroy();
      let code: number | null | undefined;
      void ended.then(([given]) => (code = given));
      await appendUntil(() => code !== undefined, { actorUid: "yan" });
      assert.deepEqual([code, texts.stderr], [0, ""]);
    });
  });

  test("a key that the master key did not seal is not used", async () => {
    attack(data, "UPDATE keys SET sealed = 'AAAA' WHERE purpose = 'audit'");
    const { code, stderr } = await audit("verify");
    assert.equal(code, 6);
    assert.match(stderr, /^arbor: --master-key-file: \S+ does not open what is stored \(audit \S+\)\n$/);
  });
});

const limits: readonly { limit: string; reason: string }[] = [
  { limit: "0", reason: "nothing" },
  { limit: "-1", reason: "less than nothing" },
  { limit: "1.5", reason: "a part of a row" },
  { limit: "1000001", reason: "too many" },
  { limit: "ten", reason: "no number" },
];

test("a limit is a number of rows", async (t) => {
  const host = startHost();
  t.after(() => host.close());
  const data = tempDir();
  for (const { limit, reason } of limits) {
    const { code, stderr } = await host.run(["audit", "list", `--page-size=${limit}`, "--data", data]);
    assert.equal(code, 2, reason);
    assert.equal(stderr, "arbor: --page-size: must be a number from 1 to 1000000; see arbor audit list --help\n");
  }
});

const texts: readonly { text: string; shown: string; reason: string }[] = [
  { text: "plain ü 🌳", shown: "plain ü 🌳", reason: "what can be shown" },
  { text: "a\u0000b\tc\u007f", shown: "a\\u0000b\\u0009c\\u007f", reason: "control characters of ASCII" },
  { text: "\u0085\u009b", shown: "\\u0085\\u009b", reason: "control characters of Latin 1" },
  { text: "\u2028\u2029", shown: "\\u2028\\u2029", reason: "line ends" },
  { text: "\u202e\u2066\u200b\ufeff", shown: "\\u202e\\u2066\\u200b\\ufeff", reason: "what turns or hides text" },
  { text: "\u{e0041}", shown: "\\udb40\\udc41", reason: "tags beyond 16 bits" },
];

for (const { text, shown, reason } of texts) {
  test(`printable: ${reason}`, () => {
    assert.equal(escapeControls(text), shown);
    assert.equal(JSON.parse(`"${escapeControls(text)}"`), text);
  });
}
