import { invalidArgument } from "../kernel/errors.js";
import { isUidp } from "../kernel/uidp.js";

/**
 * The field `group` of a filter of version 1, as it is: the id of a group, or empty for no filter.
 *
 * @throws ApiError INVALID_ARGUMENT for anything else.
 */
export function groupOf({ group }: { readonly group: string }): string {
  if (group === "" || isUidp(group)) return group;
  throw invalidArgument({ field: "group", description: "group must be a uid, such as the service assigns" });
}
