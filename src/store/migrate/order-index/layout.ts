// What the order index of version 0.4.0 and the one after it have in common. These numbers are stored, so they never
// change.

/** The type of the keys of a list. */
export type OrderName = "text" | "time";

/** The tables of the order index: where the version before stores its entries, and where this one does. */
export const orders = [
  { name: "text", from: "text_order", to: "text_entries" },
  { name: "time", from: "time_order", to: "time_entries" },
] as const;

/** The first list of a kind is its number times 8. Groups also have lists of children, 4 after those of subtrees. */
export const GROUP_KIND = 1;
/** The list of the children of a group in the order of uids. */
export const CHILDREN_BY_UID = GROUP_KIND * 8 + 7;

/** The lists of the children of groups: in the order of columns of groups, and of uids. */
export const childLists = [
  { order: "text", list: GROUP_KIND * 8 + 4, children: "name" },
  { order: "time", list: GROUP_KIND * 8 + 5, children: "create_time_ms" },
  { order: "time", list: GROUP_KIND * 8 + 6, children: "update_time_ms" },
  { order: "text", list: CHILDREN_BY_UID, children: "uid" },
] as const;

const usual: readonly OrderName[] = ["text", "time", "time"];

/** The kinds of rows in the old index, with the types of their lists in the order of their numbers. */
export const kinds: readonly { readonly id: number; readonly table: string; readonly keys: readonly OrderName[] }[] = [
  { id: GROUP_KIND, table: "groups", keys: usual },
  { id: 2, table: "identities", keys: usual },
  { id: 3, table: "roles", keys: usual },
  { id: 4, table: "role_bindings", keys: ["time"] },
  { id: 5, table: "identity_providers", keys: usual },
  { id: 6, table: "account_associations", keys: usual },
  { id: 7, table: "group_invites", keys: ["time"] },
  { id: 8, table: "external_group_role_mappings", keys: ["time"] },
  { id: 9, table: "repos", keys: usual },
  { id: 10, table: "tags", keys: usual },
  // Those tags that lists contain by default.
  { id: 11, table: "tags", keys: usual },
  { id: 12, table: "advisories", keys: ["time", "time"] },
  { id: 13, table: "subscriptions", keys: ["time"] },
];

/** The tables with rows whose uid others begin with. */
export const PARENT_TABLES = ["groups", "identity_providers", "repos"] as const;

/**
 * The kinds whose rows are entries of their own lists in the index of the version before, with their numbers. The new
 * index contains only rows below.
 */
export const selfListed = [
  { table: "groups", kind: GROUP_KIND },
  { table: "account_associations", kind: 6 },
] as const;
