// Commands on the host where the URL of the database leads to PgBouncer in transaction mode. Needs TEST_ARBOR_DATABASE_URL
// and pgbouncer.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import { runCommand } from "../support/command.js";
import { tempDir } from "../support/temp-dir.js";
import { emptyDatabase } from "./databases.js";
import { type PgBouncer, startPgBouncer, withoutPgBouncer } from "./pgbouncer.js";

describe("commands behind PgBouncer", { skip: withoutPgBouncer }, () => {
  let pooler: PgBouncer;
  let flags: readonly string[];
  before(async () => {
    const direct = await emptyDatabase();
    pooler = await startPgBouncer(direct);
    const key = join(tempDir(), "master.key");
    readMasterKey(key, true);
    const urls = ["--database-url", pooler.through(direct), "--database-direct-url", direct];
    flags = [...urls, "--database-pooler", "transaction", "--master-key-file", key];
  });
  after(() => pooler.stop());

  test("create an installation, change it and read all of it", async () => {
    const expanded = await runCommand(["migrate", "--expand", ...flags]);
    assert.deepEqual([expanded.code, expanded.stdout], [0, "expanded: this version can use the database\n"]);
    const made = await runCommand(["bootstrap", "--org", "a.example", "--json", ...flags]);
    assert.equal(made.code, 0, made.stderr);
    const log = await runCommand(["audit", "list", "--root", "", ...flags]);
    assert.equal(log.code, 0, log.stderr);
    const checked = await runCommand(["check", ...flags]);
    assert.deepEqual([checked.code, /references: sound/.test(checked.stdout)], [0, true], checked.stderr);
    assert.equal((await runCommand(["migrate", ...flags])).code, 0);
  });

  test("do not contract, because servers of older versions cannot be seen, unless they are told to", async () => {
    const refused = await runCommand(["migrate", "--contract", ...flags]);
    assert.equal(refused.code, 6, refused.stderr);
    assert.match(
      refused.stderr,
      /behind a pooler the servers of older versions cannot be seen: make sure that none runs/,
    );
    assert.equal((await runCommand(["migrate", "--contract", "--dry-run", ...flags])).code, 0);
    assert.equal((await runCommand(["migrate", "--contract", "--force", ...flags])).code, 0);
  });

  test("say that the way past the pooler is missing", async () => {
    const without = flags.filter((_, i) => i !== 2 && i !== 3);
    const refused = await runCommand(["check", ...without]);
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /--database-pooler transaction needs --database-direct-url/);
  });
});
