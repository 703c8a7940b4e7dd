// What Find shows of each kind, and how its entries are described.
import type { MessageInitShape } from "@bufbuild/protobuf";
import { FoundKind, type FoundResourceSchema, type Match } from "#gen/arbor/access/v1/access_pb.js";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { timestampOf } from "../../kernel/time.js";
import { lineageOf, rootOf } from "../../kernel/uidp.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { getCapability, type NeededCapability } from "../../pipeline/method-table.js";
import { advisoryKind } from "../../store/advisories/advisories.js";
import { accountAssociationKind } from "../../store/iam/account-associations.js";
import { groupInviteKind } from "../../store/iam/group-invites.js";
import { groupMappingKind } from "../../store/iam/group-mappings.js";
import { groupKind } from "../../store/iam/groups.js";
import { identityKind } from "../../store/iam/identities.js";
import { identityProviderKind } from "../../store/iam/identity-providers.js";
import { roleBindingKind } from "../../store/iam/role-bindings.js";
import { roleKind } from "../../store/iam/roles.js";
import { scimGroupKind } from "../../store/iam/scim-groups.js";
import { scimUserKind } from "../../store/iam/scim-users.js";
import { subscriptionKind } from "../../store/iam/subscriptions.js";
import type { Kind } from "../../store/kind.js";
import type { ListFilter, ListPosition, ListQuery, Page } from "../../store/lists/query.js";
import type { ListedKind, ListedName, ListedRow } from "../../store/lists/resource.js";
import { overlayBindingKind } from "../../store/registry/overlay-bindings.js";
import { overlayKind } from "../../store/registry/overlays.js";
import { repoKind } from "../../store/registry/repos.js";
import { tagKind } from "../../store/registry/tags.js";
import type { Tx } from "../../store/transaction.js";

/** A kind as Find shows it. */
export interface FoundList {
  readonly kind: FoundKind;
  readonly stored: StoredKind;
  /** What its list needs. */
  readonly needed: readonly NeededCapability[];
  readonly list: (tx: Tx, query: ListQuery) => Promise<Page<ListedRow>>;
  readonly nameOf: (row: ListedRow) => string;
  readonly detailOf: (row: ListedRow) => string;
}

interface FoundView<Row> {
  readonly kind: FoundKind;
  readonly needed: Capability;
  readonly name?: (row: Row) => string;
  readonly detail?: (row: Row) => string;
  readonly list?: (tx: Tx, query: ListQuery) => Promise<Page<Row>>;
}

type StoredKind = Pick<ListedKind, "hasNameWords" | "hasRowsBelow" | "number">;

function show<Row extends ListedRow>(
  stored: StoredKind & Kind<{ readonly list: (query: ListQuery) => Promise<Page<Row>> }>,
  view: FoundView<Row>,
): FoundList {
  const { kind, needed, name = () => "", detail = () => "" } = view;
  const list = view.list ?? ((tx: Tx, query: ListQuery) => tx.table(stored).list(query));
  return {
    kind,
    stored,
    needed: [getCapability(needed, "Find")],
    list,
    nameOf: (row) => name(row as Row),
    detailOf: (row) => detail(row as Row),
  };
}

const nameOf = ({ name }: { readonly name: string }) => name;

/** All kinds: what is stored and has a uid is found by it. */
const foundKinds: Readonly<Record<ListedName, FoundList>> = {
  groups: show(groupKind, { kind: FoundKind.GROUP, needed: Capability.CAP_IAM_GROUPS_LIST, name: nameOf }),
  identities: show(identityKind, { kind: FoundKind.IDENTITY, needed: Capability.CAP_IAM_IDENTITY_LIST, name: nameOf }),
  roles: show(roleKind, { kind: FoundKind.ROLE, needed: Capability.CAP_IAM_ROLES_LIST, name: nameOf }),
  roleBindings: show(roleBindingKind, {
    kind: FoundKind.ROLE_BINDING,
    needed: Capability.CAP_IAM_ROLE_BINDINGS_LIST,
    detail: ({ identityUid }) => identityUid,
  }),
  identityProviders: show(identityProviderKind, {
    kind: FoundKind.IDENTITY_PROVIDER,
    needed: Capability.CAP_IAM_IDENTITY_PROVIDERS_LIST,
    name: nameOf,
  }),
  accountAssociations: show(accountAssociationKind, {
    kind: FoundKind.ACCOUNT_ASSOCIATION,
    needed: Capability.CAP_IAM_ACCOUNT_ASSOCIATIONS_LIST,
    name: nameOf,
  }),
  groupInvites: show(groupInviteKind, {
    kind: FoundKind.GROUP_INVITE,
    needed: Capability.CAP_IAM_GROUP_INVITES_LIST,
    detail: ({ email }) => email,
  }),
  groupMappings: show(groupMappingKind, {
    kind: FoundKind.GROUP_MAPPING,
    needed: Capability.CAP_IAM_IDENTITY_PROVIDERS_LIST,
    detail: ({ externalGroupId }) => externalGroupId,
  }),
  repos: show(repoKind, { kind: FoundKind.REPO, needed: Capability.CAP_REPO_LIST, name: nameOf }),
  tags: show(tagKind, {
    kind: FoundKind.TAG,
    needed: Capability.CAP_TAG_LIST,
    name: nameOf,
    detail: ({ digest }) => digest,
    list: (tx, query) => tx.table(tagKind).listAll(query),
  }),
  advisories: show(advisoryKind, {
    kind: FoundKind.ADVISORY,
    needed: Capability.CAP_ADVISORIES_LIST,
    name: ({ advisoryId }) => advisoryId,
  }),
  subscriptions: show(subscriptionKind, {
    kind: FoundKind.SUBSCRIPTION,
    needed: Capability.CAP_EVENTS_SUBSCRIPTION_LIST,
  }),
  overlays: show(overlayKind, {
    kind: FoundKind.OVERLAY,
    needed: Capability.CAP_REGISTRY_OVERLAYS_LIST,
    name: nameOf,
  }),
  overlayBindings: show(overlayBindingKind, {
    kind: FoundKind.OVERLAY_BINDING,
    needed: Capability.CAP_REGISTRY_OVERLAYS_LIST,
  }),
  scimUsers: show(scimUserKind, {
    kind: FoundKind.SCIM_USER,
    needed: Capability.CAP_IAM_SCIM_USERS_LIST,
    name: ({ userName }) => userName,
    detail: ({ externalId }) => externalId,
  }),
  scimGroups: show(scimGroupKind, {
    kind: FoundKind.SCIM_GROUP,
    needed: Capability.CAP_IAM_SCIM_USERS_LIST,
    name: ({ displayName }) => displayName,
    detail: ({ mappedId }) => mappedId,
  }),
};

/** All kinds, in the order in which they are found. */
export const foundLists: readonly FoundList[] = Object.values(foundKinds).sort((a, b) => a.kind - b.kind);
/** Those that are found by words of their names, and by paths. */
export const namedLists: readonly FoundList[] = foundLists.filter(({ stored }) => stored.hasNameWords);
export const {
  groups: groupList,
  repos: repoList,
  tags: tagList,
  roleBindings: bindingList,
  roles: roleList,
} = foundKinds;
const containerLists = foundLists.filter(({ stored }) => stored.hasRowsBelow && stored !== groupList.stored);

/** Something that was found. */
export interface Found extends Pick<MessageInitShape<typeof FoundResourceSchema>, "detail" | "name"> {
  readonly kind: FoundKind;
  readonly uid: string;
  readonly match: Match;
  /** What contains it, from the organisation on. */
  readonly within: readonly string[];
  readonly timeMs?: number;
}

/** What was found in the list of a kind. */
export function toFound(list: FoundList, row: ListedRow, match: Match): Found {
  const { uid } = row;
  const within = lineageOf(uid).slice(0, -1);
  return { kind: list.kind, uid, name: list.nameOf(row), detail: list.detailOf(row), match, within };
}

/** What the lists of the caller show. Their groups are found once for each kind. */
export class ShownLists {
  readonly #call: UnaryCall;
  readonly #tops = new Map<FoundList, Promise<readonly string[]>>();

  constructor(call: UnaryCall) {
    this.#call = call;
  }

  /** The highest groups whose resources of a kind the caller sees, in the order of uids. */
  topsOf(list: FoundList): Promise<readonly string[]> {
    let tops = this.#tops.get(list);
    if (tops === undefined) {
      tops = this.#call.visibleGroups(undefined, "", list.needed);
      this.#tops.set(list, tops);
    }
    return tops;
  }

  /** Those of a list that pass the filter, in the order of uids. */
  async read(list: FoundList, filter: ListFilter, limit: number, after?: ListPosition): Promise<Page<ListedRow>> {
    return this.readBelow(list, await this.topsOf(list), filter, limit, after);
  }

  /** As {@link read}, at and below some of the groups that {@link topsOf} has. */
  async readBelow(
    list: FoundList,
    tops: readonly string[],
    filter: ListFilter,
    limit: number,
    after?: ListPosition,
  ): Promise<Page<ListedRow>> {
    if (tops.length === 0) return { rows: [], next: undefined, total: 0 };
    return list.list(this.#call.tx, buildQuery(tops, filter, limit, after));
  }

  /** Those of a list that have one of the uids, by uid. */
  async readByUids(list: FoundList, uids: readonly string[]): Promise<ReadonlyMap<string, ListedRow>> {
    if (uids.length === 0) return new Map();
    const { rows } = await this.read(list, { uids }, uids.length);
    return new Map(rows.map((row) => [row.uid, row]));
  }

  /** Describes what was found: where it lies, by the names that the caller sees. */
  async describe(found: readonly Found[]): Promise<MessageInitShape<typeof FoundResourceSchema>[]> {
    const uids = [...new Set(found.flatMap(({ within }) => within))];
    const roots = [...new Set(uids.map(rootOf))].sort();
    const groups = new Map<string, ListedRow>();
    if (uids.length > 0) {
      const { rows } = await groupList.list(this.#call.tx, buildQuery(roots, { uids }, uids.length));
      for (const row of rows) groups.set(row.uid, row);
    }
    const names = new Map<string, string>();
    const tops = new Set(await this.topsOf(groupList));
    for (const [uid, row] of groups) {
      if (lineageOf(uid).some((one) => tops.has(one))) names.set(uid, groupList.nameOf(row));
    }
    const others = uids.filter((uid) => !groups.has(uid));
    for (const list of others.length > 0 ? containerLists : []) {
      for (const [uid, row] of await this.readByUids(list, others)) names.set(uid, list.nameOf(row));
    }
    return found.map(({ within, timeMs, ...one }) => ({
      ...one,
      group: within.findLast((uid) => groups.has(uid)) ?? "",
      path: within.flatMap((uid) => names.get(uid) ?? []),
      ...(timeMs !== undefined && { time: timestampOf(timeMs) }),
    }));
  }
}

function buildQuery(visible: readonly string[], filter: ListFilter, limit: number, after?: ListPosition): ListQuery {
  const order = { field: "uid", descending: false };
  return { visible, filter, order, ...(after && { after }), skip: 0, limit, uncounted: true };
}

/** Whether a uid is that of something within a group of the list. */
export function isIn(uid: string, tops: ReadonlySet<string>): boolean {
  return lineageOf(uid).some((one) => tops.has(one));
}
