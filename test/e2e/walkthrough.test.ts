// From nothing to a served organisation, as somebody who reads the documents
// does it: start, bootstrap, curl, stop.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { execFile } from "../support/child-process.js";
import { tempDir } from "../support/temp-dir.js";
import { arbor, type Organisation, startService } from "./process.js";

const script = fileURLToPath(new URL("walkthrough.sh", import.meta.url));

test("an operator starts the service, bootstraps beside it, walks through the calls and stops it", async (t) => {
  const data = tempDir();
  const service = await startService(data);
  t.after(() => service.stop());
  const made = await arbor("bootstrap", "--org", "example", "--json", "--data", data);
  assert.equal(made.code, 0);
  assert.match(made.stderr, /^the token is for the service at http:.*\nnext:\n/);
  const { group, identity, roleBinding, token } = JSON.parse(made.stdout) as Organisation;
  assert.match(`${group} ${identity} ${roleBinding}`, /^([0-9a-f]{40}) [0-9a-f]{40} \1\/[0-9a-f]{16}$/);

  const env = { PATH: process.env.PATH, LC_ALL: "C.UTF-8", BASE: service.url, TOKEN: token, GROUP: group };
  const { stdout, stderr } = await execFile("bash", [script], { env, timeout: 60_000 });
  assert.equal(stderr, "");
  assert.deepEqual(
    stdout.split("\n").filter((line) => line !== "" && !line.startsWith("ok ")),
    [],
  );
  assert.equal(stdout.trim().split("\n").length, 26);
  const wrong = execFile("bash", [script], { env: { ...env, GROUP: "0".repeat(40) }, timeout: 60_000 });
  await assert.rejects(wrong, ({ code, stderr: text }) => code !== 0 && text.includes("FAILED"));

  const ended = await service.stop();
  assert.deepEqual([ended.code, ended.signal], [0, null]);
  assert.equal(ended.stdout, `arbor listening on ${service.url}`, "standard output has one line");
  assert.ok(ended.ms < 5_000, `stopped within ${ended.ms} ms`);
  assert.ok(!ended.stderr.includes(token), "no token in the log");
});
