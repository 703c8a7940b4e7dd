// Long skips: a page of 50 groups after 10 and after 500,000 others, in every order, over HTTP on one connection, and
// the longest tick of the event loop while the long one is read in the store.
//
//   node --import tsx bench/skip.ts [--rows 1000000] [--calls 100] [--service dist/main.js]
import { Agent, request } from "node:http";
import { parseArgs } from "node:util";
import { openSqlite } from "../src/store/open-sqlite.js";
import type { Store } from "../src/store/port.js";
import { printConditions } from "./conditions.js";
import { pinSelf, requireTools } from "./processes.js";
import { judge, median } from "./rounds.js";
import { seed } from "./seed.js";
import { startService } from "./service.js";

const PAGE = 50;
const NEAR = 10;
const GOALS = { ratio: 3, tickMs: 20 };

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "1000000" },
    calls: { type: "string", default: "100" },
    service: { type: "string" },
  },
});
requireTools("taskset");
pinSelf();

const seeded = await seed(Number(values.rows));
const { directory, tree } = seeded;
printConditions({ directory, rows: tree.groups, tokens: 1 });
const far = Math.min(500_000, tree.belowRoot - PAGE);
const orders = ["uid", "name", "created_at", "updated_at"].flatMap((field) => [
  { field, descending: false },
  { field, descending: true },
]);
const service = await startService(seeded, values.service);
const store = openSqlite({ directory });
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
try {
  console.log(
    `\nmedians of ${values.calls} calls in microseconds, and the longest tick of the event loop in the store, in processor time`,
  );
  for (const below of [undefined, tree.root]) {
    for (const { field, descending } of orders) {
      const order = `${field}${descending ? " desc" : ""}`;
      const path = (skip: number) =>
        `/iam/v2beta1/groups?page_size=${PAGE}&order_by=${encodeURIComponent(order)}&skip=${skip}${
          below ? `&uidp.descendants_of=${below}` : ""
        }`;
      const [near = Number.NaN, distant = Number.NaN] = await time([path(NEAR), path(far)]);
      const tickMs = await longestTick(store, { field, descending }, below);
      const name = `${below ? "descendants" : "all"} by ${order}`;
      console.log(
        `${name.padEnd(30)} skip ${NEAR} ${near.toFixed(0)}, ${far} ${distant.toFixed(0)}, tick ${tickMs.toFixed(1)} ms`,
      );
      judge(`skip ${far} / skip ${NEAR}, ${name}`, distant / near, { atMost: GOALS.ratio });
      judge(`longest tick in ms, ${name}`, tickMs, { atMost: GOALS.tickMs });
    }
  }
} finally {
  await store.close();
  await service.server.stop();
}

/** Requests the paths alternately, so that a slow moment of the machine affects all of them; the medians. */
async function time(paths: readonly string[]): Promise<number[]> {
  const times: number[][] = paths.map(() => []);
  for (let i = -20; i < Number(values.calls); i++) {
    for (const [k, path] of paths.entries()) {
      const start = performance.now();
      const { groups } = JSON.parse(await get(path)) as { groups: unknown[] };
      if (groups.length !== PAGE) throw new Error(`${path}: ${groups.length} groups`);
      if (i >= 0) times[k]?.push((performance.now() - start) * 1000);
    }
  }
  return times.map(median);
}

function get(path: string): Promise<string> {
  const headers = { authorization: `Bearer ${service.tokens[0]}` };
  return new Promise((resolve, reject) => {
    request(`${service.url}${path}`, { agent, headers }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => {
        body += chunk;
      });
      response.on("end", () => (response.statusCode === 200 ? resolve(body) : reject(new Error(body))));
    })
      .on("error", reject)
      .end();
  });
}

/**
 * The longest tick of the event loop, in milliseconds of processor time, while pages after a long skip are read one
 * after another. Elapsed time would include that of other programs.
 */
async function longestTick(
  opened: Store,
  order: { field: string; descending: boolean },
  below: string | undefined,
): Promise<number> {
  const filter = below === undefined ? {} : { descendantsOf: below };
  const read = async () => {
    await opened.read((tx) => tx.groups.list({ visible: [tree.root], filter, order, skip: far, limit: PAGE }));
    await new Promise(setImmediate);
  };
  // The first calls prepare statements and fill the cache.
  for (let i = 0; i < 10; i++) await read();
  let longestUs = 0;
  let usage = process.cpuUsage();
  let measuring = true;
  const measure = () => {
    const { user, system } = process.cpuUsage(usage);
    longestUs = Math.max(longestUs, user + system);
    usage = process.cpuUsage();
    if (measuring) setImmediate(measure);
  };
  setImmediate(measure);
  for (let i = 0; i < 50; i++) await read();
  measuring = false;
  return longestUs / 1_000;
}
