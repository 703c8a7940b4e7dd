// Long skips in the store: a page of 50 groups after 10, after 10,000 and after half of all others, in every order, in
// processor time, and the longest tick of the event loop while the longest one is read.
//
//   node --import tsx bench/skip.ts [--rows 1000000] [--calls 20]
import { parseArgs } from "node:util";
import { groupKind } from "../src/store/iam/groups.js";
import { openSqlite } from "../src/store/sqlite/open.js";
import type { Store } from "../src/store/store.js";
import { printConditions } from "./conditions.js";
import { judge, median } from "./figures.js";
import { pinSelf, requireTools } from "./processes.js";
import { seed } from "./seed.js";

const PAGE = 50;
const GOALS = { msPerThousand: 0.2, tickMs: 25 };

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "1000000" },
    calls: { type: "string", default: "20" },
  },
});
requireTools("taskset");
pinSelf();

const { directory, tree } = await seed(Number(values.rows));
printConditions({ directory, rows: tree.groups, tokens: 1 });
const half = Math.floor(tree.belowRoot / 2);
const orders = ["uid", "name", "created_at", "updated_at"].flatMap((field) => [
  { field, descending: false },
  { field, descending: true },
]);
const store = openSqlite({ directory });
try {
  console.log(`\nmedians of ${values.calls} calls in milliseconds of processor time`);
  for (const below of [undefined, tree.root]) {
    for (const order of orders) {
      const name = `${below ? "descendants" : "all"} by ${order.field}${order.descending ? " desc" : ""}`;
      const read = (skip: number) => () => readPage(store, order, below, skip);
      const times: number[] = [];
      for (const skip of [10, 10_000, half]) times.push(await measure(read(skip)));
      const tickMs = await longestTick(read(half));
      const texts = [10, 10_000, half].map((skip, i) => `skip ${skip} ${times[i]?.toFixed(2)}`);
      console.log(`${name.padEnd(30)} ${texts.join(", ")}, tick ${tickMs.toFixed(1)} ms`);
      const perThousand = ((times.at(-1) ?? Number.NaN) / half) * 1_000;
      judge(`ms for 1,000 skipped rows, ${name}`, perThousand, { atMost: GOALS.msPerThousand });
      judge(`longest tick in ms, ${name}`, tickMs, { atMost: GOALS.tickMs });
    }
  }
} finally {
  await store.close();
}

async function readPage(
  opened: Store,
  order: { field: string; descending: boolean },
  below: string | undefined,
  skip: number,
): Promise<void> {
  const filter = below === undefined ? {} : { descendantsOf: below };
  const query = { visible: [tree.root], filter, order, skip, limit: PAGE };
  const { rows } = await opened.read((tx) => tx.table(groupKind).list(query));
  if (rows.length !== PAGE) throw new Error(`${rows.length} groups`);
}

/** The processor time of this process, in milliseconds. Elapsed time would include that of other programs. */
function usedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

async function measure(read: () => Promise<void>): Promise<number> {
  const times: number[] = [];
  // The first calls prepare statements and fill the cache.
  for (let i = -3; i < Number(values.calls); i++) {
    const before = usedMs();
    await read();
    if (i >= 0) times.push(usedMs() - before);
  }
  return median(times);
}

/** The longest tick of the event loop while pages are read one after another. */
async function longestTick(read: () => Promise<void>): Promise<number> {
  let longestMs = 0;
  let before = usedMs();
  let measuring = true;
  const tick = () => {
    longestMs = Math.max(longestMs, usedMs() - before);
    before = usedMs();
    if (measuring) setImmediate(tick);
  };
  setImmediate(tick);
  for (let i = 0; i < 10; i++) {
    await read();
    await new Promise(setImmediate);
  }
  measuring = false;
  return longestMs;
}
