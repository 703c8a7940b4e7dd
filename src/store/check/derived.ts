// What is derived from other rows: how it is checked and how it is built anew. One line of `derivedIndexes` adds another.
import { type SQL, sql } from "drizzle-orm";
import * as schema from "../tables/schema-sqlite.js";
import { advisoryAliasCheck, advisoryIndexCheck, emptyAdvisoryIndex } from "./advisory-index.js";
import { counterCheck, rebuildCounters, rebuildRoots, rootCheck } from "./counters.js";
import type { CheckDatabase } from "./database.js";
import type { Check } from "./findings.js";

/** An index that can be rebuilt. */
export interface DerivedIndex {
  readonly check: Check;
  /** The statements that empty its tables and fill them from the rows; all run in one transaction. */
  readonly rebuild: (dialect: CheckDatabase["dialect"]) => readonly SQL[];
}

/** All derived indexes, in the order in which they are checked. */
export const derivedIndexes: readonly DerivedIndex[] = [
  { check: rootCheck, rebuild: rebuildRoots },
  { check: counterCheck, rebuild: rebuildCounters },
  { check: advisoryAliasCheck, rebuild: rebuildAliases },
  { check: advisoryIndexCheck, rebuild: emptyAdvisoryIndex },
];

const { advisories, advisoryAliases } = schema;

function rebuildAliases(dialect: CheckDatabase["dialect"]): readonly SQL[] {
  const elements =
    dialect === "sqlite"
      ? sql`json_each(${advisories.aliases}) element`
      : sql`jsonb_array_elements_text(${advisories.aliases}) element (value)`;
  return [
    sql`delete from ${advisoryAliases}`,
    sql`insert into ${advisoryAliases} (alias, advisory_uid) select distinct element.value, ${advisories.uid}
      from ${advisories}, ${elements}`,
  ];
}
