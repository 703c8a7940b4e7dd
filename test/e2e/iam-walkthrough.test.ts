// An identity, its binding and the clean-up, with curl against a service of its own.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { execFile } from "../support/child-process.js";
import { tempDir } from "../support/temp-dir.js";
import { arbor, type Organisation, startService } from "./process.js";

const script = fileURLToPath(new URL("iam-walkthrough.sh", import.meta.url));

test("an owner binds an identity to the viewer role and cleans up", async (t) => {
  const data = tempDir();
  const service = await startService(data);
  t.after(() => service.stop());
  const made = await arbor("bootstrap", "--org", "example", "--json", "--data", data);
  const { group, token } = JSON.parse(made.stdout) as Organisation;
  const env = { PATH: process.env.PATH, LC_ALL: "C.UTF-8", BASE: service.url, TOKEN: token, GROUP: group };
  const { stdout, stderr } = await execFile("bash", [script], { env, timeout: 60_000 });
  assert.equal(stderr, "");
  const lines = stdout.trim().split("\n");
  assert.deepEqual(
    lines.filter((line) => !line.startsWith("ok ")),
    [],
  );
  assert.equal(lines.length, 9);
  const wrong = execFile("bash", [script], { env: { ...env, TOKEN: "none" }, timeout: 60_000 });
  await assert.rejects(wrong, ({ code }) => code !== 0);
});
