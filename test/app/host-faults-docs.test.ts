// The table of docs/host-faults.md names what is printed and counted: operators search for these lines.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { families } from "../../src/telemetry/metrics/families.js";
import { PROJECT } from "../support/project.js";

const read = (path: string) => readFileSync(join(PROJECT, path), "utf8");
const sources = readdirSync(join(PROJECT, "src"), { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts"))
  .map((path) => read(join("src", path)))
  .join("\n");

test("each fault has a line of the log and a metric that exist", () => {
  const rows = [...read("docs/host-faults.md").matchAll(/^\| .* \|$/gm)].map(([row]) => row.slice(2, -2).split(" | "));
  const faults = rows.filter((cells) => cells.length === 8 && cells[0] !== "Fault");
  assert.ok(faults.length >= 26, `${faults.length}`);
  for (const [fault, , , , log = "", metric = ""] of faults) {
    const quoted = [...log.matchAll(/`([^`]+)`/g)].map(([, text]) => text);
    const isRepeated = /^the same/.test(log);
    assert.ok(quoted.length > 0 || isRepeated, `${fault}: ${log}`);
    for (const text of quoted) assert.ok(sources.includes(`"${text}"`), `${fault}: ${text}`);
    const name = /^`(\w+)/.exec(metric)?.[1];
    assert.ok(name === undefined ? metric === "the same" : name in families, `${fault}: ${metric}`);
  }
});
