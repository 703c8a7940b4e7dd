// What docs/backup.md tells people to run and to configure.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PROJECT } from "../support/project.js";

/** The statements that void tokens and logins and record the restore. */
export function readStatements(): string {
  return findBlock("sql", "BEGIN;");
}

/** The settings of PostgreSQL that begin with a name. */
export function readConfiguration(first: "archive_mode" | "restore_command"): string {
  return findBlock("ini", first);
}

function findBlock(language: string, start: string): string {
  const text = readFileSync(join(PROJECT, "docs", "backup.md"), "utf8");
  const block = new RegExp(`^\`\`\`${language}\\n(${start}.*?)^\`\`\`$`, "ms").exec(text)?.[1];
  assert.ok(block, `docs/backup.md has a block of ${language} that begins with ${start}`);
  return block;
}
