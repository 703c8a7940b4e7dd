// The scripts, campaigns and benchmarks that pages and comments name exist, and so do their programs.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { spawnSync } from "../support/child-process.js";
import { PROJECT } from "../support/project.js";

const read = (path: string) => readFileSync(join(PROJECT, path), "utf8");
const run = (script: string, ...args: readonly string[]) =>
  spawnSync(process.execPath, [`scripts/${script}.mjs`, ...args], { cwd: PROJECT, encoding: "utf8" });

function listNames(script: string): string[] {
  const { status, stdout } = run(script);
  assert.equal(status, 0);
  return [...stdout.matchAll(/^ {2}(\S+) {2,}\S/gm)].map(([, name = ""]) => name);
}

const named: Readonly<Record<string, readonly string[]>> = {
  campaign: listNames("campaign"),
  bench: listNames("bench"),
};
const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };

function findUnknown(text: string): string[] {
  // `.ci/run` has functions of its own before the name.
  const commands = text.matchAll(
    /(?:\bnpm run|^\s*(?:limit=\d+ )?(?:script|part)) (?:-s )?([a-z][\w:-]*)(?: -- ([a-z][\w-]*))?/gm,
  );
  return [...commands].flatMap(([command, script = "", name]) => {
    const isKnown = named[script] === undefined || name === undefined || named[script].includes(name);
    return script in scripts && isKnown ? [] : [command.trim()];
  });
}

test("files name scripts, campaigns and benchmarks that exist", () => {
  const folders = ["bench", "deploy", "docs", "scripts", "src", "test"].flatMap((folder) =>
    (readdirSync(join(PROJECT, folder), { recursive: true }) as string[]).map((path) => join(folder, path)),
  );
  const files = [...folders, "CONTRIBUTING.md", "README.md", ".ci/run"].filter(
    (path) => /\.(?:md|ts|mjs)$|^\.ci/.test(path) && !path.startsWith("test/scripts") && /\bnpm run /.test(read(path)),
  );
  assert.ok(files.length > 30, `${files.length} files`);
  const unknown = files.flatMap((path) => findUnknown(read(path)).map((one) => `${path}: ${one}`));
  assert.deepEqual(unknown, []);
});

test("control: others are found", () => {
  assert.deepEqual(
    findUnknown("`npm run test:kill9`, `npm run campaign -- kill8`, `npm run campaign -- kill9`\npart test:kill9"),
    ["npm run test:kill9", "npm run campaign -- kill8", "part test:kill9"],
  );
});

for (const [script, pattern, folder, end] of [
  ["campaign", /script\("([\w-]+)"\)/g, "scripts", ".mjs"],
  ["bench", /bench\("([\w-]+)"/g, "bench", ".ts"],
] as const) {
  test(`every program of ${script} exists`, () => {
    const programs = [...read(`scripts/${script}.mjs`).matchAll(pattern)].map(([, name = ""]) => name);
    assert.ok(programs.length > 10);
    assert.deepEqual(
      programs.filter((name) => !existsSync(join(PROJECT, folder, name + end))),
      [],
    );
  });

  test(`${script} rejects another name, and lists all`, () => {
    const { status, stderr } = run(script, "nothing");
    assert.equal(status, 2);
    assert.ok((named[script] ?? []).every((name) => stderr.includes(`\n  ${name} `)));
  });
}
