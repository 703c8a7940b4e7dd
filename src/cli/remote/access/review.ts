// `arbor access review`: the role bindings of a group and of those below it, by the last use of their identities.
import { create, type JsonObject } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import {
  GetGroupRequestSchema,
  GroupsService,
  ListGroupsRequestSchema,
} from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import {
  GetIdentityRequestSchema,
  IdentitiesService,
  ListIdentitiesRequestSchema,
} from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import {
  ListRoleBindingsRequestSchema,
  RoleBindingsService,
} from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { hostOwnerUid } from "../../../kernel/ids.js";
import { parentOf, rootOf } from "../../../kernel/uidp.js";
import { createListFormatter, type ListColumn } from "../../output/format.js";
import { createProgress } from "../../output/terminal.js";
import type { CommonFlags } from "../flags.js";
import { runBounded } from "../iam/bounded.js";
import { createColumn } from "../iam/columns.js";
import { findLastSeen } from "../iam/last-seen.js";
import { type ColumnFlags, selectColumns } from "../iam/select-columns.js";
import { type MethodCall, readRows } from "../method-call.js";
import { withSession } from "../session.js";

const PAGE_SIZE = 200;

/** In place of a time: the identity was not used, or the API does not tell. */
const NEVER = "never";
const UNKNOWN = "unknown";

/** The flags of `arbor access review`. */
export interface ReviewFlags extends CommonFlags, ColumnFlags {
  readonly group: string;
  readonly progress?: boolean;
}

/** A role binding, as the review shows it. */
interface ReviewRow {
  readonly name: string;
  readonly email: string;
  readonly role: string;
  /** The path of the group. */
  readonly group: string;
  readonly createTime: string;
  /** When the identity was last used; `never` or `unknown` in place of a time. */
  readonly lastUsed: string;
  /** The uid of the identity. */
  readonly identity: string;
  /** The provider whose directory manages the binding; empty for callers. */
  readonly managedBy: string;
  /** The uid of the binding. */
  readonly uid: string;
}

export const columns: readonly ListColumn[] = [
  createColumn("NAME", "name"),
  createColumn("LAST USED", "lastUsed", "time"),
  createColumn("ROLE", "role"),
  createColumn("GROUP", "group"),
  createColumn("E-MAIL", "email"),
  createColumn("BOUND", "createTime"),
  createColumn("IDENTITY", "identity", "uid"),
  createColumn("UID", "uid"),
];

/** `arbor access review`. It reads all bindings before it prints them in order. */
export async function printReview({ group: named, ...flags }: ReviewFlags): Promise<void> {
  const shown = selectColumns(undefined, columns, flags);
  await withSession(flags, async ({ call, output }) => {
    const list = createListFormatter(flags.output, "bindings", shown, output.terminal);
    const group = await call(GroupsService.method.getGroup, create(GetGroupRequestSchema, { uid: named }));
    const bindings = await readBindings(call, String(group.uid), flags.progress === true);
    const [paths, uses] = [await readPaths(call, group), await readLastUses(call, String(group.uid), bindings)];
    const rows = bindings.map((binding) => toRow(binding, paths, uses)).sort(compareRows);
    await output.write(list.page(rows.map((row) => ({ ...row }))) + list.end({}));
  });
}

async function readBindings(call: MethodCall, descendantsOf: string, always: boolean): Promise<JsonObject[]> {
  const progress = createProgress(process.stderr, always);
  const request = create(ListRoleBindingsRequestSchema, { uidp: { descendantsOf }, pageSize: PAGE_SIZE });
  const rows: JsonObject[] = [];
  for await (const row of readRows(call, RoleBindingsService.method.listRoleBindings, request)) {
    rows.push(row);
    if (rows.length % PAGE_SIZE === 0) progress.show(rows.length, rows.length);
  }
  progress.clear();
  return rows;
}

/** Reads the paths of a group and of those below it. */
async function readPaths(call: MethodCall, group: JsonObject): Promise<ReadonlyMap<string, string>> {
  const names = new Map([[String(group.uid), String(group.name)]]);
  const uidp = { descendantsOf: String(group.uid) };
  const request = create(ListGroupsRequestSchema, { uidp, pageSize: PAGE_SIZE });
  for await (const { uid, name } of readRows(call, GroupsService.method.listGroups, request)) {
    names.set(String(uid), String(name));
  }
  const pathOf = (uid: string): string => {
    const parent = parentOf(uid);
    const name = names.get(uid) ?? uid;
    return parent !== undefined && names.has(parent) ? `${pathOf(parent)}/${name}` : name;
  };
  return new Map([...names.keys()].map((uid) => [uid, pathOf(uid)]));
}

/** Reads when identities were last used. The API tells it of workloads, and people of themselves alone. */
async function readLastUses(call: MethodCall, group: string, bindings: readonly JsonObject[]) {
  // Tokens from the host are not counted as uses.
  const hostOwner = hostOwnerUid(rootOf(group));
  const uids = [...new Set(bindings.map(identityOf))].filter((uid) => uid !== hostOwner);
  const uses = new Map<string, string>();
  const workloads = uids.filter((uid) => uid.includes("/"));
  const parts = Array.from({ length: Math.ceil(workloads.length / PAGE_SIZE) }, (_, i) =>
    workloads.slice(i * PAGE_SIZE, (i + 1) * PAGE_SIZE),
  );
  await runBounded(parts, async (ids) => {
    const request = create(ListIdentitiesRequestSchema, { uidp: { ids }, pageSize: PAGE_SIZE });
    for await (const identity of readRows(call, IdentitiesService.method.listIdentities, request)) {
      uses.set(String(identity.uid), findLastSeen(identity) || NEVER);
    }
  });
  const { subject } = await call(Auth.method.validate, create(EmptySchema));
  const own = String(subject);
  if (uids.includes(own) && !own.includes("/")) {
    const identity = await call(IdentitiesService.method.getIdentity, create(GetIdentityRequestSchema, { uid: own }));
    uses.set(own, findLastSeen(identity) || UNKNOWN);
  }
  return uses;
}

function identityOf({ identity }: JsonObject): string {
  return String((identity as JsonObject | undefined)?.uid ?? "");
}

function toRow(binding: JsonObject, paths: ReadonlyMap<string, string>, uses: ReadonlyMap<string, string>): ReviewRow {
  const [identity, role, group] = [binding.identity, binding.role, binding.group].map(
    (one) => (one ?? {}) as JsonObject,
  );
  const uid = identityOf(binding);
  return {
    name: String(identity?.name ?? ""),
    email: String(identity?.email ?? ""),
    role: String(role?.name ?? role?.uid ?? ""),
    group: paths.get(String(group?.uid)) ?? String(group?.name ?? ""),
    createTime: String(binding.createTime ?? ""),
    lastUsed: uses.get(uid) ?? UNKNOWN,
    identity: uid,
    managedBy: String(binding.managedByUidp ?? ""),
    uid: String(binding.uid),
  };
}

// Those that were never used, then the longest unused ones, and at the end those of which it is not known.
function compareRows(a: ReviewRow, b: ReviewRow): number {
  const [one, other] = [orderOf(a), orderOf(b)];
  return one < other ? -1 : Number(one > other);
}

function orderOf({ lastUsed, group, name, uid }: ReviewRow): string {
  const first = lastUsed === NEVER ? "0" : lastUsed === UNKNOWN ? "2" : `1 ${lastUsed}`;
  return `${first} ${group} ${name.toLowerCase()} ${uid}`;
}
