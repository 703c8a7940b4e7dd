// Checks that kill -9 of nodes that share a PostgreSQL database fails no call of a client that retries, and loses no
// acknowledged write:
//
//   node scripts/with-pg.mjs node scripts/node-kills.mjs [--kills N] [--nodes N] [--control]
//
// With --control clients do not retry, and the database undoes some updates that it acknowledges. Then calls must fail and
// writes must be lost; otherwise the campaign cannot find any.
import { parseArgs } from "node:util";
import { importCompiled } from "./import-compiled.mjs";

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "10" },
    nodes: { type: "string", default: "3" },
    control: { type: "boolean", default: false },
  },
});
const { control } = values;
const [kills, nodes] = [Number(values.kills), Number(values.nodes)];
if (!(Number.isInteger(kills) && kills > 0 && Number.isInteger(nodes) && nodes > 1)) {
  console.error("node-kills: --kills must be a whole number above 0, and --nodes one above 1");
  process.exit(2);
}
const { runNodeKills } = await importCompiled("test/faults/node-kills.ts");
const { acknowledged, failed, lost, problems, retries, found, restartMs } = await runNodeKills({
  kills,
  nodes,
  control,
});
for (const text of [...failed.slice(0, 5), ...lost.slice(0, 5), ...problems.slice(0, 10)]) {
  console.error(`node-kills: ${text}`);
}
console.log(
  `${kills} kills of ${nodes} nodes, ${acknowledged} acknowledged, ${lost.length} lost, ${failed.length} calls failed after ${retries} retries, ${found} creates found, ${problems.length} problems`,
);
console.log(`a killed node listens again after ${restartMs[restartMs.length >> 1].toFixed(0)} ms (median)`);
const isFound = failed.length > 0 && lost.length > 0;
if (control && !isFound) console.error("node-kills: the control was not found, so the campaign proves nothing");
const held = failed.length === 0 && lost.length === 0 && problems.length === 0;
process.exit((control ? isFound : held) ? 0 : 1);
