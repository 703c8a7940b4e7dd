// Reports thousands of tests briefly: each failure with its error, the duration of
// files that take more than a second, and the totals.
import { writeFileSync } from "node:fs";
import { inspect } from "node:util";

const SLOW_MS = 1_000;

/** A reporter of node's test runner. */
export default async function* report(source) {
  const files = new Map();
  const failed = new Set();
  /** The files of what failed since the last test or suite that is in no other. */
  let failedIn = [];
  const counts = { pass: 0, fail: 0, skip: 0 };
  for await (const { type, data } of source) {
    if (type === "test:stdout" || type === "test:stderr") yield data.message;
    if (type === "test:diagnostic" && data.nesting > 0) yield `# ${data.message}\n`;
    if (type !== "test:pass" && type !== "test:fail") continue;
    const { name, nesting, file = "", skip, details } = data;
    // scripts/run-shards.mjs runs several files in one process, each as a suite with the name of the file. It comes
    // after its tests, which may be in files that several share.
    if (nesting === 0 && name.endsWith(".test.ts")) {
      files.set(name, details.duration_ms);
      if (type === "test:pass") continue;
    }
    if (type === "test:pass") {
      if (details.type !== "suite") counts[skip === undefined ? "pass" : "skip"]++;
      continue;
    }
    // A suite fails because of tests that are reported already.
    if (details.error?.failureType !== "subtestsFailed") {
      counts.fail++;
      failedIn.push(file);
      const { line, column } = data;
      yield `not ok: ${name}\n  ${file}:${line}:${column}\n${indent(formatReason(details.error))}\n`;
    }
    if (nesting === 0) {
      for (const one of failedIn) failed.add(name.endsWith(".test.ts") ? name : one);
      failedIn = [];
    }
  }
  const slow = [...files].filter(([, ms]) => ms > SLOW_MS).sort(([, a], [, b]) => b - a);
  for (const [name, ms] of slow) yield `${(ms / 1000).toFixed(1).padStart(6)} s  ${name}\n`;
  // scripts/run-shards.mjs runs the failed files again.
  const summary = { ...counts, files: [...failed] };
  if (process.env.TEST_SUMMARY_FILE) writeFileSync(process.env.TEST_SUMMARY_FILE, JSON.stringify(summary));
  yield `${counts.pass} passed, ${counts.fail} failed, ${counts.skip} skipped\n`;
}

function formatReason(error) {
  const cause = error?.cause ?? error;
  return typeof cause === "string" ? cause : inspect(cause, { depth: 6 });
}

function indent(text) {
  return text.replace(/^/gm, "    ");
}
