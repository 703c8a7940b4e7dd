// `arbor members offboard`: takes away what a person has in an organisation or a group, and lists what remains. The identity is not
// deleted: signing in would register it again.
import { create, type JsonObject } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { AccessService, ListAccessRequestSchema } from "#gen/arbor/access/v1/access_pb.js";
import { RevokePersonTokensRequestSchema, TokensService } from "#gen/arbor/tokens/v1/tokens_pb.js";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import {
  ExternalGroupRoleMappingsService,
  ListExternalGroupRoleMappingsRequestSchema,
} from "#gen/chainguard/platform/iam/v2beta1/external_group_role_mappings_pb.js";
import {
  DeleteGroupInviteRequestSchema,
  GroupInvitesService,
  ListGroupInvitesRequestSchema,
} from "#gen/chainguard/platform/iam/v2beta1/group_invites_pb.js";
import { GetGroupRequestSchema, GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import {
  IdentityProvidersService,
  ListIdentityProvidersRequestSchema,
} from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import {
  DeleteRoleBindingRequestSchema,
  ListRoleBindingsRequestSchema,
  RoleBindingsService,
} from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { ListScimUsersRequestSchema, ScimUsersService } from "#gen/chainguard/platform/iam/v2beta1/scim_users_pb.js";
import { ANONYMOUS_UID, builtinRoleUid } from "../../../kernel/ids.js";
import { isUidText, isWithin, lineageOf, parentOf, rootOf } from "../../../kernel/uidp.js";
import { Code, CommandError, invalidFlag } from "../../errors.js";
import { confirm } from "../../output/confirm.js";
import { createListFormatter, formatResponse } from "../../output/format.js";
import { escapeControls } from "../../output/terminal.js";
import { type CommonFlags, isTable } from "../flags.js";
import { runBounded } from "../iam/bounded.js";
import { createColumn } from "../iam/columns.js";
import { mayCall } from "../iam/may-call.js";
import { formatCount } from "../kinds.js";
import { type MethodCall, readRows } from "../method-call.js";
import { readReach } from "../names/lookup.js";
import { type Session, withSession } from "../session.js";
import { findCreated, isOpen, type Remainder } from "./created.js";

const PAGE_SIZE = 200;
/** How often it looks for what came back while it took the rest away. */
const MAX_ROUNDS = 3;

/** The flags of `arbor members offboard`. */
export interface OffboardFlags extends CommonFlags {
  /** The one organisation in which the caller has roles unless given. */
  readonly group?: string;
  readonly dryRun?: boolean;
  /** Whether to skip the confirmation. */
  readonly yes?: boolean;
}

/** Whom the command is about, and where. */
interface Subject {
  readonly group: string;
  readonly groupName: string;
  /** Empty where nobody who has a role there shows the address. */
  readonly uid: string;
  /** The address, as given or as shown; empty without one. */
  readonly email: string;
  readonly name: string;
}

/** What there is to take, and what was found beside it. */
interface Holdings {
  /** All role bindings of the person that the caller may list. */
  readonly bindings: readonly JsonObject[];
  /** Of these, what can be taken. */
  readonly taken: readonly JsonObject[];
  readonly invites: readonly JsonObject[];
  /** The identity providers of the group, whose people belong to it. */
  readonly providers: readonly JsonObject[];
  /** What the caller may not list. */
  readonly unlisted: readonly string[];
}

export const columns = [
  createColumn("KIND", "kind"),
  createColumn("WHAT", "what", "prose"),
  createColumn("REMEDY", "remedy", "prose"),
  createColumn("UID", "uid"),
];

/**
 * `arbor members offboard`.
 *
 * @param person a uid, or an address
 * @throws CommandError INVALID_ARGUMENT, PERMISSION_DENIED or FAILED_PRECONDITION before anything is taken
 */
export async function offboard(person: string, flags: OffboardFlags): Promise<void> {
  const { dryRun = false, yes = false } = flags;
  await withSession(flags, async (session) => {
    const subject = await findSubject(session, person, flags.group);
    const { call } = session;
    let holdings = await readHoldings(call, subject);
    await requireTakeable(call, subject, holdings);
    const lines = describePlan(subject, holdings);
    process.stderr.write(lines.map((line) => `${escapeControls(line)}\n`).join(""));
    const { taken, invites, providers } = holdings;
    let revoked: Revoked = { endedSessions: 0 };
    const done = { bindings: [...taken], invites: [...invites] };
    if (!dryRun && (taken.length + invites.length > 0 || hasSessions(subject, holdings))) {
      if (!yes) await confirm(`Take this away from ${describe(subject)}?`, undefined, "nothing was removed");
      for (let round = 1; round <= MAX_ROUNDS; round++) {
        // Invites first: an open one would give a role again.
        await runBounded(holdings.invites, (row) => deleteInvite(call, row));
        await runBounded(holdings.taken, (row) => deleteBinding(call, row));
        revoked = sum(revoked, await revokeTokens(call, subject, providers));
        holdings = await readHoldings(call, subject);
        if (holdings.taken.length + holdings.invites.length === 0) break;
        done.bindings.push(...holdings.taken);
        done.invites.push(...holdings.invites);
      }
    }
    const remains = [
      ...(dryRun ? [] : listReturned(holdings)),
      ...(await listRemaining(session, subject, holdings, dryRun ? undefined : revoked)),
    ];
    // A misspelt address must not look like somebody who has nothing.
    if (subject.uid === "" && done.invites.length === 0 && !remains.some(({ kind }) => kind === "SCIM user")) {
      const rule = "nobody whose role, invite or directory entry you may list has the address";
      throw new CommandError(Code.NotFound, `${rule} ${subject.email} in ${subject.groupName}, so nothing was removed`);
    }
    const result: Result = { subject, ...done, ...revoked, dryRun, remains };
    await print(session, result, flags);
  });
}

async function findSubject({ call, names }: Session, person: string, named: string | undefined): Promise<Subject> {
  const group = named === undefined ? await findOrganisation(call) : await names.find(["group"], named);
  const isAddress = !isUidText(person);
  if (isAddress && !person.includes("@")) throw invalidFlag("person", "must be an e-mail address or a uid");
  const uid = isAddress ? await findByAddress({ call, names }, person, group) : person;
  if (uid.includes("/")) {
    throw invalidFlag("person", "is a workload, which `arbor iam identities delete` deletes with its role bindings");
  }
  if (uid === ANONYMOUS_UID) throw invalidFlag("person", "is everybody, and no person");
  const [{ name }, { subject: caller }] = await Promise.all([
    call(GroupsService.method.getGroup, create(GetGroupRequestSchema, { uid: group })),
    call(Auth.method.validate, create(EmptySchema)),
  ]);
  if (uid !== "" && uid === caller) throw invalidFlag("person", "is you: somebody else must do it");
  const shown = { group, groupName: String(name ?? ""), uid, email: isAddress ? person : "", name: "" };
  if (uid === "") return shown;
  for await (const { identity } of listBindings(call, uid)) {
    const { name: ownName = "", email = "" } = (identity ?? {}) as JsonObject;
    if (ownName !== "" || email !== "") {
      return { ...shown, name: String(ownName), email: shown.email || String(email) };
    }
  }
  return shown;
}

async function findOrganisation(call: MethodCall): Promise<string> {
  const { organisations } = await readReach(call);
  const [first, ...others] = organisations;
  if (first === undefined) throw invalidFlag("--group", "is required: you have roles in no organisation");
  if (others.length === 0) return first[0];
  const listed = [...organisations].map(([uid, name]) => `${name} (${uid})`).join(", ");
  throw invalidFlag("--group", `is required, because you have roles in several organisations: ${listed}`);
}

/** Finds a person by an address that a role binding shows, or that a directory has sent; empty for none. */
async function findByAddress({ call, names }: Pick<Session, "call" | "names">, email: string, group: string) {
  const uids = new Set<string>();
  try {
    uids.add(await names.find(["identity"], email));
  } catch (error) {
    if (!(error instanceof CommandError) || error.code !== Code.NotFound) throw error;
  }
  for (const { uid } of await readAll(() => listProviders(call, rootOf(group)))) {
    const request = create(ListScimUsersRequestSchema, { parent: String(uid), userName: email, pageSize: PAGE_SIZE });
    for (const row of await readAll(() => readRows(call, ScimUsersService.method.listScimUsers, request))) {
      if (typeof row.iamIdentityUid === "string" && row.iamIdentityUid !== "") uids.add(row.iamIdentityUid);
    }
  }
  const [uid = "", ...others] = uids;
  if (others.length === 0) return uid;
  throw invalidFlag(
    "person",
    `${email} is the address of several, of which each is offboarded: ${[...uids].join(", ")}`,
  );
}

function listBindings(call: MethodCall, identity: string): AsyncGenerator<JsonObject> {
  const request = create(ListRoleBindingsRequestSchema, { identity, pageSize: PAGE_SIZE });
  return readRows(call, RoleBindingsService.method.listRoleBindings, request);
}

function listProviders(call: MethodCall, descendantsOf: string): AsyncGenerator<JsonObject> {
  const request = create(ListIdentityProvidersRequestSchema, { uidp: { descendantsOf }, pageSize: PAGE_SIZE });
  return readRows(call, IdentityProvidersService.method.listIdentityProviders, request);
}

/** Reads a list; nothing where the caller may not. */
async function readAll(list: () => AsyncGenerator<JsonObject>): Promise<JsonObject[]> {
  const rows: JsonObject[] = [];
  try {
    for await (const row of list()) rows.push(row);
  } catch (error) {
    if (!(error instanceof CommandError) || error.code !== Code.PermissionDenied) throw error;
  }
  return rows;
}

async function readHoldings(call: MethodCall, { group, uid, email }: Subject): Promise<Holdings> {
  const bindings = uid === "" ? [] : await readAll(() => listBindings(call, uid));
  const invited = create(ListGroupInvitesRequestSchema, { uidp: { descendantsOf: group }, pageSize: PAGE_SIZE });
  const { listGroupInvites } = GroupInvitesService.method;
  const invites = email === "" ? [] : await readAll(() => readRows(call, listGroupInvites, invited));
  const needed = [
    ["role bindings", RoleBindingsService.method.listRoleBindings],
    ["group invites", listGroupInvites],
    ["identity providers", IdentityProvidersService.method.listIdentityProviders],
    ["group mappings", ExternalGroupRoleMappingsService.method.listExternalGroupRoleMappings],
  ] as const;
  const unlisted = await runBounded(needed, async ([kind, method]) =>
    (await mayCall(call, [method], group)).allowed ? "" : kind,
  );
  return {
    bindings,
    taken: bindings.filter((row) => isWithin(groupOf(row), group) && !isManaged(row)),
    invites: invites.filter((row) => isOpen(row) && String(row.email).toLowerCase() === email.toLowerCase()),
    providers: await readAll(() => listProviders(call, group)),
    unlisted: unlisted.filter((kind) => kind !== ""),
  };
}

function groupOf({ uid, group }: JsonObject): string {
  return String((group as JsonObject | undefined)?.uid ?? parentOf(String(uid)));
}

function isManaged({ managedByUidp = "" }: JsonObject): boolean {
  return managedByUidp !== "";
}

async function requireTakeable(call: MethodCall, { group, uid }: Subject, holdings: Holdings): Promise<void> {
  const { taken, invites, unlisted } = holdings;
  if (unlisted.includes("role bindings")) {
    throw new CommandError(
      Code.PermissionDenied,
      `nothing was removed: you may not list the role bindings in ${group}`,
    );
  }
  const needed = [
    ...(taken.length > 0 ? [RoleBindingsService.method.deleteRoleBinding] : []),
    ...(invites.length > 0 ? [GroupInvitesService.method.deleteGroupInvite] : []),
  ];
  const { allowed, missing } = await mayCall(call, needed, group);
  if (!allowed) {
    throw new CommandError(Code.PermissionDenied, `nothing was removed: you lack ${missing.join(", ")} in ${group}`);
  }
  const owner = builtinRoleUid("owner");
  const root = rootOf(group);
  if (!taken.some((row) => roleOf(row).uid === owner && groupOf(row) === root)) return;
  const request = create(ListRoleBindingsRequestSchema, { group: root, role: owner, pageSize: PAGE_SIZE });
  for await (const row of readRows(call, RoleBindingsService.method.listRoleBindings, request)) {
    if (!isManaged(row) && (row.identity as JsonObject | undefined)?.uid !== uid) return;
  }
  const rule = "this is the last owner of the organisation: bind another owner first";
  throw new CommandError(Code.FailedPrecondition, `nothing was removed: ${rule}`);
}

function roleOf({ role }: JsonObject): JsonObject {
  return (role ?? {}) as JsonObject;
}

async function deleteBinding(call: MethodCall, { uid }: JsonObject): Promise<void> {
  const request = create(DeleteRoleBindingRequestSchema, { uid: String(uid) });
  await call(RoleBindingsService.method.deleteRoleBinding, request).catch(ignoreAbsent);
}

async function deleteInvite(call: MethodCall, { uid }: JsonObject): Promise<void> {
  const request = create(DeleteGroupInviteRequestSchema, { uid: String(uid) });
  await call(GroupInvitesService.method.deleteGroupInvite, request).catch(ignoreAbsent);
}

function ignoreAbsent(error: unknown): void {
  if (!(error instanceof CommandError) || error.code !== Code.NotFound) throw error;
}

function hasSessions({ uid }: Subject, { providers }: Holdings): boolean {
  return uid !== "" && providers.length > 0;
}

interface Revoked {
  /** The identity provider through which the person signs in; undefined where it is none of those that lie here. */
  readonly provider?: string;
  readonly endedSessions: number;
  /** The capability that is missing. */
  readonly denied?: string;
}

function sum(a: Revoked, b: Revoked): Revoked {
  return { ...a, ...b, endedSessions: a.endedSessions + b.endedSessions };
}

/** Revokes all tokens and sessions where the person signs in through one of the providers. */
async function revokeTokens(call: MethodCall, { uid }: Subject, providers: readonly JsonObject[]): Promise<Revoked> {
  if (uid === "") return { endedSessions: 0 };
  for (const provider of providers) {
    const request = create(RevokePersonTokensRequestSchema, { identityProvider: String(provider.uid), uid });
    try {
      const { endedSessions = 0 } = await call(TokensService.method.revokePersonTokens, request);
      return { provider: String(provider.uid), endedSessions: Number(endedSessions) };
    } catch (error) {
      if (error instanceof CommandError && error.code === Code.PermissionDenied) {
        return { endedSessions: 0, denied: "identity.update" };
      }
      // A person of another provider is NOT_FOUND.
      ignoreAbsent(error);
    }
  }
  return { endedSessions: 0 };
}

function describe({ name, email, uid }: Subject): string {
  const shown = [name, email].filter((part) => part !== "").join(" ");
  return shown === "" ? uid : uid === "" ? shown : `${shown} (${uid})`;
}

function describeBinding(row: JsonObject): string {
  const { name = "", uid: at = "" } = (row.group ?? {}) as JsonObject;
  return `${roleOf(row).name ?? roleOf(row).uid} in ${name} (${at})`;
}

function describeInvite({ role, roleUid, uid }: JsonObject): string {
  return `an invite as ${(role as JsonObject | undefined)?.name ?? roleUid} to ${parentOf(String(uid))}`;
}

function describePlan(subject: Subject, { taken, invites, providers }: Holdings): string[] {
  const { groupName, group, uid, email } = subject;
  const where = `${groupName} (${group})`;
  const lines = [...taken.map(describeBinding), ...invites.map(describeInvite)];
  if (uid !== "" && providers.length > 0) {
    const names = providers.map(({ name }) => name).join(", ");
    lines.push(`all tokens and sessions, if the person signs in through ${names}`);
  }
  const unknown =
    uid === ""
      ? [
          `nobody whose role you may list has the address ${email}; people who sign in through an identity provider of the`,
          "organisation are found by their uid, which `arbor members list` prints",
        ]
      : [];
  if (lines.length === 0) return unknown;
  return [...unknown, `${describe(subject)} loses in ${where} and below:`, ...lines.map((line) => `  ${line}`)];
}

/** What came back in the meantime, as often as it was looked for. */
function listReturned({ taken, invites }: Holdings): Remainder[] {
  const remedy = "something gives it again and again: run the command again, and see below";
  return [
    ...taken.map((row) => ({ kind: "role binding", what: describeBinding(row), uid: String(row.uid), remedy })),
    ...invites.map((row) => ({ kind: "group invite", what: describeInvite(row), uid: String(row.uid), remedy })),
  ];
}

/** Lists what gives rights, could give them again, or was made by the person. */
async function listRemaining(
  { call }: Session,
  subject: Subject,
  { bindings, providers: here, unlisted }: Holdings,
  revoked: Revoked | undefined,
): Promise<Remainder[]> {
  const { group, uid } = subject;
  const remains: Remainder[] = [];
  const add = (kind: string, what: string, at: unknown, remedy: string) =>
    remains.push({ kind, what, uid: String(at ?? ""), remedy });
  const sources = uid === "" ? new Map<string, string>() : await readSources(call, subject);
  for (const row of bindings) {
    const at = groupOf(row);
    if (isWithin(at, group)) {
      if (!isManaged(row)) continue;
      const from = sources.get(String(row.uid)) ?? `the directory of ${row.managedByUidp}`;
      add("role binding", describeBinding(row), row.uid, `${from} gives it: take the person out of the group there`);
    } else if (lineageOf(group).includes(at)) {
      add("role binding", describeBinding(row), row.uid, "it counts here as well: offboard with --group of that group");
    } else {
      add("role binding", describeBinding(row), row.uid, "it is elsewhere: offboard with --group of that group");
    }
  }
  // Those through which the person may sign in: one, where that is known.
  const all = await readAll(() => listProviders(call, rootOf(group)));
  const isKnown = revoked !== undefined && uid !== "" && revoked.denied === undefined && here.length === all.length;
  const providers = isKnown ? all.filter((one) => one.uid === revoked.provider) : all;
  for (const provider of providers) {
    const { name, uid: providerUid, defaultRole = "" } = provider;
    for (const user of await findScimUsers(call, String(providerUid), subject)) {
      if (user.active === true) {
        const remedy = "deactivate the person in the directory";
        add("SCIM user", `${user.userName}, which the directory of ${name} sends as active`, user.uid, remedy);
      }
    }
    if (defaultRole !== "") {
      const remedy = "deactivate the account at the provider";
      add("identity provider", `${name} gives its default role at the next sign-in`, providerUid, remedy);
    }
  }
  const mappings = create(ListExternalGroupRoleMappingsRequestSchema, {
    ...{ uidp: { descendantsOf: rootOf(group) }, pageSize: PAGE_SIZE },
  });
  const { listExternalGroupRoleMappings } = ExternalGroupRoleMappingsService.method;
  for (const { uid: mapping, externalGroupId, scope } of await readAll(() =>
    readRows(call, listExternalGroupRoleMappings, mappings),
  )) {
    const isOfProvider = providers.some((one) => isWithin(String(mapping), String(one.uid)));
    const counts = isOfProvider && (isWithin(String(scope), group) || isWithin(group, String(scope)));
    const what = `members of ${externalGroupId} get a role in ${scope}`;
    if (counts) add("group mapping", what, mapping, "take the person out of the group at the provider");
  }
  if (uid !== "") remains.push(...(await findCreated(call, group, uid)));
  for (const kind of unlisted) add(kind, "you may not list them", "", "ask somebody who may");
  if (revoked?.denied !== undefined) {
    const what = "tokens and sessions of people who sign in through the organisation go on, without these rights";
    add("sessions", what, uid, `ask somebody with ${revoked.denied} for \`arbor iam identities revoke-tokens\``);
  } else if (uid !== "" && (revoked === undefined ? here.length === 0 : revoked.provider === undefined)) {
    const what =
      "the login provider of the person is none of this organisation, so tokens and sessions go on, without these rights";
    const remedy =
      "the person with `arbor auth sessions revoke`, or the operator with `arbor admin identities revoke UID`";
    add("sessions", what, uid, remedy);
  }
  if (bindings.length > 0) {
    const what = "a file of `arbor export` from before has the person, and `arbor apply` gives the roles again";
    add("files", what, "", "export again, or delete the person in the file");
  }
  if (uid !== "") {
    add("registry tokens", "tokens that docker has already are valid for up to 5 minutes", "", "wait");
  }
  return remains;
}

/** Reads which groups of directories grant the managed bindings of a person, in words. */
async function readSources(call: MethodCall, { group, uid }: Subject): Promise<ReadonlyMap<string, string>> {
  const sources = new Map<string, string>();
  const request = create(ListAccessRequestSchema, { identity: uid, group, pageSize: PAGE_SIZE });
  for (const grant of await readAll(() => readRows(call, AccessService.method.listAccess, request))) {
    const found = (grant.sources ?? []) as JsonObject[];
    const names = found.map((one) => one.directoryGroupName || one.externalGroupId).filter(Boolean);
    if (names.length > 0) sources.set(String(grant.roleBinding), `directory group ${names.join(", ")}`);
  }
  return sources;
}

async function findScimUsers(call: MethodCall, parent: string, { uid, email }: Subject): Promise<JsonObject[]> {
  const named = email === "" ? {} : { userName: email };
  // Without an address all of them are read, to find the one that is linked.
  if (email === "" && uid === "") return [];
  const request = create(ListScimUsersRequestSchema, { parent, ...named, pageSize: PAGE_SIZE });
  const rows = await readAll(() => readRows(call, ScimUsersService.method.listScimUsers, request));
  return rows.filter((row) => email !== "" || row.iamIdentityUid === uid);
}

interface Result extends Revoked {
  readonly subject: Subject;
  readonly bindings: readonly JsonObject[];
  readonly invites: readonly JsonObject[];
  readonly dryRun: boolean;
  readonly remains: readonly Remainder[];
}

async function print({ output }: Session, result: Result, { output: format }: OffboardFlags): Promise<void> {
  const { subject, bindings, invites, provider, endedSessions, dryRun, remains } = result;
  const isRevoked = provider !== undefined;
  if (!isTable(format)) {
    const { uid, email, name, group } = subject;
    const response = {
      ...{ person: { uid, email, name }, group, dryRun },
      taken: { roleBindings: [...bindings], groupInvites: [...invites], tokensRevoked: isRevoked, endedSessions },
      remains: remains.map((one) => ({ ...one })),
    };
    return output.write(formatResponse(format, response, () => [], output.terminal));
  }
  const isSome = bindings.length + invites.length + endedSessions > 0;
  const parts = [
    ...(bindings.length > 0 ? [formatCount("role binding", bindings.length)] : []),
    ...(invites.length > 0 ? [formatCount("group invite", invites.length)] : []),
    ...(isRevoked && isSome ? [`all tokens and ${formatCount("session", endedSessions)}`] : []),
  ];
  const verb = dryRun ? "would take" : "took";
  const line =
    parts.length === 0
      ? `nothing is left to take from ${describe(subject)}`
      : `${verb} ${parts.join(", ")} from ${describe(subject)}`;
  await output.write(`${escapeControls(line)}\n`);
  if (remains.length === 0) return;
  const list = createListFormatter(format, "remains", columns, output.terminal);
  await output.write("remains:\n");
  await output.write(list.page(remains.map((one) => ({ ...one }))) + list.end({}));
}
