// What the scripts import from src, test and bench exists there: no compiler checks them.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

/** `import {…} from "../src/main.ts"`, `{…} = await import("../src/main.ts")`, `{…} = await importCompiled("src/main.ts")`. */
const IMPORT =
  /\{([^{}]*)\} (?:from |= await (?:import|importCompiled)\()"(?:\.\.\/)?((?:src|test|bench)\/[^"]+\.ts)"/g;

const scripts = readdirSync("scripts").filter((name) => name.endsWith(".mjs"));

for (const script of scripts) {
  const imports = [...readFileSync(join("scripts", script), "utf8").matchAll(IMPORT)];
  for (const [, names = "", file = ""] of imports) {
    test(`${script} imports what ${file} exports`, () => {
      assert.deepEqual(findMissing(names, readFileSync(file, "utf8")), []);
    });
  }
}

test("control: a name that its file does not export is found", () => {
  assert.deepEqual(findMissing(" openFile, closeFile ", "export function openFile() {}\nfunction closeFile() {}\n"), [
    "closeFile",
  ]);
});

function findMissing(names: string, text: string): string[] {
  const exported = [...text.matchAll(/^export (?:async )?(?:function\*?|const|class) (\w+)/gm)].map(([, name]) => name);
  return names
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "" && !exported.includes(name));
}
