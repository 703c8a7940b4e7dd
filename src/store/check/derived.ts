// What is derived from other rows: how it is checked and how it is built anew. One line of `derivedIndexes` adds another.
import type { SQL } from "drizzle-orm";
import {
  advisoryTextCheck,
  advisoryValueCheck,
  rebuildAdvisoryTexts,
  rebuildAdvisoryValues,
} from "./advisory-values.js";
import { counterCheck, rebuildCounters, rebuildRoots, rootCheck } from "./counters.js";
import type { CheckDatabase } from "./database.js";
import type { Check } from "./findings.js";
import { nameWordCheck, rebuildNameWords } from "./name-words.js";
import { overlaySelectionCheck, rebuildOverlaySelections } from "./overlay-selections.js";

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
  { check: advisoryValueCheck, rebuild: rebuildAdvisoryValues },
  { check: advisoryTextCheck, rebuild: rebuildAdvisoryTexts },
  { check: overlaySelectionCheck, rebuild: rebuildOverlaySelections },
  { check: nameWordCheck, rebuild: rebuildNameWords },
];
