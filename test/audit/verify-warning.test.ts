// The warning of a verification that rows are not sealed: it is about what waited when the log was read, however long reading
// it takes.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { auditVerifyCommand } from "../../src/cli/host/audit.js";
import { resolveSettings } from "../../src/config/config.js";
import { tempDir } from "../support/temp-dir.js";
import { auditRow, openLog } from "./log-kit.js";

const MINUTES_MS = 300_000;

/** Verifies a log whose one row was written `ageMs` before, while the time of the machine goes on by some minutes. */
async function verifySlowly(t: TestContext, ageMs: number): Promise<{ stdout: string; stderr: string }> {
  const log = await openLog(tempDir());
  await log.append(auditRow("acme", { timeMs: Date.now() - ageMs }));
  await log.close();
  const written = { stdout: "", stderr: "" };
  const { now } = Date;
  let passedMs = 0;
  t.mock.method(Date, "now", () => now() + passedMs);
  t.mock.method(process.stderr, "write", (text: string) => {
    written.stderr += text;
    return true;
  });
  t.mock.method(process.stdout, "write", (text: string) => {
    // The log has been read when its line is printed.
    passedMs = MINUTES_MS;
    written.stdout += text;
    return true;
  });
  try {
    const settings = resolveSettings({ flags: { data: log.directory }, env: {} });
    await auditVerifyCommand(settings, {});
  } finally {
    t.mock.restoreAll();
  }
  return written;
}

test("a row that was written just before is no reason to warn, when the verification takes minutes", async (t) => {
  const { stdout, stderr } = await verifySlowly(t, 0);
  assert.match(stdout, /^acme: 0 sealed rows, no signed head, 1 unsealed$/m);
  assert.equal(stderr, "");
});

test("control: a row that waited for minutes when the verification began is", async (t) => {
  const { stderr } = await verifySlowly(t, MINUTES_MS);
  assert.match(stderr, /acme: the oldest unsealed row waits for 300 s;/);
});
