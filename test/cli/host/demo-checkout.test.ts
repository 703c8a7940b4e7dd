// In a checkout that was not compiled, what the demo calls arbor reads the files of the directory that the user is in.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { spawnSync } from "../../support/child-process.js";
import { environmentWithoutSettings, PROJECT } from "../../support/project.js";
import { tempDir } from "../../support/temp-dir.js";

const PRINT = `import { formatAnnouncement } from "./src/cli/host/demo/walkthrough.ts";
const organisation = { platform: "p", workload: "w", builder: "b" };
console.log(formatAnnouncement({ url: "http://a", issuer: "http://b", data: "/d", workloadToken: "/t", organisation }, { kept: true, hasConsole: false }));`;

it("the demo's arbor reads relative files, and finds its own", () => {
  const env = environmentWithoutSettings();
  const args = ["--import", "tsx", "--input-type=module", "--eval", PRINT];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: PROJECT, env, encoding: "utf8" });
  const definition = stdout.split("\n").find((line) => line.startsWith("  arbor() {"));
  assert.ok(definition?.includes("main.ts"), stdout + stderr);
  const elsewhere = tempDir();
  writeFileSync(join(elsewhere, "settings.json"), JSON.stringify({ listen: "127.0.0.1:4711" }));
  const script = `${definition}\narbor config print --config settings.json`;
  const printed = spawnSync("bash", ["-c", script], { cwd: elsewhere, env, encoding: "utf8" });
  assert.equal(printed.status, 0, printed.stderr);
  assert.match(printed.stdout, /^listen +settings\.json +127\.0\.0\.1:4711$/m);
});
