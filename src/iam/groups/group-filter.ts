import { invalidArgument } from "../../kernel/errors.js";
import { isUidp } from "../../kernel/uidp.js";

/**
 * What the field of a filter names, as it is: the uid of something, or empty for no filter.
 *
 * @throws ApiError INVALID_ARGUMENT for anything else.
 */
export function uidFilter(field: string, value: string): string {
  if (value === "" || isUidp(value)) return value;
  throw invalidArgument({ field, description: `${field} must be a uid, such as the service assigns` });
}

/**
 * The field `group` of a filter of version 1, as it is: the id of a group, or empty for no filter.
 *
 * @throws ApiError INVALID_ARGUMENT for anything else.
 */
export function groupOf({ group }: { readonly group: string }): string {
  return uidFilter("group", group);
}
