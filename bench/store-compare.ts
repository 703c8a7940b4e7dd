// The store of this checkout against that of another one, each in a process of its own on a database of its own, in
// short alternating slices: creating groups, reading them, and pages of lists.
//
//   node --import tsx bench/store-compare.ts --against DIRECTORY [--rows 100000] [--slices 12] [--seconds 0.4] [--only create]
import { type ChildProcess, execFileSync, fork } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import type { GroupRow } from "../src/store/iam/groups.js";
import type { ListedTable } from "../src/store/lists/listed-table.js";
import type { Tx } from "../src/store/transaction.js";
import { median } from "./figures.js";
import { buildTree } from "./tree.js";

const ALL = ["create, 1 at a time", "create, 32 at once", "get", "page first", "page middle", "page last"] as const;
type Work = (typeof ALL)[number];

/** What a side did in a slice. */
interface Slice {
  readonly calls: number;
  readonly cpuUs: number;
  readonly wallUs: number;
}

const { values } = parseArgs({
  options: {
    against: { type: "string" },
    rows: { type: "string", default: "100000" },
    slices: { type: "string", default: "12" },
    seconds: { type: "string", default: "0.4" },
    side: { type: "string" },
    data: { type: "string" },
    only: { type: "string", default: "" },
  },
});
const rows = Number(values.rows);
const seconds = Number(values.seconds);

if (values.side !== undefined) await runSide(values.side, values.data ?? "");
else if (values.against !== undefined)
  await compareSides(fileURLToPath(new URL("..", import.meta.url)), values.against);
else console.error("usage: store-compare.ts --against DIRECTORY [--rows N] [--slices N] [--seconds N]");

async function compareSides(own: string, other: string): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), "arbor-store-compare-"));
  const sides: ChildProcess[] = [];
  try {
    for (const [name, checkout] of Object.entries({ a: own, b: resolve(other) })) {
      const seeded = execFileSync(process.execPath, ["--import", "tsx", "bench/seed.ts", "--rows", String(rows)], {
        cwd: checkout,
        encoding: "utf8",
      });
      const data = join(scratch, name);
      cpSync(seeded.trim().split("\n").at(-1) ?? "", data, { recursive: true });
      console.log(`${name}: ${checkout}`);
      const args = ["--side", checkout, "--data", data, "--rows", String(rows), "--seconds", String(seconds)];
      sides.push(fork(fileURLToPath(import.meta.url), args, { execArgv: ["--import", "tsx"], cwd: checkout }));
    }
    const [a, b] = sides as [ChildProcess, ChildProcess];
    for (const work of ALL.filter((name) => name.startsWith(values.only))) {
      // Both warm up first.
      for (const side of sides) await ask(side, work);
      const pairs: { a: Slice; b: Slice }[] = [];
      for (let i = 0; i < Number(values.slices); i++) {
        const [first, second] = i % 2 === 0 ? [a, b] : [b, a];
        const [one, two] = [await ask(first, work), await ask(second, work)];
        pairs.push(first === a ? { a: one, b: two } : { a: two, b: one });
      }
      print(work, pairs);
    }
  } finally {
    for (const side of sides) side.kill();
    rmSync(scratch, { recursive: true, force: true });
  }
}

function print(work: Work, pairs: readonly { a: Slice; b: Slice }[]): void {
  const cpu = ({ calls, cpuUs }: Slice) => cpuUs / calls;
  const rate = ({ calls, wallUs }: Slice) => (calls / wallUs) * 1e6;
  const line = (of: (slice: Slice) => number) => {
    const ratios = pairs.map(({ a, b }) => of(a) / of(b)).sort((x, y) => x - y);
    const quarter = (q: number) => (ratios[Math.floor(q * (ratios.length - 1))] ?? Number.NaN).toFixed(2);
    const [a, b] = [median(pairs.map((pair) => of(pair.a))), median(pairs.map((pair) => of(pair.b)))];
    return `a ${a.toFixed(1)}, b ${b.toFixed(1)}, a/b ${median(ratios).toFixed(2)} (quartiles ${quarter(0.25)} to ${quarter(0.75)})`;
  };
  console.log(`${work}\n  us of CPU per call: ${line(cpu)}\n  calls per second:   ${line(rate)}`);
}

function ask(side: ChildProcess, work: Work): Promise<Slice> {
  return new Promise((done, fail) => {
    const onExit = (code: number | null) => fail(new Error(`a side ended with ${code}`));
    side.once("exit", onExit);
    side.once("message", (slice) => {
      side.off("exit", onExit);
      done(slice as Slice);
    });
    side.send(work);
  });
}

// Runs in the process of a side, with the code of its checkout.
async function runSide(checkout: string, directory: string): Promise<void> {
  // The second path is that of versions before 1.0.
  const from = (...paths: readonly string[]) => {
    const [path = ""] = paths.map((one) => join(checkout, "src/store", one)).filter((one) => existsSync(one));
    return import(pathToFileURL(path).href);
  };
  const { openSqlite }: typeof import("../src/store/sqlite/open.js") = await from("sqlite/open.ts", "open-sqlite.ts");
  const { openDatabase }: typeof import("../src/store/sqlite/driver.js") = await from(
    "sqlite/driver.ts",
    "sqlite-driver.ts",
  );
  // Versions before 1.10 have a property for each kind in place of the method.
  const own: typeof import("../src/store/iam/groups.js") | undefined = existsSync(join(checkout, "src/store/kind.ts"))
    ? await from("iam/groups.ts")
    : undefined;
  const groupsOf = (tx: Tx): ListedTable<GroupRow> =>
    own === undefined ? (tx as unknown as { groups: ListedTable<GroupRow> }).groups : tx.table(own.groupKind);
  const store = openSqlite({ directory });
  const tree = buildTree(rows);
  const db = openDatabase(join(directory, "arbor.db"), { readonly: true });
  const inner = db.prepare("SELECT uid FROM groups WHERE length(uid) = 74 AND uid < ?").pluck().all(`${tree.root}0`);
  const leaves = db.prepare("SELECT uid FROM groups WHERE length(uid) = 91 LIMIT 20000 OFFSET 1000").pluck().all();
  db.close();
  const pick = (all: unknown[]) => String(all[Math.floor(Math.random() * all.length)]);
  let made = 0;
  const create = async () => {
    const parentUid = pick(inner);
    const uid = `${parentUid}/${(Math.floor(Math.random() * 2 ** 48) * 16 + (made++ % 16)).toString(16).padStart(16, "0")}`;
    const row = {
      uid,
      parentUid,
      name: `made-${uid.slice(-6)}`,
      description: "A group that the benchmark created, described in a sentence",
      verified: false,
      kind: 0,
      resourceLimits: {},
      issuerGuard: {},
      createdBy: "",
      createTimeMs: Date.now(),
      updateTimeMs: Date.now(),
    };
    await store.write((tx) => groupsOf(tx).insert(row));
  };
  const get = () => store.read((tx) => groupsOf(tx).find(pick(leaves)));
  const order = { field: "name", descending: false };
  const query = { visible: [tree.root], filter: {}, order, skip: 0, limit: 50 };
  const far = async (skip: number) =>
    (await store.read((tx) => groupsOf(tx).list({ ...query, skip: Math.max(0, skip) }))).next;
  const page = async (at: number) => {
    const after = at === 0 ? undefined : await far(Math.floor(tree.belowRoot * at) - 200);
    return () => store.read((tx) => groupsOf(tx).list({ ...query, ...(after && { after }) }));
  };
  const work: Record<Work, { call: () => unknown; atOnce: number }> = {
    "create, 1 at a time": { call: create, atOnce: 1 },
    "create, 32 at once": { call: create, atOnce: 32 },
    get: { call: get, atOnce: 1 },
    "page first": { call: await page(0), atOnce: 1 },
    "page middle": { call: await page(0.5), atOnce: 1 },
    "page last": { call: await page(1), atOnce: 1 },
  };
  process.on("message", async (name: Work) => {
    const { call, atOnce } = work[name];
    const [cpu, start] = [process.cpuUsage(), performance.now()];
    let calls = 0;
    const loop = async () => {
      for (; performance.now() - start < seconds * 1000; calls++) await call();
    };
    await Promise.all(Array.from({ length: atOnce }, loop));
    const { user, system } = process.cpuUsage(cpu);
    process.send?.({ calls, cpuUs: user + system, wallUs: (performance.now() - start) * 1000 });
  });
}
