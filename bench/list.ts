// Lists: a page of 50 groups with the total, at the beginning and at the end of
// long lists, over HTTP on one connection and in the store itself.
//
//   node --import tsx bench/list.ts [--rows 1000000] [--calls 300] [--service dist/main.js]
import { Agent, request } from "node:http";
import { parseArgs } from "node:util";
import { groupKind } from "../src/store/iam/groups.js";
import type { ListPosition, ListQuery } from "../src/store/lists/query.js";
import { openSqlite } from "../src/store/sqlite/open.js";
import type { Store } from "../src/store/store.js";
import { printConditions } from "./conditions.js";
import { judge, median } from "./figures.js";
import { pinSelf, requireTools } from "./processes.js";
import { firstLevel, seed } from "./seed.js";
import { type Service, startService } from "./service.js";

const PAGE = 50;
const GOAL = 1.5;

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "1000000" },
    calls: { type: "string", default: "300" },
    service: { type: "string" },
  },
});
requireTools("taskset");
pinSelf();

/** A list and its number of rows. */
interface List {
  readonly name: string;
  readonly field: string;
  /** Only descendants of this group. */
  readonly below?: string;
  readonly total: number;
}

/** The position of a page in its list. */
type Position = "first" | "middle" | "last";

/** A page to request repeatedly. */
interface Case {
  readonly name: string;
  call(): Promise<void>;
}

/** An implementation of lists: pages by position, and pages after a number of skipped rows. */
interface Side {
  readonly name: string;
  at(list: List, position: Position): Promise<Case>;
  skipping(list: List, skip: number): Case;
}

const seeded = await seed(Number(values.rows));
const { directory, tree } = seeded;
printConditions({ directory, rows: tree.groups, tokens: 1 });
const [first = ""] = firstLevel(seeded);
const byName: List = { name: "all by name", field: "name", total: tree.belowRoot + 1 };
const lists: readonly List[] = [
  byName,
  { name: "all by created_at", field: "created_at", total: tree.belowRoot + 1 },
  { name: "subtree by name", field: "name", below: first, total: tree.belowFirst },
];
const service = await startService(seeded, values.service);
const store = openSqlite({ directory });
try {
  for (const side of [overHttp(service), inStore(store)]) {
    console.log(`\n${side.name}, medians of ${values.calls} calls in microseconds`);
    for (const list of lists) {
      const cases = [await side.at(list, "first"), await side.at(list, "middle"), await side.at(list, "last")];
      const [atFirst = Number.NaN, , atLast = Number.NaN] = await time(cases, `${list.name} (${list.total} rows)`);
      judge(`last page / first page, ${side.name}, ${list.name}`, atLast / atFirst, { atMost: GOAL });
    }
    const far = Math.min(500_000, byName.total - PAGE);
    // One after the other: what the long one reads would push the pages of the short one out of the cache.
    for (const skip of [10, far]) await time([side.skipping(byName, skip)], byName.name);
  }
} finally {
  await store.close();
  await service.server.stop();
}

/** Times the cases alternately, so that a slow moment of the machine affects all of them, and prints the medians. */
async function time(cases: readonly Case[], title: string): Promise<number[]> {
  const times: number[][] = cases.map(() => []);
  for (let i = -20; i < Number(values.calls); i++) {
    for (const [k, { call }] of cases.entries()) {
      await new Promise(setImmediate);
      const start = performance.now();
      await call();
      if (i >= 0) times[k]?.push((performance.now() - start) * 1000);
    }
  }
  const medians = times.map(median);
  const columns = cases.map(({ name }, k) => `${name} ${medians[k]?.toFixed(0)}`);
  console.log(`${title.padEnd(36)} ${columns.join(", ")}`);
  return medians;
}

function expect(list: List, found: { readonly rows: number; readonly total: number }): void {
  if (found.rows === PAGE && found.total === list.total) return;
  throw new Error(`${list.name}: ${found.rows} of ${found.total} rows instead of ${PAGE} of ${list.total}`);
}

// The skip of the page before the requested one.
function rowsBefore(position: "middle" | "last", total: number): number {
  return position === "last" ? total - 2 * PAGE : Math.floor(total / 2);
}

function overHttp({ url, tokens }: Service): Side {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const headers = { authorization: `Bearer ${tokens[0]}` };
  const get = (path: string) =>
    new Promise<string>((resolve, reject) => {
      request(`${url}${path}`, { agent, headers }, (response) => {
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
  const pathOf = ({ field, below }: List) =>
    `/iam/v2beta1/groups?page_size=${PAGE}&order_by=${field}${below ? `&uidp.descendants_of=${below}` : ""}`;
  const pageAt = async (list: List, path: string) => {
    const { groups, totalCount, nextPageToken } = JSON.parse(await get(path));
    expect(list, { rows: groups.length, total: Number(totalCount) });
    return nextPageToken as string | undefined;
  };
  const caseOf = (name: string, path: string): Case => ({ name, call: async () => void (await get(path)) });
  return {
    name: "HTTP",
    async at(list, position) {
      if (position === "first") return caseOf(position, pathOf(list));
      const token = await pageAt(list, `${pathOf(list)}&skip=${rowsBefore(position, list.total)}`);
      const path = `${pathOf(list)}&page_token=${token}`;
      const next = await pageAt(list, path);
      if ((next === undefined) !== (position === "last")) throw new Error(`${list.name}: not the ${position} page`);
      return caseOf(position, path);
    },
    skipping: (list, skip) => caseOf(`skip ${skip}`, `${pathOf(list)}&skip=${skip}`),
  };
}

function inStore(store: Store): Side {
  const queryOf = ({ field, below }: List, skip: number, after?: ListPosition): ListQuery => ({
    visible: [tree.root],
    filter: below === undefined ? {} : { descendantsOf: below },
    order: { field, descending: false },
    skip,
    limit: PAGE,
    ...(after && { after }),
  });
  const caseOf = (name: string, list: List, query: ListQuery): Case => ({
    name,
    call: async () => {
      const { rows, total } = await store.read((tx) => tx.table(groupKind).list(query));
      expect(list, { rows: rows.length, total });
    },
  });
  return {
    name: "store",
    async at(list, position) {
      if (position === "first") return caseOf(position, list, queryOf(list, 0));
      const { next } = await store.read((tx) =>
        tx.table(groupKind).list(queryOf(list, rowsBefore(position, list.total))),
      );
      return caseOf(position, list, queryOf(list, 0, next));
    },
    skipping: (list, skip) => caseOf(`skip ${skip}`, list, queryOf(list, skip)),
  };
}
