// A shortage of file descriptors: what is logged and counted, and how many are kept free of connections.
import assert from "node:assert/strict";
import { test } from "node:test";
import { watchFileShortages } from "../../src/app/file-shortages.js";
import { buildLimits } from "../../src/app/limits.js";
import { resolveSettings } from "../../src/config/config.js";
import { createLineLog, readCounts } from "./watch-kit.js";

test("a shortage of descriptors: a line a minute however often it is met, a count, and a line at its end", (t) => {
  const { lines, logger } = createLineLog();
  let nowMs = 5_000;
  let current: Error | undefined;
  const openFile = () => {
    if (current !== undefined) throw current;
  };
  const watch = watchFileShortages({ logger, monotonicMs: () => nowMs, openFile });
  t.after(watch.stop);
  const shortage = Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" });
  current = shortage;
  for (let i = 0; i < 50; i++) {
    nowMs += 1_000;
    watch.check();
    watch.noteAcceptError(shortage);
  }
  assert.equal(lines.length, 1);
  nowMs += 11_000;
  watch.check();
  assert.equal(lines.length, 2);
  assert.deepEqual(readCounts(watch.sources, "arbor_file_shortages_total"), { accept: 50, check: 51 });
  current = undefined;
  watch.check();
  watch.check();
  assert.deepEqual(
    lines.map(({ level }) => level),
    ["error", "error", "info"],
  );
  assert.equal(lines[2]?.fields.durationMs, 60_000);
});

test("some descriptors are kept free of connections", () => {
  const settings = resolveSettings({ flags: {}, env: {} });
  assert.equal(buildLimits(settings, 1_024).connections, 824);
  assert.equal(buildLimits(settings, 100).connections, 50);
  assert.equal(buildLimits(settings, 1_000_000).connections, buildLimits(settings).connections);
});
