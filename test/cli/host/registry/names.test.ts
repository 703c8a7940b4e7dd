// What the commands print that give organisations their names in the registry and move them there.
import assert from "node:assert/strict";
import { test } from "node:test";
import { runCommand } from "../../../support/command.js";
import { tempDir } from "../../../support/temp-dir.js";

test("verification says what the path of the images is, once", async () => {
  const flags = ["--data", tempDir()];
  const made = await runCommand(["bootstrap", "--org", "acme.example", "--json", ...flags]);
  const { group } = JSON.parse(made.stdout) as { group: string };
  const first = await runCommand(["admin", "group", "verify", group, "--keep-uid-pulls", ...flags]);
  assert.deepEqual([first.code, first.stdout], [0, ""]);
  assert.equal(
    first.stderr,
    "arbor: images are pushed and pulled as acme.example/REPO from now on\n" +
      `arbor: \`arbor registry move\` brings what was pushed under ${group} to acme.example\n`,
  );
  assert.deepEqual(await runCommand(["admin", "group", "verify", group, ...flags]), {
    code: 0,
    stdout: "",
    stderr: "",
  });
});

for (const command of ["sync", "move"]) {
  test(`${command} reports missing settings and an unreachable registry`, async () => {
    const flags = ["--data", tempDir()];
    assert.equal((await runCommand(["bootstrap", "--org", "acme.example", ...flags])).code, 0);
    const without = await runCommand(["registry", command, ...flags]);
    assert.deepEqual([without.code, without.stdout], [6, ""]);
    assert.match(without.stderr, /--registry-url/);
    const away = await runCommand(["registry", command, ...flags, "--registry-url", "http://127.0.0.1:1"]);
    assert.deepEqual([away.code, away.stdout], [8, ""]);
    assert.match(away.stderr, /the registry cannot be reached/);
  });
}
