// Runs a node of the version before and one of this version on one PostgreSQL database, between expand and contract, and
// reads on each what was written through the other. Prints the number of errors:
//
//   node scripts/with-pg.mjs node scripts/two-versions.mjs CHECKOUT [--seconds N] [--control]
//
// CHECKOUT is a working tree of the version before. It must be built, and so must this one. With --control a trigger
// that copies the writes of this version is missing. Then there must be errors; otherwise the script cannot find any.
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual, parseArgs } from "node:util";
import pg from "pg";
import { register } from "tsx/esm/api";
import { runCommand, startService, untilSealed } from "./checkout.mjs";
import { ORDERS, readPages, Subtree, send } from "./subtree-walk.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: "string", default: "120" }, control: { type: "boolean", default: false } },
});
const seconds = Number(values.seconds);
if (positionals.length !== 1 || !Number.isInteger(seconds)) {
  console.error("two-versions: a CHECKOUT is needed; --seconds is a whole number");
  process.exit(2);
}
register();
const { emptyDatabase } = await import("../test/pg/databases.ts");
const { createRandom } = await import("../test/support/operations.ts");

const BASE_URL = "http://arbor.example";
const PAUSE_MS = 20;
/** How many rows a subtree has before the expand phase. */
const FIRST_ROWS = 75;

const checkouts = { old: resolve(positionals[0]), new: resolve(".") };
const directory = mkdtempSync(join(tmpdir(), "arbor-two-versions-"));
const url = await emptyDatabase();
const masterKey = join(directory, "master.key");
writeFileSync(masterKey, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600 });
const flags = ["--database-url", url, "--master-key-file", masterKey];
const run = (version, args) => runCommand(checkouts[version], [...args, ...flags], directory);
const random = createRandom(1);
const errors = [];
const started = [];
let completed = false;
try {
  await runBoth();
  completed = true;
} catch (error) {
  errors.push(String(error));
} finally {
  await Promise.all(started.map((node) => node.stop().catch((error) => errors.push(String(error)))));
  rmSync(directory, { recursive: true });
}
for (const error of errors.slice(0, 5)) console.error(`two-versions: ${error.slice(0, 600)}`);
console.log(`${errors.length} errors`);
process.exit(completed && errors.length > 0 === values.control ? 0 : 1);

async function runBoth() {
  const owner = JSON.parse(await run("old", ["bootstrap", "--org", "walk.example", "--base-url", BASE_URL, "--json"]));
  const old = await startNode("old", owner.token);
  const { roles } = await send(old, "GET", "/roles?name=viewer");
  const trees = [];
  for (let n = 0; n < 4; n++) {
    const top = await send(old, "POST", `/groups/${owner.group}`, { name: `top ${n}` });
    trees.push(new Subtree({ top, role: roles[0].uid, random, onError: (error) => errors.push(error) }));
  }
  await Promise.all(trees.map((tree) => walk(tree, [old, old], () => tree.size >= FIRST_ROWS)));
  printProgress("before the expand phase", [old], trees);

  let expanded = false;
  const startMs = performance.now();
  const expand = run("new", ["migrate", "--expand"]).finally(() => {
    expanded = true;
  });
  await Promise.all([expand, ...trees.map((tree) => walk(tree, [old, old], () => expanded))]);
  printProgress(`${Math.round(performance.now() - startMs)} ms of expand, which ended with 0`, [old], trees);
  if (values.control) await dropTrigger();
  const both = [old, await startNode("new", owner.token)];
  const endMs = performance.now() + seconds * 1000;
  const isOver = () => performance.now() > endMs;
  await Promise.all(trees.map((tree, n) => walk(tree, n % 2 === 0 ? both : both.toReversed(), isOver)));
  printProgress(`${seconds} s of both`, both, trees);

  for (const tree of trees) for (const node of both) await tree.compareLists(node);
  const ofOld = await readLists([both[0]], trees, owner.group);
  const ofNew = await readLists([both[1]], trees, owner.group);
  compare("the lists of both nodes", ofOld, ofNew);
  compare("the lists with pages of both nodes", ofOld, await readLists(both, trees, owner.group));
  if (values.control) return;
  const early = await run("new", ["migrate", "--contract"]).catch((error) => error);
  if (!/servers of an older version/.test(String(early))) errors.push(`contract beside the old node: ${early}`);
  await old.stop();
  for (const args of [["migrate", "--contract"], ["check"]]) {
    console.log(`${args.join(" ")} ended with 0: ${(await run("new", args)).trim().split("\n").join("; ")}`);
  }
  compare("the lists after the contract phase", ofOld, await readLists([both[1]], trees, owner.group));
  console.log(`audit verify ended with 0: ${(await untilSealed((...args) => run("new", args))).trim()}`);
}

/** Changes a subtree through one node, and reads it on the other. */
async function walk(tree, [writer, reader], isOver) {
  while (!isOver()) {
    await tree.step(writer, reader);
    await sleep(PAUSE_MS);
  }
}

/** All rows of lists in every order, by what was read. */
async function readLists(nodes, trees, root) {
  const tops = [root, ...trees.map(({ uid }) => uid)];
  const filters = ["descendants_of", "children_of"].flatMap((name) => tops.map((uid) => ({ [`uidp.${name}`]: uid })));
  const lists = {};
  for (const [kind, fields] of Object.entries(ORDERS)) {
    for (const order of fields.flatMap((field) => [field, `${field} desc`])) {
      for (const filter of [{}, ...filters]) {
        const query = { ...filter, order_by: order, page_size: 50 };
        lists[`${kind} ${JSON.stringify(query)}`] = await readPages(nodes, kind, query);
      }
    }
  }
  return lists;
}

function compare(what, before, after) {
  const labels = Object.keys(before);
  const different = labels.filter((label) => !isDeepStrictEqual(before[label], after[label]));
  errors.push(...different.map((label) => `${what}: ${label}`));
  console.log(`${what}: ${labels.length} lists compared, ${different.length} different`);
}

function printProgress(what, nodes, trees) {
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  const changes = Object.keys(trees[0].changes).map(
    (name) => `${sum(trees.map((tree) => tree.changes[name]))} ${name}`,
  );
  const requests = nodes.map(
    (node) => `${node.requests} requests of the ${node.name} node (longest ${node.longestMs} ms)`,
  );
  const rows = `${sum(trees.map(({ size }) => size))} rows`;
  console.log(`${what}: ${[...requests, rows, ...changes, `${errors.length} errors`].join(", ")}`);
  for (const node of nodes) Object.assign(node, { requests: 0, longestMs: 0 });
}

async function startNode(name, token) {
  const service = await startService(checkouts[name], [...flags, "--base-url", BASE_URL], directory);
  const node = { ...service, name, token, requests: 0, longestMs: 0 };
  started.push(node);
  return node;
}

async function dropTrigger() {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("DROP TRIGGER arbor_copy_text_entries_insert ON text_entries");
  await client.end();
}
