// Answers lists of every kind: pages in any declared order, by cursor and by
// skip, and totals, at a cost that does not grow with the number of rows
// (architecture, section 7). Nothing here knows what a group is.
import { admits, planList } from "./list-plan.js";
import {
  counterTotal,
  countStatement,
  type ListParams,
  pageStatement,
  type RowShape,
  rowsByUid,
} from "./list-statements.js";
import { columnValue, type Listed, type ListedKind } from "./listed-kind.js";
import type { ListPosition, ListQuery, Page } from "./port.js";
import type { Executor } from "./statement.js";

type Order = ListQuery["order"];

/** One stretch of rows that a single statement can answer for. */
interface Stretch {
  readonly from: RowShape["from"];
  readonly scope: string;
  readonly withSelf: boolean;
}

/** The page of `kind` that `query` asks for, and how many rows match on all pages. */
export async function listPage<Row extends Listed>(
  tx: Executor,
  kind: ListedKind,
  query: ListQuery,
): Promise<Page<Row>> {
  const plan = planList(query);
  const { limit, skip, order } = query;
  // One row more than the page holds tells whether another page follows.
  const wanted = limit + 1;
  const stretches: readonly Stretch[] =
    plan.from === "uids"
      ? []
      : plan.from === "children"
        ? [{ from: "children", scope: plan.parent, withSelf: true }]
        : plan.scopes.map((subtree) => ({ from: "subtree", ...subtree }));
  const named = plan.from === "uids" ? plan.uids : plan.from === "subtrees" ? plan.also : [];
  const single = (await rowsByUids(tx, kind, named, query.filter.equals)).filter((row) => admits(query, row, kind));

  let total = query.uncounted ? 0 : single.length;
  if (!query.uncounted) for (const stretch of stretches) total += await countOf(tx, kind, query, stretch);

  const [only] = stretches;
  let rows: Listed[];
  if (only && stretches.length === 1 && single.length === 0) {
    rows = await tx.rows(...pageQuery(kind, query, only, skip, wanted));
  } else {
    // Stretches do not overlap: the page is in the merged beginnings of all of them.
    rows = behind(single, kind, query);
    for (const stretch of stretches)
      rows.push(...(await tx.rows(...pageQuery(kind, query, stretch, 0, skip + wanted))));
    rows = sorted(rows, kind, order).slice(skip, skip + wanted);
  }
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const next = rows.length > shown.length && last ? positionOf(last, kind, order) : undefined;
  return { rows: shown as unknown as Row[], next, total };
}

function shapeOf(kind: ListedKind, { filter }: ListQuery, { from, withSelf }: Stretch): RowShape {
  return { kind, from, withSelf, named: filter.name !== undefined, equals: Object.keys(filter.equals ?? {}) };
}

function paramsOf({ filter }: ListQuery, { scope }: Stretch): ListParams {
  const params: ListParams = { ...filter.equals, scope, end: `${scope}0` };
  if (filter.name !== undefined) params.name = filter.name;
  return params;
}

function pageQuery(kind: ListedKind, query: ListQuery, stretch: Stretch, skip: number, limit: number) {
  const { order, filter } = query;
  const after = query.after && liesBefore(query.after, order, stretch) ? undefined : query.after;
  const shape = { ...shapeOf(kind, query, stretch), ...order, after: after !== undefined };
  const params: ListParams = { ...paramsOf(query, stretch), ...after, skip, limit };
  const sort = kind.sorts[filter.name === undefined ? order.field : "name"];
  if (sort) params.list = sort.list;
  return [pageStatement(shape), params] as const;
}

// In uid order a stretch may lie behind the position as a whole, and then all of it counts.
function liesBefore(position: ListPosition, { field, descending }: Order, { from, scope }: Stretch): boolean {
  if (field !== "uid" || from !== "subtree") return false;
  return descending ? position.uid >= `${scope}0` : position.uid < scope;
}

async function countOf(tx: Executor, kind: ListedKind, query: ListQuery, stretch: Stretch): Promise<number> {
  const shape = shapeOf(kind, query, stretch);
  if (shape.named || shape.equals.length > 0) {
    const list = kind.sorts.name?.list ?? 0;
    const [row] = await tx.rows(countStatement(shape), { ...paramsOf(query, stretch), list });
    return row?.total ?? 0;
  }
  const ofChildren = stretch.from === "children";
  const [row] = await tx.rows(counterTotal, { counter: kind.counter + (ofChildren ? 1 : 0), scope: stretch.scope });
  const total = row?.total ?? 0;
  return ofChildren || stretch.withSelf || !kind.listsItself ? total : Math.max(0, total - 1);
}

/** The rows with these uids, in no order. Padded to powers of two so that few statements serve all sizes. */
export async function rowsByUids(
  tx: Executor,
  kind: ListedKind,
  uids: readonly string[],
  equals: ListQuery["filter"]["equals"] = {},
): Promise<Listed[]> {
  const rows: Listed[] = [];
  const filters = Object.keys(equals).filter((name) => kind.filters?.[name] !== undefined);
  for (let start = 0; start < uids.length; start += 256) {
    const chunk = uids.slice(start, start + 256);
    let size = 1;
    while (size < chunk.length) size *= 2;
    const params: ListParams = { ...equals };
    for (let i = 0; i < size; i++) params[`uid${i}`] = chunk[Math.min(i, chunk.length - 1)] ?? "";
    rows.push(...(await tx.rows(rowsByUid({ kind, size, filters }), params)));
  }
  return rows;
}

function sorted(rows: Listed[], kind: ListedKind, order: Order): Listed[] {
  const sign = order.descending ? -1 : 1;
  return rows.sort((a, b) => sign * compare(positionOf(a, kind, order), positionOf(b, kind, order)));
}

function behind(rows: Listed[], kind: ListedKind, { order, after }: ListQuery): Listed[] {
  if (!after) return rows;
  const sign = order.descending ? -1 : 1;
  return rows.filter((row) => sign * compare(positionOf(row, kind, order), after) > 0);
}

function positionOf(row: Listed, kind: ListedKind, order: Order): ListPosition {
  const sort = kind.sorts[order.field];
  return { key: sort ? columnValue(row, sort.column) : row.uid, uid: row.uid };
}

// Keys and uids are ASCII, so comparing code units is comparing bytes, as the databases do.
function compare(a: ListPosition, b: ListPosition): number {
  if (a.key !== b.key) return a.key < b.key ? -1 : 1;
  return a.uid === b.uid ? 0 : a.uid < b.uid ? -1 : 1;
}
