// Search by the beginning of names, on the indexes of lists: names that begin with a text follow it in the order of names.
import type { MessageInitShape } from "@bufbuild/protobuf";
import { NamedKind, type NamedResourceSchema } from "#gen/arbor/access/v1/access_pb.js";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { parentOf } from "../../kernel/uidp.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { getCapability, type NeededCapability } from "../../pipeline/method-table.js";
import { groupKind } from "../../store/iam/groups.js";
import { identityKind } from "../../store/iam/identities.js";
import type { ListQuery, Page } from "../../store/lists/query.js";
import { repoKind } from "../../store/registry/repos.js";
import type { Tx } from "../../store/transaction.js";
import type { PageRequest, Position } from "./paging.js";

interface NamedRow {
  readonly uid: string;
  readonly name: string;
}

interface NamedList {
  readonly kind: NamedKind;
  /** What its list needs. */
  readonly needed: readonly NeededCapability[];
  readonly table: (tx: Tx) => { readonly list: (query: ListQuery) => Promise<Page<NamedRow>> };
}

const lists: readonly NamedList[] = [
  {
    kind: NamedKind.GROUP,
    needed: [getCapability(Capability.CAP_IAM_GROUPS_LIST, "SearchNames")],
    table: (tx) => tx.table(groupKind),
  },
  {
    kind: NamedKind.IDENTITY,
    needed: [getCapability(Capability.CAP_IAM_IDENTITY_LIST, "SearchNames")],
    table: (tx) => tx.table(identityKind),
  },
  {
    kind: NamedKind.REPO,
    needed: [getCapability(Capability.CAP_REPO_LIST, "SearchNames")],
    table: (tx) => tx.table(repoKind),
  },
];

interface NameSearch {
  readonly prefix: string;
  readonly kind: NamedKind;
  /** The uid of a group: what is below it; empty for all groups. */
  readonly group: string;
}

/** Finds the page of what the caller's lists show and whose name begins with the prefix. */
export async function searchNames({ prefix, kind, group }: NameSearch, call: UnaryCall, { from, limit }: PageRequest) {
  const resources: MessageInitShape<typeof NamedResourceSchema>[] = [];
  for (const [part, list] of lists.entries()) {
    if (part < from.part || (kind !== NamedKind.UNSPECIFIED && kind !== list.kind)) continue;
    const visible = await call.visibleGroups({ descendantsOf: group, childrenOf: "" }, "", list.needed);
    const isFirst = part === from.part && from.uid !== "";
    const query: ListQuery = {
      visible,
      filter: group === "" ? {} : { descendantsOf: group },
      order: { field: "name", descending: false },
      after: isFirst ? { key: from.key, uid: from.uid } : { key: prefix, uid: "" },
      skip: 0,
      limit: limit - resources.length,
      uncounted: true,
    };
    const page = await list.table(call.tx).list(query);
    const rows = page.rows.filter(({ name }) => name.startsWith(prefix));
    for (const { uid, name } of rows) {
      resources.push({ kind: list.kind, uid, name, group: parentOf(uid) ?? "" });
    }
    const next = page.next;
    if (next !== undefined && String(next.key).startsWith(prefix)) {
      return { resources, next: { part, key: String(next.key), uid: next.uid } satisfies Position };
    }
    if (resources.length === limit && part < lists.length - 1) {
      return { resources, next: { part: part + 1, key: "", uid: "" } satisfies Position };
    }
  }
  return { resources, next: undefined };
}
