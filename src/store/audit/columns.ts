// The columns of audit rows that are read without their bodies.
import { getTableColumns, sql } from "drizzle-orm";
import type { Tables } from "../tables/tables.js";

/** The columns of a row without its body, and the length of that. Neither database reads a body for its length. */
export function auditColumns(t: Tables) {
  const { body, ...columns } = getTableColumns(t.audit);
  return { ...columns, bodyBytes: sql<number>`octet_length(${body})`.mapWith(Number) };
}
