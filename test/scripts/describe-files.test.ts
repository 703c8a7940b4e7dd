// Many files in one process fail as they do alone.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { spawnSync } from "../support/child-process.js";
import { environmentWithoutSettings, PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

const later = (what: string) =>
  `test("one", async () => { ${what}; await new Promise((resolve) => setTimeout(resolve, 50)); });`;

const files = [
  { name: "passes", body: `test("one", () => {});`, fails: false },
  { name: "fails", body: `test("one", () => { throw new Error("of the file"); });`, fails: true },
  { name: "throws later", body: later(`setTimeout(() => { throw new Error("of the file"); })`), fails: true },
  { name: "rejects and waits", body: later(`void Promise.reject(new Error("of the file"))`), fails: true },
  { name: "cannot be imported", body: `throw new Error("of the file");`, fails: true },
  {
    name: "declares tests after it waited",
    body: `await new Promise((resolve) => setTimeout(resolve, 20));
      test("one", () => { throw new Error("of the file"); });`,
    fails: true,
  },
];

for (const { name, body, fails } of files) {
  test(`a file that ${name}: the others pass, and its suite ${fails ? "fails with its error" : "passes too"}`, () => {
    const report = runTogether({ first: `test("one", () => {});`, second: body, third: `test("one", () => {});` });
    assert.match(report, /^ok \d+ - first$/m);
    assert.match(report, fails ? /^not ok \d+ - second$/m : /^ok \d+ - second$/m);
    assert.equal(/of the file/.test(report), fails);
    assert.match(report, /^ok \d+ - third$/m);
  });
}

/** The report of some files, in the format of TAP. */
function runTogether(bodies: Readonly<Record<string, string>>): string {
  const directory = tempDir();
  const addresses = Object.entries(bodies).map(([name, body]) => {
    const path = join(directory, `${name}.mjs`);
    writeFileSync(path, `import { test } from "node:test";\n${body}\n`);
    return [name, pathToFileURL(path).href];
  });
  const together = join(directory, "together.test.mjs");
  const imported = JSON.stringify(pathToFileURL(join(PROJECT, "scripts/describe-files.mjs")).href);
  const given = JSON.stringify(Object.fromEntries(addresses));
  writeFileSync(together, `import { describeFiles } from ${imported};\ndescribeFiles(${given});\n`);
  return String(
    spawnSync(process.execPath, ["--test-reporter=tap", together], { env: environmentWithoutSettings() }).stdout,
  );
}
