// Reports of thousands of tests what one wants to read: each that failed, with its
// error, how long each file took where that is over a second, and the sum.
import { writeFileSync } from "node:fs";
import { inspect } from "node:util";

const SLOW_MS = 1_000;

/** A reporter of node's test runner. */
export default async function* report(source) {
  const files = new Map();
  const failed = new Set();
  const counts = { pass: 0, fail: 0, skip: 0 };
  for await (const { type, data } of source) {
    if (type === "test:stdout" || type === "test:stderr") yield data.message;
    if (type === "test:diagnostic" && data.nesting > 0) yield `# ${data.message}\n`;
    if (type !== "test:pass" && type !== "test:fail") continue;
    const { name, nesting, file = "", skip, details } = data;
    // What scripts/test.mjs put together in one process is a suite of that name for each file.
    if (nesting === 0 && name.endsWith(".test.ts")) {
      files.set(name, details.duration_ms);
      if (type === "test:pass") continue;
    }
    if (type === "test:pass") {
      if (details.type !== "suite") counts[skip === undefined ? "pass" : "skip"]++;
      continue;
    }
    // A suite fails because of its tests, which were reported.
    if (details.error?.failureType === "subtestsFailed") continue;
    counts.fail++;
    failed.add(file);
    const { line, column } = data;
    yield `not ok: ${name}\n  ${file}:${line}:${column}\n${indented(reasonOf(details.error))}\n`;
  }
  const slow = [...files].filter(([, ms]) => ms > SLOW_MS).sort(([, a], [, b]) => b - a);
  for (const [name, ms] of slow) yield `${(ms / 1000).toFixed(1).padStart(6)} s  ${name}\n`;
  // For whoever runs them again; see scripts/test.mjs.
  if (process.env.ARBOR_FAILED_TESTS) writeFileSync(process.env.ARBOR_FAILED_TESTS, JSON.stringify([...failed]));
  yield `${counts.pass} passed, ${counts.fail} failed, ${counts.skip} skipped\n`;
}

function reasonOf(error) {
  const cause = error?.cause ?? error;
  return typeof cause === "string" ? cause : inspect(cause, { depth: 6 });
}

function indented(text) {
  return text.replace(/^/gm, "    ");
}
