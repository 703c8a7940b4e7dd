// The flags of `arbor copy`, and what it rejects before it connects to a database.
import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { openSqlite } from "../../../src/store/sqlite/open.js";
import { createFilledDirectory, withDatabase } from "../../store/copy/copy-kit.js";
import { runCommand } from "../../support/command.js";
import { tempDir } from "../../support/temp-dir.js";

const NO_SERVER = "postgres://arbor:secret@127.0.0.1:9/none";
const pgFlags = ["--database-url", NO_SERVER, "--master-key-file", "none"];

function writeUrl(mode: number, content = NO_SERVER): string {
  const file = join(tempDir(), "url");
  writeFileSync(file, content);
  chmodSync(file, mode);
  return file;
}

describe("arbor copy", () => {
  for (const { args, env = {}, rule } of [
    { args: [], rule: /--to: is required/ },
    { args: ["--to", "a", "--to-url-file", "b"], rule: /--to-url-file: cannot be combined with --to/ },
    { args: ["--to", "other"], rule: /--to: both databases are SQLite/ },
    { args: [...pgFlags, "--to", NO_SERVER], rule: /--to: both databases are PostgreSQL/ },
    { args: [...pgFlags], env: { ARBOR_COPY_TO: NO_SERVER }, rule: /--to: both databases are PostgreSQL/ },
    {
      args: ["--to-url-file", writeUrl(0o644)],
      rule: /--to-url-file: \S+ must (not be readable by others|be readable by its owner alone)/,
    },
    { args: ["--to-url-file", writeUrl(0o600, "mysql://x")], rule: /--to-url-file: \S+ must be a postgres:\/\/ URL/ },
    { args: ["--to", "dir", "--database-tls-mode", "require"], rule: /--database-tls-mode needs --database-url/ },
    {
      args: ["--to", `${NO_SERVER}?sslmode=require`, "--database-tls-mode", "require"],
      rule: /--database-tls-mode and sslmode in the database URL cannot both be given/,
    },
  ]) {
    it(`rejects ${args.map((arg) => arg.replace(/\/\S*\//, "")).join(" ")} ${Object.keys(env).join(" ")}`, async () => {
      const { code, stderr, stdout } = await runCommand(["copy", ...args], env);
      assert.equal(code, 2, stderr);
      assert.match(stderr, rule);
      assert.doesNotMatch(stderr, /secret/);
      assert.equal(stdout, "");
    });
  }

  for (const [what, args, env] of [
    ["a flag", ["--to", NO_SERVER], {}],
    ["a file", ["--to-url-file", writeUrl(0o600, `${NO_SERVER}\n`)], {}],
    ["the environment", [], { ARBOR_COPY_TO: NO_SERVER }],
    ["a flag with TLS", ["--to", NO_SERVER, "--database-tls-mode", "require"], {}],
  ] as const) {
    it(`takes the URL from ${what}, and says that there is no server`, async () => {
      const { code, stderr } = await runCommand(["copy", "--data", createFilledDirectory(), ...args], env);
      assert.equal(code, 1);
      assert.match(stderr, /ECONNREFUSED/);
      assert.doesNotMatch(stderr, /secret/);
    });
  }

  it("rejects a source that is not there, in use, or of another version, with what to do", async () => {
    const to = ["--to", NO_SERVER];
    const copy = async (data: string) => (await runCommand(["copy", "--data", data, ...to])).stderr;
    assert.match(await copy(tempDir()), /there is no installation in \S+: it has no arbor\.db/);

    const served = createFilledDirectory();
    const store = openSqlite({ directory: served, exclusive: true });
    assert.match(await copy(served), /a server or another copy uses \S+: stop it, then copy/);
    await store.close();
    assert.match(await copy(served), /ECONNREFUSED/);

    const newer = createFilledDirectory();
    withDatabase(newer, (db) =>
      db.exec(
        "INSERT INTO __drizzle_migrations (hash, created_at) SELECT hash, created_at + 100000000000 FROM __drizzle_migrations",
      ),
    );
    assert.match(
      await copy(newer),
      /a newer version of arbor than \S+ has expanded the database: copy it with that version/,
    );
  });
});
