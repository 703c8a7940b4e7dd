// `arbor members list`: who holds roles in a group, from its role bindings, those of the groups above it, and the identities.
import { create, type JsonObject } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import { GetGroupRequestSchema, GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import {
  GetIdentityRequestSchema,
  IdentitiesService,
  ListIdentitiesRequestSchema,
} from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import {
  ListRoleBindingsRequestSchema,
  RoleBindingsService,
} from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { ANONYMOUS_UID, hostOwnerUid } from "../../../kernel/ids.js";
import { lineageOf, parentOf, rootOf } from "../../../kernel/uidp.js";
import { invalidFlag } from "../../errors.js";
import { createListFormatter, type ListColumn } from "../../output/format.js";
import type { CommonFlags } from "../flags.js";
import { createColumn } from "../iam/columns.js";
import { findLastSeen } from "../iam/last-seen.js";
import { type ColumnFlags, selectColumns } from "../iam/select-columns.js";
import { type MethodCall, readRows } from "../method-call.js";
import { withSession } from "../session.js";

const PAGE_SIZE = 200;

/** The flags of `arbor members list`. */
export interface MembersFlags extends CommonFlags, ColumnFlags {
  readonly group?: string;
}

/** A role of a member, and the group in which it is bound. */
interface MemberRole {
  readonly uid: string;
  readonly name: string;
  readonly groupUid: string;
  readonly groupName: string;
  readonly inherited: boolean;
}

interface Member {
  readonly uid: string;
  /** `host` is the owner that `arbor bootstrap` made, with tokens from the host alone. */
  readonly kind: "person" | "workload" | "anybody" | "host";
  readonly name: string;
  readonly email: string;
  /** When it was last seen; empty if it never was, and of people, of whom only they themselves learn it. */
  readonly lastSeenTime: string;
  readonly roles: MemberRole[];
}

/** The columns of the list. */
export const columns: readonly ListColumn[] = [
  createColumn("NAME", "name"),
  createColumn("E-MAIL", "email"),
  createColumn("KIND", "kind"),
  {
    title: "ROLES",
    path: "roles",
    kind: "prose",
    cell: ({ roles }) => (roles as unknown as MemberRole[]).map(formatRole).join(", "),
  },
  createColumn("LAST SEEN", "lastSeenTime"),
  createColumn("UID", "uid"),
];

function formatRole({ name, inherited, groupName, groupUid }: MemberRole): string {
  return inherited ? `${name} from ${groupName || groupUid}` : name;
}

/** `arbor members list`: people first, then workloads, by name. */
export async function listMembers({ group: named, ...flags }: MembersFlags): Promise<void> {
  if (named === undefined) throw invalidFlag("group", "is required, such as acme.example/platform");
  const shown = selectColumns(undefined, columns, flags);
  await withSession(flags, async ({ call, output }) => {
    const list = createListFormatter(flags.output, "members", shown, output.terminal);
    const { uid } = await call(GroupsService.method.getGroup, create(GetGroupRequestSchema, { uid: named }));
    const members = await readMembers(call, text(uid));
    const order = ({ kind, name, uid: own }: Member) =>
      `${kind === "host" ? "person" : kind} ${name.toLowerCase()} ${own}`;
    const sorted = [...members.values()].sort((a, b) => (order(a) < order(b) ? -1 : 1));
    await output.write(list.page(sorted as unknown as JsonObject[]));
    await output.write(list.end({}));
  });
}

async function readMembers(call: MethodCall, group: string): Promise<ReadonlyMap<string, Member>> {
  const members = new Map<string, Member>();
  // A role that is bound in a group is effective in all groups below it. A binding that a person has not accepted does not name
  // the person, and another of the same person does.
  for (const at of lineageOf(group)) {
    for await (const { identity, role, group: bound } of listBindings(call, at)) {
      const shown = (identity ?? {}) as JsonObject;
      const uid = text(shown.uid);
      const known = members.get(uid);
      const member = known?.name ? known : { ...createMember(uid, shown, rootOf(group)), roles: known?.roles ?? [] };
      members.set(uid, member);
      const { uid: roleUid, name: roleName } = (role ?? {}) as JsonObject;
      const { name: groupName } = (bound ?? {}) as JsonObject;
      const names = { uid: text(roleUid), name: text(roleName), groupUid: at, groupName: text(groupName) };
      member.roles.push({ ...names, inherited: at !== group });
    }
  }
  // The identities that are in the group itself are shown without a role as well.
  for await (const identity of listIdentities(call, { childrenOf: group }))
    addIdentity(members, identity, rootOf(group));
  const elsewhere = [...members.values()].filter(({ uid, kind }) => kind === "workload" && parentOf(uid) !== group);
  for (let i = 0; i < elsewhere.length; i += PAGE_SIZE) {
    const ids = elsewhere.slice(i, i + PAGE_SIZE).map(({ uid }) => uid);
    for await (const identity of listIdentities(call, { ids })) addIdentity(members, identity, rootOf(group));
  }
  if ([...members.values()].some(({ kind }) => kind === "person")) await addCaller(call, members);
  return members;
}

// The list of identities has no people, and nobody but themselves may read them.
async function addCaller(call: MethodCall, members: Map<string, Member>): Promise<void> {
  const { subject } = await call(Auth.method.validate, create(EmptySchema));
  const caller = members.get(text(subject));
  if (caller?.kind !== "person") return;
  const request = create(GetIdentityRequestSchema, { uid: caller.uid });
  const identity = await call(IdentitiesService.method.getIdentity, request);
  members.set(caller.uid, { ...caller, lastSeenTime: findLastSeen(identity) });
}

function createMember(uid: string, { name, email }: JsonObject, rootUid: string): Member {
  const kind = findKind(uid, rootUid);
  return { uid, kind, name: text(name), email: text(email), lastSeenTime: "", roles: [] };
}

function findKind(uid: string, rootUid: string): Member["kind"] {
  if (uid === ANONYMOUS_UID) return "anybody";
  if (uid === hostOwnerUid(rootUid)) return "host";
  return uid.includes("/") ? "workload" : "person";
}

function addIdentity(members: Map<string, Member>, identity: JsonObject, rootUid: string): void {
  const uid = text(identity.uid);
  const member = members.get(uid) ?? createMember(uid, identity, rootUid);
  members.set(uid, { ...member, lastSeenTime: findLastSeen(identity) });
}

function listBindings(call: MethodCall, group: string): AsyncGenerator<JsonObject> {
  const request = create(ListRoleBindingsRequestSchema, { group, pageSize: PAGE_SIZE });
  return readRows(call, RoleBindingsService.method.listRoleBindings, request);
}

function listIdentities(
  call: MethodCall,
  uidp: { readonly childrenOf?: string; readonly ids?: string[] },
): AsyncGenerator<JsonObject> {
  const request = create(ListIdentitiesRequestSchema, { uidp, pageSize: PAGE_SIZE });
  return readRows(call, IdentitiesService.method.listIdentities, request);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
