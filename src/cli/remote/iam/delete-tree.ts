// `arbor iam groups delete --recursive`: a group, the groups below it, and all that is in them. It deletes what it has listed
// and nothing else, so what is created meanwhile keeps its group, and the command is run again.
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type JsonObject,
  type Message,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import {
  BatchDeleteExternalGroupRoleMappingsRequestSchema,
  ExternalGroupRoleMappingsService,
} from "#gen/chainguard/platform/iam/v2beta1/external_group_role_mappings_pb.js";
import { GetGroupRequestSchema, GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { Advisories } from "#gen/chainguard/platform/vulnerabilities/v1/advisories_pb.js";
import { builtinRoleUid } from "../../../kernel/ids.js";
import { depthOf, isWithin, parentOf, rootOf } from "../../../kernel/uidp.js";
import { Code, CommandError } from "../../errors.js";
import { confirmName } from "../../output/confirm.js";
import { describeRow } from "../../output/describe.js";
import { formatResponse } from "../../output/format.js";
import { createProgressLine, escapeControls } from "../../output/terminal.js";
import { isTable } from "../flags.js";
import { formatCount, type Kind, kinds } from "../kinds.js";
import { readRows } from "../method-call.js";
import { type Session, withSession } from "../session.js";
import { runBounded } from "./bounded.js";
import { mayCall } from "./may-call.js";
import { loadCommands } from "./resource-commands.js";
import type { OneFlags } from "./run.js";

const groupCalls: KindCalls = {
  kind: "group",
  list: GroupsService.method.listGroups,
  delete: GroupsService.method.deleteGroup,
};

const PAGE_SIZE = 200;
/** How many mappings a call deletes. */
const MAX_BATCH = 100;
/** How many groups the tree shows. */
const MAX_SHOWN = 100;
/** How many resources an error lists. */
const MAX_LISTED = 20;

/**
 * What is deleted before and after the other kinds, which are deleted between them: providers give bindings, and bindings,
 * invites and mappings name identities and roles.
 */
const first: readonly Kind[] = ["external group role mapping", "identity provider"];
const last: readonly Kind[] = ["overlay", "role binding", "identity", "role"];

/** The kinds that keep a group from being deleted, in the order in which they are deleted. Groups are deleted after them. */
export function listKindsOfTree(): readonly Kind[] {
  const others = kinds
    .filter(({ kind, parents }) => parents.includes("group") && ![...first, ...last, "group"].includes(kind))
    .map(({ kind }) => kind);
  return [...first, ...others, ...last];
}

/** How to list and delete the resources of a kind. */
export interface KindCalls {
  readonly kind: Kind;
  readonly list: DescMethodUnary;
  readonly delete: DescMethodUnary;
}

/** Loads how to list and delete a kind. */
export async function loadCalls(kind: Kind): Promise<KindCalls> {
  const { list, delete: remove = kind === "advisory" ? Advisories.method.delete : undefined } = (
    await loadCommands(kind)
  ).methods;
  if (list === undefined || remove === undefined) throw new TypeError(`nothing deletes ${kind}`);
  return { kind, list, delete: remove };
}

/** Resources of a kind, which are deleted side by side. */
interface Step {
  readonly calls: KindCalls;
  readonly rows: readonly JsonObject[];
}

/** What is to be deleted. */
interface Tree {
  readonly uid: string;
  readonly name: string;
  /** The identity of the caller. */
  readonly caller: string;
  /** With the group itself. */
  readonly groups: readonly JsonObject[];
  readonly contents: readonly Step[];
  /** What goes with a resource that contains it, in words. */
  readonly dependents: readonly string[];
  /** The kinds that the caller may not list. */
  readonly unlisted: readonly Kind[];
}

/** Deletes a group with all that is in it, after a confirmation. */
export async function deleteTree(
  text: string,
  given: OneFlags & { readonly yes?: boolean; readonly dryRun?: boolean },
): Promise<void> {
  await withSession(given, async (session) => {
    const tree = await readTree(session, await session.names.find(["group"], text));
    process.stderr.write(formatTree(tree));
    await requireDeletable(session, tree);
    if (given.dryRun) return;
    if (!given.yes) await confirmName(`Type the name of the group to delete all of this`, tree.name);
    const counts = await deleteAll(session, tree);
    const { output } = session;
    const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
    const deleted = [...counts].map(([kind, count]) => ({ kind, count }));
    const done = isTable(given.output)
      ? `deleted ${escapeControls(tree.uid)} and all that was in it: ${formatCount("resource", total)}\n`
      : formatResponse(given.output, { uid: tree.uid, deleted }, () => [], output.terminal);
    await output.write(done);
  });
}

async function readTree({ call }: Session, uid: string): Promise<Tree> {
  const [group, { subject }] = await Promise.all([
    call(GroupsService.method.getGroup, create(GetGroupRequestSchema, { uid })),
    call(Auth.method.validate, create(EmptySchema)),
  ]);
  const listed = async (method: DescMethodUnary, uidp: UidpFilter) => {
    const rows: JsonObject[] = [];
    try {
      for await (const row of readRows(call, method, buildListRequest(method, uidp, PAGE_SIZE))) rows.push(row);
    } catch (error) {
      if (!(error instanceof CommandError) || error.code !== Code.PermissionDenied) throw error;
    }
    return rows;
  };
  const below = await listed(GroupsService.method.listGroups, { descendantsOf: uid });
  const groups = [group, ...below.filter((row) => row.uid !== uid)];
  const unlisted: Kind[] = [];
  const contents = await runBounded(listKindsOfTree(), async (kind) => {
    const calls = await loadCalls(kind);
    // Mappings lie below a provider of the organisation, and name the group.
    const isMapping = kind === "external group role mapping";
    const rows: JsonObject[] = [];
    const filters: UidpFilter[] = [{ descendantsOf: isMapping ? rootOf(uid) : uid }];
    // It has the uid of its group, so that of the group itself is not below it.
    if (kind === "account association") filters.push({ ids: [uid] });
    for (const filter of filters) rows.push(...(await listed(calls.list, filter)));
    if (!(await mayCall(call, [calls.list], isMapping ? rootOf(uid) : uid)).allowed) unlisted.push(kind);
    return { calls, rows: rows.filter((row) => isInWay(kind, row, uid)) };
  });
  const dependents = await readDependents(call, uid);
  return {
    ...{ uid, name: String(group.name), caller: String(subject), groups, dependents, unlisted },
    contents: contents.filter(({ rows }) => rows.length > 0),
  };
}

function isInWay(kind: Kind, { scope, deleteTime }: JsonObject, uid: string): boolean {
  if (kind === "external group role mapping") return isWithin(String(scope), uid);
  // An advisory that is withdrawn goes with its group.
  return kind !== "advisory" || deleteTime === undefined;
}

/** The resources of a list: those below a group, or those with uids. */
interface UidpFilter {
  readonly descendantsOf?: string;
  readonly ids?: readonly string[];
}

function buildListRequest({ input }: DescMethodUnary, uidp: UidpFilter, pageSize: number): Message {
  const fields = { includeReferrers: true, includeDates: true, includeEpochs: true, includeVcsSnapshots: true };
  const known = Object.entries(fields).filter(([name]) => name in input.field);
  return create<DescMessage>(input, { pageSize, uidp, ...Object.fromEntries(known) } as MessageInitShape<DescMessage>);
}

/** Counts what is deleted with the resources that contain it, such as the tags of repos. */
async function readDependents(call: Session["call"], uid: string): Promise<string[]> {
  const nested = kinds.filter(({ parents }) => parents.includes("repo"));
  const counts = await runBounded(nested, async ({ kind }) => {
    const { list } = (await loadCommands(kind)).methods;
    if (list === undefined) return "";
    const { totalCount = 0 } = await call(list, buildListRequest(list, { descendantsOf: uid }, 1)).catch(
      (error: unknown): JsonObject => {
        if (error instanceof CommandError) return {};
        throw error;
      },
    );
    return Number(totalCount) === 0 ? "" : formatCount(kind, Number(totalCount));
  });
  return counts.filter((count) => count !== "");
}

function formatTree({ uid, name, groups, contents, dependents, unlisted }: Tree): string {
  const counts = [
    formatCount("group", groups.length),
    ...contents.map(({ calls, rows }) => formatCount(calls.kind, rows.length)),
  ];
  const lines = [
    `${name} (${uid}) and all that is in it:`,
    ...formatGroups(groups, uid),
    `${counts.join(", ")}${dependents.length > 0 ? `; with them go ${dependents.join(", ")}` : ""}`,
  ];
  if (contents.some(({ calls }) => calls.kind === "identity provider")) {
    lines.push("people who sign in through an identity provider of this group are deleted with it");
  }
  if (unlisted.length > 0) {
    lines.push(`you may not list these kinds, of which more may be in the way: ${unlisted.join(", ")}`);
  }
  return lines.map((line) => `${escapeControls(line)}\n`).join("");
}

// The names of the groups, each indented below its parent.
function formatGroups(groups: readonly JsonObject[], top: string): string[] {
  const children = new Map<string, JsonObject[]>();
  for (const group of groups) {
    const parent = group.uid === top ? "" : (parentOf(String(group.uid)) ?? "");
    children.set(parent, [...(children.get(parent) ?? []), group]);
  }
  const lines: string[] = [];
  const add = (parent: string, indent: string) => {
    const sorted = (children.get(parent) ?? []).sort((a, b) => (String(a.name) < String(b.name) ? -1 : 1));
    for (const { uid, name } of sorted) {
      lines.push(`${indent}${name}`);
      add(String(uid), `${indent}  `);
    }
  };
  add("", "  ");
  return lines.length <= MAX_SHOWN
    ? lines
    : [...lines.slice(0, MAX_SHOWN), `  … and ${formatCount("group", lines.length - MAX_SHOWN)} more`];
}

/**
 * Checks that all can be deleted, as far as that is known before.
 *
 * @throws CommandError PERMISSION_DENIED or FAILED_PRECONDITION, which says that nothing was deleted
 */
async function requireDeletable({ call }: Session, tree: Tree): Promise<void> {
  const { uid, caller, groups, contents } = tree;
  const reject = (code: CommandError["code"], rule: string, lines: readonly string[] = []): never => {
    throw new CommandError(code, [`nothing was deleted: ${rule}`, ...lines.map((line) => `  ${line}`)].join("\n"));
  };
  if (isWithin(caller, uid)) {
    reject(Code.FailedPrecondition, `you are the identity ${caller}, which is in the group: somebody else must do it`);
  }
  const toDelete = [{ calls: groupCalls, rows: groups }, ...contents];
  const denied = await runBounded(toDelete, async ({ calls, rows }) => {
    const places = calls.kind === "external group role mapping" ? [...new Set(rows.map(providerOf))] : [uid];
    const answers = await runBounded(places, (place) => mayCall(call, [calls.delete], place));
    const missing = [...new Set(answers.flatMap((answer) => answer.missing))];
    return answers.every(({ allowed }) => allowed)
      ? ""
      : `${formatCount(calls.kind, rows.length)}: lacks ${missing.join(", ") || "a right"}`;
  });
  const lines = denied.filter((line) => line !== "");
  if (lines.length > 0) reject(Code.PermissionDenied, "you may not delete all of it", lines);
  const managed = listBlockedBindings(tree);
  if (managed.length > 0) {
    const rule = "a directory manages these role bindings, by mappings that you may not list: change them there";
    reject(Code.FailedPrecondition, rule, limitLines(managed.map((row) => `${row.uid} ${describeRow(row)}`)));
  }
  if (parentOf(uid) === undefined) {
    if (findKeptBinding(tree) === undefined) {
      reject(Code.FailedPrecondition, "only an owner of an organisation deletes it, by a role binding of their own");
    }
  } else if (rowsOf(tree, "role binding").some((row) => isOwn(row, tree) && isAt(row, uid))) {
    // The own binding goes before roles and groups, so the right to delete them must come from above.
    const later = toDelete.filter(({ calls }) => calls.kind === "group" || calls.kind === "role");
    const methods = later.map(({ calls }) => calls.delete);
    const { allowed } = await mayCall(call, methods, String(parentOf(uid)));
    if (!allowed) {
      const rule = "your rights here come from your role binding in the group alone, which goes before the group";
      reject(Code.FailedPrecondition, `${rule}: somebody with rights in the group above must do it`);
    }
  }
}

function limitLines(lines: readonly string[]): string[] {
  if (lines.length <= MAX_LISTED) return [...lines];
  return [...lines.slice(0, MAX_LISTED), `and ${lines.length - MAX_LISTED} more`];
}

function rowsOf({ contents }: Tree, kind: Kind): readonly JsonObject[] {
  return contents.find(({ calls }) => calls.kind === kind)?.rows ?? [];
}

function providerOf({ uid, identityProviderUid }: JsonObject): string {
  return String(identityProviderUid ?? parentOf(String(uid)));
}

function isOwn({ identity }: JsonObject, { caller }: Pick<Tree, "caller">): boolean {
  return (identity as JsonObject | undefined)?.uid === caller;
}

function isAt({ group }: JsonObject, uid: string): boolean {
  return (group as JsonObject | undefined)?.uid === uid;
}

function isManaged({ managedByUidp = "" }: JsonObject): boolean {
  return managedByUidp !== "";
}

/** The bindings that a directory manages by no mapping or provider which is deleted before. */
function listBlockedBindings(tree: Tree): JsonObject[] {
  const mappings = rowsOf(tree, "external group role mapping");
  return rowsOf(tree, "role binding").filter((row) => {
    if (!isManaged(row) || isWithin(String(row.managedByUidp), tree.uid)) return false;
    return !mappings.some((one) => providerOf(one) === row.managedByUidp && isAt(row, String(one.scope)));
  });
}

/** The binding of an owner who deletes the organisation: the service deletes it with the organisation. */
function findKeptBinding(tree: Tree): JsonObject | undefined {
  const owner = builtinRoleUid("owner");
  return rowsOf(tree, "role binding").find(
    (row) =>
      isOwn(row, tree) && isAt(row, tree.uid) && !isManaged(row) && (row.role as JsonObject | undefined)?.uid === owner,
  );
}

// The caller's own bindings come after all else, as far as the service allows it: a role that is bound is not deleted.
function listSteps(tree: Tree): readonly Step[] {
  const kept = parentOf(tree.uid) === undefined ? findKeptBinding(tree) : undefined;
  const steps: Step[] = [];
  let ownBindings: Step | undefined;
  for (const { calls, rows } of tree.contents) {
    if (calls.kind === "role binding") {
      // The service deletes those that a directory manages with their mapping.
      const manual = rows.filter((row) => !isManaged(row) && row !== kept);
      steps.push({ calls, rows: manual.filter((row) => !isOwn(row, tree)) });
      ownBindings = { calls, rows: manual.filter((row) => isOwn(row, tree)) };
    } else {
      if (calls.kind === "role" && ownBindings !== undefined) steps.push(ownBindings);
      if (calls.kind === "role") ownBindings = undefined;
      steps.push({ calls, rows });
    }
  }
  return [...steps, ...(ownBindings === undefined ? [] : [ownBindings])].filter(({ rows }) => rows.length > 0);
}

/** Deletes all that is listed, and returns how many of which kinds. */
async function deleteAll({ call }: Session, tree: Tree): Promise<ReadonlyMap<Kind, number>> {
  const counts = new Map<Kind, number>();
  const steps = listSteps(tree);
  const total = tree.groups.length + steps.reduce((sum, { rows }) => sum + rows.length, 0);
  const progress = createProgressLine(process.stderr);
  const { isTTY } = process.stderr;
  let done = 0;
  const note = (kind: Kind, count: number) => {
    done += count;
    counts.set(kind, (counts.get(kind) ?? 0) + count);
    if (isTTY) progress.show(`deleted ${done} of ${total}`);
  };
  try {
    for (const { calls, rows } of steps) {
      await deleteRows(call, calls, rows, (count) => note(calls.kind, count));
      if (!isTTY) progress.show(`deleted ${done} of ${total}`);
    }
    for (const level of groupByDepth(tree.groups)) {
      await deleteRows(call, groupCalls, level, (count) => note("group", count));
    }
  } catch (error) {
    progress.clear();
    throw describeStop(error, done, total);
  }
  progress.clear();
  return counts;
}

async function deleteRows(
  call: Session["call"],
  { kind, delete: method }: KindCalls,
  rows: readonly JsonObject[],
  onDeleted: (count: number) => void,
): Promise<void> {
  if (kind === "external group role mapping") return deleteMappings(call, rows, onDeleted);
  const field = method.input.fields.find(({ name }) => name === "uid" || name === "id");
  if (field === undefined) throw new TypeError(`${method} has no uid`);
  await runBounded(rows, async ({ uid }) => {
    await call(method, create(method.input, { [field.localName]: String(uid) } as never)).catch(ignoreAbsent);
    onDeleted(1);
  });
}

async function deleteMappings(
  call: Session["call"],
  rows: readonly JsonObject[],
  onDeleted: (count: number) => void,
): Promise<void> {
  const { batchDeleteExternalGroupRoleMappings: method } = ExternalGroupRoleMappingsService.method;
  for (const parent of new Set(rows.map(providerOf))) {
    const uids = rows.filter((row) => providerOf(row) === parent).map(({ uid }) => String(uid));
    for (let i = 0; i < uids.length; i += MAX_BATCH) {
      const names = uids.slice(i, i + MAX_BATCH);
      await call(method, create(BatchDeleteExternalGroupRoleMappingsRequestSchema, { parent, names }));
      onDeleted(names.length);
    }
  }
}

// The deepest first.
function groupByDepth(groups: readonly JsonObject[]): JsonObject[][] {
  const levels = new Map<number, JsonObject[]>();
  for (const group of groups) {
    const depth = depthOf(String(group.uid));
    levels.set(depth, [...(levels.get(depth) ?? []), group]);
  }
  return [...levels].sort(([a], [b]) => b - a).map(([, level]) => level);
}

// Somebody else may have deleted it, or a call that was interrupted.
function ignoreAbsent(error: unknown): void {
  if (!(error instanceof CommandError) || error.code !== Code.NotFound) throw error;
}

function describeStop(error: unknown, done: number, total: number): unknown {
  if (!(error instanceof CommandError)) return error;
  const created =
    error.code === Code.FailedPrecondition
      ? ["something is in it that was not listed: it was created meanwhile, or is of a kind that you may not list"]
      : [];
  const lines = [...created, `deleted ${done} of ${total}: run the command again to go on`];
  return new CommandError(error.code, [error.message, ...lines.map((line) => `  ${line}`)].join("\n"), error.cause);
}
