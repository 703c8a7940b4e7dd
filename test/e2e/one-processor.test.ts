// The usual container has one processor. A driver that does not fit the running
// Node ends the service there while it starts, most times but not always.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { spawn } from "../support/child-process.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../support/project.js";
import { chooseScale } from "../support/scale.js";
import { tempDir } from "../support/temp-dir.js";

const STARTS = chooseScale(10, 3);
const START_MS = 60_000;
const env = environmentWithoutSettings();

test(`starts ${STARTS} times of ${STARTS} on one processor`, { skip: process.platform !== "linux" }, async () => {
  for (let i = 1; i <= STARTS; i++) {
    const { line, code, signal, stderr } = await startOnce(tempDir());
    assert.match(line, /^arbor listening on /, `start ${i} ended with ${code ?? signal}: ${stderr}`);
    assert.deepEqual([code, signal], [0, null], `start ${i}: ${stderr}`);
  }
});

/** Starts the service on a new data directory, and stops it when it listens; tells how that went. */
async function startOnce(data: string) {
  const serve = [
    ...scriptArguments("src/main.ts"),
    "serve",
    "--data",
    data,
    "--listen",
    "127.0.0.1:0",
    "--no-access-log",
  ];
  const child = spawn("taskset", ["-c", "0", process.execPath, ...serve], { cwd: PROJECT, env, timeout: START_MS });
  const closed = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  let [line, stderr] = ["", ""];
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  child.stdout.on("data", (chunk) => {
    line += chunk;
    if (line.endsWith("\n")) child.kill("SIGTERM");
  });
  const [code, signal] = await closed;
  return { line, code, signal, stderr };
}
