// `--filter name=value`: one spelling for the filters of all lists, beside a flag for each.
import type { Option } from "commander";
import { invalidFlag } from "../../errors.js";
import { FieldFlag, isRepeated } from "./field-flags.js";
import type { FlagValues } from "./request.js";

/** The flags of lists that are no filters. */
const PAGING: ReadonlySet<string> = new Set(["page-size", "page-token", "order-by", "skip"]);

/** Lists those of the flags of a list that filter it. */
export function listFilters<Flag extends Option>(flags: readonly Flag[]): Flag[] {
  return flags.filter((flag) => !PAGING.has(flag.name()));
}

/**
 * Returns the values that `--filter` gives to flags.
 *
 * @param filters the flags
 * @param texts the values of `--filter`
 * @param given the values of the flags themselves
 * @throws CommandError INVALID_ARGUMENT for what is no filter, and for one with two values that takes one
 */
export function readFilters(filters: readonly Option[], texts: readonly string[], given: FlagValues): FlagValues {
  const values: Record<string, unknown> = { ...given };
  for (const text of texts) {
    const equals = text.indexOf("=");
    const name = text.slice(0, Math.max(0, equals)).replaceAll("_", "-").toLowerCase();
    const flag = filters.find((filter) => filter.name() === name);
    if (flag === undefined) {
      const names = filters.map((filter) => filter.name()).join(", ");
      throw invalidFlag("--filter", `must be NAME=VALUE with one of these names: ${names}`);
    }
    const key = flag.attributeName();
    const before = values[key];
    if (before !== undefined && !takesSeveral(flag)) {
      throw invalidFlag("--filter", `${name} must be given once, and not together with ${flag.long}`);
    }
    values[key] = readFilter(flag, text.slice(equals + 1), before);
  }
  return values;
}

function readFilter(flag: Option, value: string, before: unknown): unknown {
  if (takesSeveral(flag)) return [...((before as string[] | undefined) ?? []), value];
  if (!flag.isBoolean()) return value;
  if (value !== "true" && value !== "false") throw invalidFlag("--filter", `${flag.name()} must be true or false`);
  return value === "true";
}

function takesSeveral(flag: Option): boolean {
  return flag instanceof FieldFlag && isRepeated(flag.field);
}
