// Reads what the service has of an organisation: by lists of everything below it, in pages, and never by a call for each
// resource, except for the conditions of identities, which the API has no list of.
import { create, type DescMessage, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import {
  ListTemporaryBindingsRequestSchema,
  TemporaryBindingsService,
} from "#gen/arbor/bindings/v1/temporary_bindings_pb.js";
import { GetConditionsRequestSchema, GetIssuerGuardRequestSchema, TrustService } from "#gen/arbor/trust/v1/trust_pb.js";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import { GetGroupRequestSchema, GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import {
  ListRoleBindingsRequestSchema,
  RoleBindingsService,
} from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { ListRolesRequestSchema, RolesService } from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import { builtinRoleUid } from "../../../kernel/ids.js";
import { parentOf, rootOf } from "../../../kernel/uidp.js";
import { Code, CommandError } from "../../errors.js";
import { getListMethod } from "../iam/resource-commands.js";
import { getKind, type Kind } from "../kinds.js";
import { type MethodCall, readRows } from "../method-call.js";
import { findRelationship, getKindRow, kinds, PAGE_SIZE, parseConditions, parseEnd } from "./kinds.js";
import { type Actual, type ActualState, joinPath, type KindName, pathOf, ROOT } from "./model.js";

/** How many calls are under way at a time. */
const MAX_CALLS = 8;

/** Kinds besides those of files, in whose presence a group is not deleted. */
const occupyingKinds: readonly Kind[] = ["repo", "account association", "group invite"];

/** What to read. */
export interface ReadOptions {
  /** The kinds. Groups are always read. */
  readonly kinds: ReadonlySet<KindName>;
  /** Whether the conditions of the identity of this path matter. */
  readonly needsConditions: (path: string) => boolean;
  /** Whether something is to be deleted: then all must be seen. */
  readonly isPrune: boolean;
}

/**
 * Reads an organisation.
 *
 * @throws CommandError PERMISSION_DENIED where the caller may not list one of the kinds in the whole organisation: what it
 * does not see would be taken for absent
 */
export async function readActual(call: MethodCall, organization: string, options: ReadOptions): Promise<ActualState> {
  const { caller } = await requireLists(call, organization, options);
  const root = await call(GroupsService.method.getGroup, create(GetGroupRequestSchema, { uid: organization }));
  const rows = await readKind(call, "group", organization);
  const paths = buildPaths(organization, rows);
  const resources: Actual[] = [
    { kind: "group", uid: organization, group: ROOT, name: "", values: getKindRow("group").parse(root).values },
    ...rows.map((row) => toActual("group", row, paths)),
  ];
  for (const { kind, list } of kinds) {
    if (kind === "group" || list === undefined || !options.kinds.has(kind)) continue;
    for (const row of await readKind(call, kind, organization)) resources.push(toActual(kind, row, paths));
  }
  if (options.kinds.has("issuer guard")) resources.push(...(await readGuard(call, organization)));
  const needsRoles = options.kinds.has("role") || options.kinds.has("role binding");
  return {
    organization: { uid: organization, name: String(root.name) },
    resources: await complete(call, organization, resources, options),
    people: collectPeople(resources),
    builtInRoles: needsRoles ? await readBuiltInRoles(call) : new Map(),
    caller,
    occupied: options.isPrune ? await readOccupied(call, organization) : new Map(),
  };
}

/** Reads the people who have an address, in all organisations where the caller may list role bindings. */
export async function readPeople(call: MethodCall): Promise<ActualState["people"]> {
  const request = create(ListRoleBindingsRequestSchema, { pageSize: PAGE_SIZE });
  const found: Pick<Actual, "identityUid" | "identityText">[] = [];
  for await (const row of readRows(call, RoleBindingsService.method.listRoleBindings, request))
    found.push(getKindRow("role binding").parse(row));
  return collectPeople(found);
}

function collectPeople(bindings: readonly Pick<Actual, "identityUid" | "identityText">[]): Map<string, Set<string>> {
  const people = new Map<string, Set<string>>();
  for (const { identityUid = "", identityText = "" } of bindings) {
    if (identityText === "" || identityUid.includes("/")) continue;
    people.set(identityText, (people.get(identityText) ?? new Set()).add(identityUid));
  }
  return people;
}

/** Reads one row of a kind, as its lists have it. */
export function toActual(kind: KindName, row: JsonObject, paths: ReadonlyMap<string, string>): Actual {
  const uid = String(row.uid);
  return { kind, uid, group: findPath(paths, parentOf(uid) ?? ""), ...getKindRow(kind).parse(row) };
}

async function readKind(call: MethodCall, kind: KindName, organization: string): Promise<JsonObject[]> {
  const { list } = getKindRow(kind);
  if (list === undefined) return [];
  const { method, request } = list(organization);
  const rows: JsonObject[] = [];
  for await (const row of readRows(call, method, request)) rows.push(row);
  return rows;
}

function buildPaths(organization: string, rows: readonly JsonObject[]): Map<string, string> {
  const paths = new Map([[organization, ROOT]]);
  const shortestFirst = [...rows].sort((a, b) => String(a.uid).length - String(b.uid).length);
  for (const { uid, name } of shortestFirst) {
    paths.set(String(uid), joinPath(findPath(paths, parentOf(String(uid)) ?? ""), String(name)));
  }
  return paths;
}

function findPath(paths: ReadonlyMap<string, string>, group: string): string {
  const path = paths.get(group);
  if (path !== undefined) return path;
  // A group was created while the lists were read, or is not shown.
  throw new CommandError(Code.Aborted, `the list of groups lacks ${group}, which has resources: run the command again`);
}

async function readGuard(call: MethodCall, group: string): Promise<Actual[]> {
  const { guard } = await call(TrustService.method.getIssuerGuard, create(GetIssuerGuardRequestSchema, { group }));
  if (guard === undefined) return [];
  const { values } = getKindRow("issuer guard").parse(guard as JsonObject);
  return [{ kind: "issuer guard", uid: group, group: ROOT, name: "", values }];
}

async function readBuiltInRoles(call: MethodCall): Promise<Map<string, string>> {
  const request = create(ListRolesRequestSchema, { uidp: { inRoot: true }, pageSize: PAGE_SIZE });
  const found = new Map<string, string>();
  for await (const { uid, name } of readRows(call, RolesService.method.listRoles, request))
    if (String(uid) === builtinRoleUid(String(name))) found.set(String(name), String(uid));
  return found;
}

// Adds what the rows of the lists lack: the ends of role bindings, the conditions of identities, and who manages what.
async function complete(
  call: MethodCall,
  organization: string,
  resources: readonly Actual[],
  { kinds: read, needsConditions }: ReadOptions,
): Promise<Actual[]> {
  const ends = new Map<string, string>();
  if (read.has("role binding")) {
    const request = create(ListTemporaryBindingsRequestSchema, { group: organization, pageSize: PAGE_SIZE });
    for await (const { uid, endTime } of readRows(call, TemporaryBindingsService.method.listTemporaryBindings, request))
      ends.set(String(uid), String(endTime));
  }
  const pullTokens = new Set(
    resources.filter(({ managedBy }) => managedBy === "arbor auth pull-tokens").map(({ uid }) => uid),
  );
  const completed = resources.map((one): Actual => {
    if (one.kind !== "role binding") return one;
    const end = ends.get(one.uid);
    const { roleUid = "", roleText = "", identityUid = "", managedBy } = one;
    const isOperatorRole = !roleUid.includes("/") && roleUid !== builtinRoleUid(roleText);
    const by =
      managedBy ??
      (isOperatorRole
        ? "the operator of the service"
        : pullTokens.has(identityUid)
          ? "arbor auth pull-tokens"
          : undefined);
    return { ...one, ...(by && { managedBy: by }), values: { endTime: end === undefined ? null : parseEnd(end) } };
  });
  // Conditions apply to claim matches and static keys alone.
  const conditional = completed.filter(
    (one) =>
      one.kind === "identity" &&
      one.managedBy === undefined &&
      ["claimMatch", "staticKeys"].includes(findRelationship(one.values) ?? "") &&
      needsConditions(pathOf(one)),
  );
  const conditions = new Map<string, Actual["values"]>();
  await inParallel(conditional, async ({ uid, values }) => {
    const { conditions: own = [] } = await call(
      TrustService.method.getConditions,
      create(GetConditionsRequestSchema, { identity: uid }),
    );
    conditions.set(uid, { ...values, conditions: parseConditions(own) });
  });
  return completed.map((one) => ({
    ...one,
    values: conditions.get(one.uid) ?? (one.kind === "identity" ? { ...one.values, conditions: [] } : one.values),
  }));
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = items[Symbol.iterator]();
  const worker = async () => {
    for (const item of rest) await work(item);
  };
  await Promise.all(Array.from({ length: MAX_CALLS }, worker));
}

async function readOccupied(call: MethodCall, organization: string): Promise<Map<string, string>> {
  const occupied = new Map<string, string>();
  for (const kind of occupyingKinds) {
    const method = getListMethod(await getKind(kind).load());
    const init = { uidp: { descendantsOf: organization }, pageSize: PAGE_SIZE };
    const request = create<DescMessage>(method.input, init as MessageInitShape<DescMessage>);
    for await (const { uid, groupUid } of readRows(call, method, request)) {
      // An association has the uid of its group.
      const own = String(uid ?? groupUid ?? "");
      occupied.set(kind === "account association" ? own : (parentOf(own) ?? own), kind);
    }
  }
  return occupied;
}

/** A role of the caller in a group, with the capabilities that the token permits there, as Auth.Validate says. */
interface OwnRole {
  readonly group: { readonly id: string };
  readonly role: { readonly name: string; readonly capabilities?: readonly string[] };
  readonly capabilities?: readonly string[];
}

async function requireLists(
  call: MethodCall,
  organization: string,
  { kinds: read, isPrune }: ReadOptions,
): Promise<{ readonly caller: string }> {
  const { subject, capabilities = [] } = await call(Auth.method.validate, create(EmptySchema));
  const own = (capabilities as unknown as readonly OwnRole[]).filter(({ group }) => rootOf(group.id) === organization);
  const atRoot = own.filter(({ group }) => group.id === organization);
  const held = new Set(atRoot.flatMap((one) => one.capabilities ?? []));
  const needed = [
    ...kinds.filter(({ kind }) => kind === "group" || read.has(kind)).map(({ lists }) => lists),
    ...(isPrune ? ["repo.list", "account_associations.list", "group_invites.list"] : []),
  ];
  const missing = needed.filter((name) => !held.has(name));
  if (missing.length > 0) {
    const why = "what you do not see would be taken for absent";
    const text = `in the whole organisation you need ${missing.join(", ")}: ${why}; arbor whoami prints what you may do`;
    throw new CommandError(Code.PermissionDenied, text);
  }
  const limited = isPrune
    ? atRoot.find(({ role, capabilities: permitted = [] }) => (role.capabilities ?? []).length > permitted.length)
    : undefined;
  if (limited !== undefined) {
    const text = `--prune needs a token that is not limited: yours permits ${limited.capabilities?.length} of the ${limited.role.capabilities?.length} capabilities of your role ${limited.role.name}`;
    throw new CommandError(Code.PermissionDenied, text);
  }
  return { caller: String(subject) };
}
