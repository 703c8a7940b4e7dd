// Answers lists of every kind: pages in any declared order, by cursor and by
// skip, and totals, at a cost that does not grow with the number of rows
// (architecture, section 7). Nothing here knows what a group is.
import { admits, planList, type Subtree } from "./list-plan.js";
import {
  counterTotal,
  type ListParams,
  namedChildrenTotal,
  namedTotal,
  type PageShape,
  pageStatement,
  rowsByUid,
} from "./list-statements.js";
import type { Listed } from "./list-upkeep.js";
import type { ListedKind } from "./listed-kind.js";
import type { ListPosition, ListQuery, Page } from "./port.js";
import type { Executor } from "./statement.js";

type Order = ListQuery["order"];

/** The page of `kind` that `query` asks for, and how many rows match on all pages. */
export async function listPage<Row extends Listed>(
  tx: Executor,
  kind: ListedKind,
  query: ListQuery,
): Promise<Page<Row>> {
  const plan = planList(query);
  // One row more than the page holds tells whether another page follows.
  const fetch = query.limit + 1;
  let rows: Listed[];
  let total = 0;
  if (plan.from === "uids") {
    const found = (await rowsOf(tx, kind, plan.uids)).filter((row) => admits(query, row));
    total = found.length;
    rows = sliceOf(sorted(found, kind, query.order), kind, query).slice(0, fetch);
  } else if (plan.from === "children") {
    const page = tx.rows(...pageQuery(kind, query, plan.parent, "children", true, query.skip, fetch));
    rows = page instanceof Promise ? await page : page;
    total = await childrenTotal(tx, kind, query, plan.parent);
  } else {
    const [only, ...others] = plan.scopes;
    for (const subtree of plan.scopes) total += await subtreeTotal(tx, kind, query, subtree);
    if (only === undefined) rows = [];
    else if (others.length === 0) {
      rows = await tx.rows(...pageQuery(kind, query, only.scope, "subtree", only.withSelf, query.skip, fetch));
    } else rows = await merged(tx, kind, query, plan.scopes, fetch);
  }
  const shown = rows.slice(0, query.limit);
  const last = shown.at(-1);
  const next = rows.length > shown.length && last ? positionOf(last, kind, query.order) : undefined;
  return { rows: shown as Row[], next, total };
}

// Subtrees do not overlap: the page is in the merged beginnings of all of them.
async function merged(tx: Executor, kind: ListedKind, query: ListQuery, scopes: readonly Subtree[], fetch: number) {
  const rows: Listed[] = [];
  for (const { scope, withSelf } of scopes) {
    rows.push(...(await tx.rows(...pageQuery(kind, query, scope, "subtree", withSelf, 0, query.skip + fetch))));
  }
  return sorted(rows, kind, query.order).slice(query.skip, query.skip + fetch);
}

function pageQuery(
  kind: ListedKind,
  query: ListQuery,
  scope: string,
  from: PageShape["from"],
  withSelf: boolean,
  skip: number,
  limit: number,
) {
  const { field, descending } = query.order;
  const { name } = query.filter;
  const shape = {
    kind,
    from,
    field,
    descending,
    after: query.after !== undefined,
    named: name !== undefined,
    withSelf,
  };
  const params: ListParams = { scope, end: `${scope}0`, skip, limit };
  const sort = kind.sorts[name === undefined ? field : "name"];
  if (sort) params.list = sort.list;
  if (name !== undefined) params.name = name;
  if (query.after) Object.assign(params, query.after);
  return [pageStatement(shape), params] as const;
}

async function subtreeTotal(tx: Executor, kind: ListedKind, query: ListQuery, { scope, withSelf }: Subtree) {
  const { name } = query.filter;
  if (name !== undefined) {
    const [row] = await tx.rows(namedTotal(withSelf), { list: kind.sorts.name?.list ?? 0, scope, name });
    return row?.total ?? 0;
  }
  const [row] = await tx.rows(counterTotal, { counter: kind.counter, scope });
  const total = row?.total ?? 0;
  return withSelf || !kind.listsItself ? total : Math.max(0, total - 1);
}

async function childrenTotal(tx: Executor, kind: ListedKind, query: ListQuery, scope: string) {
  const { name } = query.filter;
  const [row] =
    name === undefined
      ? await tx.rows(counterTotal, { counter: kind.counter + 1, scope })
      : await tx.rows(namedChildrenTotal(kind), { scope, name });
  return row?.total ?? 0;
}

// Padded to powers of two so that few statements serve all sizes.
async function rowsOf(tx: Executor, kind: ListedKind, uids: readonly string[]): Promise<Listed[]> {
  const rows: Listed[] = [];
  for (let start = 0; start < uids.length; start += 256) {
    const chunk = uids.slice(start, start + 256);
    let size = 1;
    while (size < chunk.length) size *= 2;
    const params: ListParams = {};
    for (let i = 0; i < size; i++) params[`uid${i}`] = chunk[Math.min(i, chunk.length - 1)] ?? "";
    rows.push(...(await tx.rows(rowsByUid({ kind, size }), params)));
  }
  return rows;
}

function sorted(rows: Listed[], kind: ListedKind, order: Order): Listed[] {
  const sign = order.descending ? -1 : 1;
  return rows.sort((a, b) => sign * compare(positionOf(a, kind, order), positionOf(b, kind, order)));
}

function sliceOf(rows: Listed[], kind: ListedKind, { order, after, skip }: ListQuery): Listed[] {
  if (!after) return rows.slice(skip);
  const sign = order.descending ? -1 : 1;
  return rows.filter((row) => sign * compare(positionOf(row, kind, order), after) > 0).slice(skip);
}

function positionOf(row: Listed, kind: ListedKind, order: Order): ListPosition {
  const sort = kind.sorts[order.field];
  return { key: sort ? row[sort.column] : row.uid, uid: row.uid };
}

// Keys and uids are ASCII, so comparing code units is comparing bytes, as the databases do.
function compare(a: ListPosition, b: ListPosition): number {
  if (a.key !== b.key) return a.key < b.key ? -1 : 1;
  return a.uid === b.uid ? 0 : a.uid < b.uid ? -1 : 1;
}
