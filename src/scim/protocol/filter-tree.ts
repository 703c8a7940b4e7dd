// A filter as its parser leaves it, with its attributes found in the schema.
import type { AttributeChain } from "./schemas.js";

export type Comparison = "eq" | "ne" | "co" | "sw" | "ew" | "gt" | "ge" | "lt" | "le";

/** `operand` is the value in the form in which the attribute's values are compared (`toComparable`). */
export interface CompareFilter {
  readonly op: Comparison;
  readonly attribute: AttributeChain;
  readonly value: FilterValue;
  readonly operand: FilterValue;
}

export type FilterValue = string | number | boolean | null;

export type Filter =
  | { readonly op: "and" | "or"; readonly filters: readonly Filter[] }
  | { readonly op: "not"; readonly filter: Filter }
  | { readonly op: "pr"; readonly attribute: AttributeChain }
  /** One element of a complex attribute that satisfies the filter: `emails[type eq "work"]`. */
  | { readonly op: "element"; readonly attribute: AttributeChain; readonly filter: Filter }
  | CompareFilter;
