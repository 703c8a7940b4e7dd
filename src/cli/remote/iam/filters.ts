// `--filter name=value`: one spelling for the filters of all lists, beside a flag for each.
import { invalidFlag } from "../../errors.js";
import { type FieldFlag, isRepeated, isSwitch } from "./field-flags.js";
import type { FlagValues } from "./request.js";

/** The flags of lists that are no filters. */
const PAGING: ReadonlySet<string> = new Set(["page-size", "page-token", "order-by", "skip"]);

/** The values of `--filter`. */
export interface FilterFlags {
  readonly filter?: readonly string[];
}

/** A filter of a list, and the flag that has its name. */
interface Filter {
  readonly name: string;
  readonly flag: FieldFlag;
}

/** Lists the filters of a list. */
export function listFilters(flags: readonly FieldFlag[]): Filter[] {
  return flags.map((flag) => ({ name: flag.name(), flag })).filter(({ name }) => !PAGING.has(name));
}

/**
 * Returns the values of the flags, with those of `--filter`.
 *
 * @throws CommandError INVALID_ARGUMENT for what is no filter, and for one with two values that takes one
 */
export function applyFilters(flags: readonly FieldFlag[], given: FlagValues & FilterFlags): FlagValues {
  const filters = listFilters(flags);
  const values: Record<string, unknown> = { ...given };
  for (const text of given.filter ?? []) {
    const equals = text.indexOf("=");
    const name = text.slice(0, Math.max(0, equals)).replaceAll("_", "-").toLowerCase();
    const flag = filters.find((filter) => filter.name === name)?.flag;
    if (flag === undefined) {
      const names = filters.map((filter) => filter.name).join(", ");
      throw invalidFlag("--filter", `--filter must be NAME=VALUE with one of these names: ${names}`);
    }
    const key = flag.attributeName();
    const before = values[key];
    if (before !== undefined && !isRepeated(flag.field)) {
      throw invalidFlag("--filter", `--filter ${name} must be given once, and not together with ${flag.long}`);
    }
    values[key] = readFilter(flag, text.slice(equals + 1), before);
  }
  return values;
}

function readFilter({ field, long }: FieldFlag, value: string, before: unknown): unknown {
  if (isRepeated(field)) return [...((before as string[] | undefined) ?? []), value];
  if (!isSwitch(field)) return value;
  if (value !== "true" && value !== "false") {
    throw invalidFlag("--filter", `--filter ${long?.slice(2)} must be true or false`);
  }
  return value === "true";
}
