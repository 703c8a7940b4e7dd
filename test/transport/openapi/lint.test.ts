// A public linter finds nothing wrong with the documents, by its recommended rules.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { spawnSync } from "../../support/child-process.js";
import { featureDocument, groupsDocument, signInDocument } from "../../support/openapi/documents.js";
import { tempDir } from "../../support/temp-dir.js";

const require = createRequire(import.meta.url);
const linter = join(dirname(require.resolve("@redocly/cli/package.json")), "bin", "cli.js");

interface Report {
  readonly totals: { readonly errors: number; readonly warnings: number; readonly ignored: number };
  readonly problems: readonly { readonly ruleId: string; readonly message: string; readonly location: unknown }[];
}

for (const [name, document] of [
  ["groups", groupsDocument()],
  ["sign-in", signInDocument()],
  ["feature", featureDocument()],
] as const) {
  test(`${name}: neither errors nor warnings`, () => {
    const directory = tempDir();
    writeFileSync(join(directory, "openapi.json"), JSON.stringify(document));
    const args = [linter, "lint", "openapi.json", "--extends=recommended", "--format=json"];
    const env = { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
    const options = { cwd: directory, env, encoding: "utf8", maxBuffer: 1 << 26 } as const;
    const { stdout, stderr } = spawnSync(process.execPath, args, options);
    assert.match(stdout, /^\{/m, stderr);
    const { totals, problems } = JSON.parse(stdout.slice(stdout.indexOf("{"))) as Report;
    assert.deepEqual({ problems, totals }, { problems: [], totals: { errors: 0, warnings: 0, ignored: 0 } });
  });
}
