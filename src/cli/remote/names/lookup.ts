// Looks the names of resources up in the lists of the service, where the caller has roles and nowhere else: groups of other
// organisations may be visible to everybody, and must not be taken for the caller's own.
import { create, type DescMessage, type DescMethodUnary, type JsonObject, type Message } from "@bufbuild/protobuf";
import { BindingsService, ListBindingsRequestSchema } from "#gen/arbor/bindings/v1/bindings_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { RoleBindingsService } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { RolesService } from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import { TagsService } from "#gen/chainguard/platform/registry/v2beta1/tags_pb.js";
import { parentOf, rootOf } from "../../../kernel/uidp.js";
import { Code, CommandError } from "../../errors.js";
import { getListMethod } from "../iam/resource-commands.js";
import { getKind } from "../kinds.js";
import { type MethodCall, readRows } from "../method-call.js";
import type { UidKind } from "./fields.js";

const PAGE_SIZE = 200;
/** How many uids an error about an ambiguous name lists. */
const MAX_LISTED = 20;

/** Finds the method that lists a kind by name; undefined for a kind without names. */
async function findListMethod(kind: UidKind): Promise<DescMethodUnary | undefined> {
  if (!isNamed(kind)) return undefined;
  const { load } = getKind(kind);
  return getListMethod(await load());
}

function isNamed(kind: UidKind): boolean {
  return kind !== "own role binding" && getKind(kind).isNamed === true;
}

/** Formats the command that lists the resources of a kind. */
function formatListCommand(kind: UidKind): string {
  return `arbor ${kind === "own role binding" ? "auth bindings" : getKind(kind).command} list`;
}

/** Where the caller has roles: the names of groups by their uids. */
export interface Reach {
  readonly organisations: ReadonlyMap<string, string>;
  /** Those organisations, and the groups to which the caller is bound. */
  readonly groups: ReadonlyMap<string, string>;
}

/** What lookups work with. */
interface Lookup {
  readonly call: MethodCall;
  readonly reach: Reach;
}

/** Reads where the caller has roles. */
export async function readReach(call: MethodCall): Promise<Reach> {
  const organisations = new Map<string, string>();
  const groups = new Map<string, string>();
  const request = create(ListBindingsRequestSchema, { pageSize: PAGE_SIZE });
  for await (const { organization, group } of readRows(call, BindingsService.method.listBindings, request)) {
    const { uid: rootUid, name: rootName } = (organization ?? group) as JsonObject;
    organisations.set(String(rootUid), String(rootName));
    groups.set(String(rootUid), String(rootName));
    const { uid, name } = group as JsonObject;
    groups.set(String(uid), String(name));
  }
  return { organisations, groups };
}

/**
 * Finds the uid of the one resource that has a name.
 *
 * @throws CommandError NOT_FOUND for none, INVALID_ARGUMENT for several, whose uids it lists; the error of the service
 */
export async function findOne(lookup: Lookup, kinds: readonly UidKind[], text: string): Promise<string> {
  const found = new Map<string, UidKind>();
  let denied: unknown;
  for (const kind of kinds) {
    try {
      for (const uid of await findAll(lookup, kind, text)) found.set(uid, kind);
    } catch (error) {
      // Where several kinds may be meant, the caller need not be allowed to list each.
      if (kinds.length === 1 || !(error instanceof CommandError) || error.code !== Code.PermissionDenied) throw error;
      denied ??= error;
    }
  }
  const [uid, ...others] = found.keys();
  if (uid !== undefined && others.length === 0) return uid;
  if (uid === undefined) throw denied ?? buildAbsent(kinds, text);
  throw await buildAmbiguous(lookup, found, text);
}

async function buildAmbiguous(
  { call }: Lookup,
  found: ReadonlyMap<string, UidKind>,
  text: string,
): Promise<CommandError> {
  const shown = [...found].slice(0, MAX_LISTED);
  const created = await readCreateTimes(call, shown);
  const lines = shown.map(([uid, kind]) => {
    const time = created.get(uid);
    return `  ${kind} ${uid}${time === undefined ? "" : `, created ${time}`}`;
  });
  if (found.size > shown.length) lines.push(`  and ${found.size - shown.length} more`);
  // A path says more only where there was none, and where they are in several groups.
  const places = new Set([...found].map(([uid, kind]) => (kind === "group" ? "" : parentOf(uid))));
  const mayHavePath = !/[/@]/.test(text) && places.size > 1;
  const rule = mayHavePath ? "give the path of the group before it, or a uid" : "give a uid";
  return new CommandError(Code.InvalidArgument, [`${text} is the name of several; ${rule}:`, ...lines].join("\n"));
}

/** Reads when resources were created; what the caller may not list is left out. */
async function readCreateTimes(
  call: MethodCall,
  found: readonly (readonly [uid: string, kind: UidKind])[],
): Promise<ReadonlyMap<string, string>> {
  const times = new Map<string, string>();
  for (const kind of new Set(found.map(([, one]) => one))) {
    const method = await findListMethod(kind);
    if (method === undefined) continue;
    const ids = found.filter(([, one]) => one === kind).map(([uid]) => uid);
    const request = createRequest(method.input, { uidp: { ids }, pageSize: PAGE_SIZE });
    try {
      for await (const { uid, createTime } of readRows(call, method, request)) {
        if (typeof createTime === "string") times.set(String(uid), createTime);
      }
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
    }
  }
  return times;
}

function buildAbsent(kinds: readonly UidKind[], text: string): CommandError {
  const commands = kinds.map(formatListCommand).join(", ");
  const [kind = "group"] = kinds;
  const nameless = !kinds.some(isNamed);
  if (nameless) {
    return new CommandError(
      Code.InvalidArgument,
      `${text} is no uid, and resources of this kind (${kind}) have no names; to list them: ${commands}`,
    );
  }
  const what = kinds.includes("identity") && text.includes("@") ? `person has the e-mail address` : undefined;
  const spelled = what ?? `${kinds.join(" or ")} is named`;
  return new CommandError(
    Code.NotFound,
    `no ${spelled} ${text} where you have roles; to list: ${what === undefined ? commands : formatListCommand("role binding")}`,
  );
}

async function findAll(lookup: Lookup, kind: UidKind, text: string): Promise<readonly string[]> {
  if (kind === "group") return findGroups(lookup, text);
  if (kind === "tag") return findTags(lookup, text);
  if (kind === "identity" && text.includes("@")) return findPeople(lookup, text);
  const method = await findListMethod(kind);
  if (method === undefined) return [];
  // An association has the uid of its group.
  if (kind === "account association" && text.includes("/")) return findGroups(lookup, text);
  const slash = text.lastIndexOf("/");
  if (slash < 0) return findNamed(lookup, method, text);
  const uids: string[] = [];
  for (const group of await findGroups(lookup, text.slice(0, slash))) {
    uids.push(...(await findNamed(lookup, method, text.slice(slash + 1), group)));
  }
  return uids;
}

/**
 * Finds groups by a path that begins with an organisation of the caller, or with a group to which it is bound; where there is
 * none of that name, with any group.
 */
async function findGroups(lookup: Lookup, path: string): Promise<string[]> {
  const [first = "", ...rest] = path.split("/");
  let uids = [...lookup.reach.groups].filter(([, name]) => name === first).map(([uid]) => uid);
  if (uids.length === 0) uids = await findNamed(lookup, GroupsService.method.listGroups, first);
  for (const name of rest) {
    const below: string[] = [];
    for (const uid of uids) below.push(...(await findNamed(lookup, GroupsService.method.listGroups, name, uid)));
    uids = below;
  }
  return [...new Set(uids)];
}

/** Finds resources by their name: the children of a group or repo, or else all in the organisations of the caller. */
async function findNamed(
  { call, reach }: Lookup,
  method: DescMethodUnary,
  name: string,
  parent = "",
): Promise<string[]> {
  // An empty name would filter nothing.
  if (name === "") return [];
  const request = createRequest(method.input, {
    ...{ name, pageSize: PAGE_SIZE },
    ...(parent !== "" && { uidp: { childrenOf: parent } }),
  });
  const uids: string[] = [];
  for await (const row of readRows(call, method, request)) {
    const uid = String(row.uid);
    // Built-in roles are in no organisation.
    const isBuiltIn = method.parent === RolesService && !uid.includes("/");
    if (row.name === name && (isBuiltIn || reach.organisations.has(rootOf(uid)))) uids.push(uid);
  }
  return uids;
}

function createRequest(input: DescMessage, values: Readonly<Record<string, unknown>>): Message {
  return create(input, values);
}

async function findTags(lookup: Lookup, text: string): Promise<string[]> {
  const colon = text.lastIndexOf(":");
  if (colon < 1) {
    throw new CommandError(
      Code.InvalidArgument,
      `${text} must be a uid, or a repo, a colon and a tag, such as acme.example/app:latest`,
    );
  }
  const uids: string[] = [];
  for (const repo of await findAll(lookup, "repo", text.slice(0, colon))) {
    const request = createRequest(TagsService.method.listTags.input, {
      ...{ name: text.slice(colon + 1), pageSize: PAGE_SIZE, uidp: { childrenOf: repo } },
      ...{ includeReferrers: true, includeDates: true, includeEpochs: true, includeVcsSnapshots: true },
    });
    for await (const row of readRows(lookup.call, TagsService.method.listTags, request)) {
      if (row.name === text.slice(colon + 1)) uids.push(String(row.uid));
    }
  }
  return uids;
}

/** Finds people by their confirmed address, among the role bindings that the caller may list. */
async function findPeople({ call, reach }: Lookup, email: string): Promise<string[]> {
  const { listRoleBindings } = RoleBindingsService.method;
  const uids = new Set<string>();
  const request = createRequest(listRoleBindings.input, { pageSize: PAGE_SIZE });
  for await (const { uid, identity } of readRows(call, listRoleBindings, request)) {
    const person = identity as JsonObject | undefined;
    if (person?.email === email && reach.organisations.has(rootOf(String(uid)))) uids.add(String(person.uid));
  }
  return [...uids];
}
