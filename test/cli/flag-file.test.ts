// Every flag that names a file: one that cannot be read is a wrong flag, with the exit code 2 and one text.
import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import type { Command } from "commander";
import { createProgram } from "../../src/cli/program.js";
import { flagOf, settings } from "../../src/config/settings.js";
import { runCommand } from "../support/command.js";
import { tempDir } from "../support/temp-dir.js";

const UID = "0".repeat(40);
const log = ["--scope", UID];

/** A command for each flag. */
const commands: Readonly<Record<string, readonly string[]>> = {
  "--invite-file": ["auth", "login"],
  "--identity-token": ["auth", "login", "--identity", `${UID}/1`],
  "--claims-file": ["iam", "identities", "test-claims", UID],
  "--token-file": ["whoami"],
  "--file": ["iam", "groups", "create", "--parent", UID],
  "--leaked-token": ["iam", "identities", "revoke-tokens", "--yes"],
  "--oidc-client-secret-file": ["iam", "identity-providers", "create", "--parent", UID],
  "--static-keys-issuer-keys-file": ["iam", "identities", "create", "--parent", UID],
  "--content-file": ["registry", "readmes", "update", `${UID}/1`],
  "--repositories-file": ["iam", "identities", "convert-github", "--yes"],
  "--jwks": ["audit", "verify", ...log],
  "--state": ["audit", "verify", ...log],
  "--to-url-file": ["copy"],
  "--config": ["config", "check"],
};

/** More commands of the same flags, whose modules are others. */
const others: [flag: string, args: readonly string[]][] = [
  ["--identity-token", ["auth", "configure-docker", "--registry", "r.example", "--identity", `${UID}/1`]],
  ["--identity-token", ["iam", "identities", "test-claims", UID]],
  ["--token-file", ["can", "me", "groups.list", "--group", UID]],
  ["--token-file", ["audit", "list", ...log]],
  ["--token-file", ["audit", "verify", ...log]],
  ["--token-file", ["events", "listen", ...log]],
  ["--token-file", ["members", "list", "--group", UID]],
  ["--token-file", ["auth", "pull-tokens", "list"]],
  ["--file", ["api", "call", "ListGroups"]],
];

let directory: string;
before(() => {
  directory = tempDir();
});

// Errors of flags end with where the help is, those of settings do not.
function withoutPointer(stderr: string): string {
  return stderr.replace(/; see arbor [a-z -]+ --help\n$/, "\n");
}

async function assertRejected(flag: string, args: readonly string[]): Promise<void> {
  const env = { ARBOR_CREDENTIALS: `${directory}/credentials.json`, ARBOR_API: "http://127.0.0.1:1" };
  const missing = await runCommand([...args, flag, `${directory}/none`], env);
  // A file with state is created by the first run.
  if (flag !== "--state") {
    assert.deepEqual([missing.code, missing.stdout], [2, ""], missing.stderr);
    assert.ok(
      withoutPointer(missing.stderr).endsWith(`${flag}: cannot read ${directory}/none: no such file\n`),
      missing.stderr,
    );
  }
  const { code, stderr } = await runCommand([...args, flag, directory], env);
  assert.equal(code, 2, stderr);
  assert.ok(withoutPointer(stderr).endsWith(`${flag}: cannot read ${directory}: is a directory\n`), stderr);
}

describe("a file that cannot be read", () => {
  for (const [flag, args] of [...Object.entries(commands), ...others]) {
    it(`is a wrong ${flag} of arbor ${args.slice(0, 2).join(" ")}`, () => assertRejected(flag, args));
  }

  it("is told by its whole path", async () => {
    const { stderr } = await runCommand(["whoami", "--token-file", "none/at/all"]);
    assert.ok(withoutPointer(stderr).endsWith(`cannot read ${process.cwd()}/none/at/all: no such file\n`), stderr);
  });

  it("is tested for every flag with a file, except settings", async () => {
    const found = new Set<string>();
    const collect = (command: Command) => {
      for (const { flags, long } of command.options) if (/<file>$/.test(flags) && long) found.add(long);
      for (const sub of command.commands) collect(sub);
    };
    collect(await createProgram());
    const settingFlags = Object.keys(settings).map((name) => flagOf(name));
    assert.ok(found.has("--login-providers") && settingFlags.includes("--login-providers"), "the control");
    // test/config has the errors of settings, which all commands read by one table.
    assert.deepEqual([...found].filter((flag) => !settingFlags.includes(flag)).sort(), Object.keys(commands).sort());
  });
});
