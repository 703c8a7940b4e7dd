// `--if-absent` of `create`: one that exists already is returned in place of a new one, so that the command can be repeated.
import {
  create,
  createRegistry,
  type DescField,
  type DescMessage,
  type DescMethodUnary,
  type JsonObject,
  type JsonValue,
  type Message,
  type MessageInitShape,
  toJson,
} from "@bufbuild/protobuf";
import { FieldBehavior } from "#gen/google/api/field_behavior_pb.js";
import { toJsonMaskPath } from "../../../codec/field-mask.js";
import { getField, getFieldsByName, hasBehavior } from "../../../codec/fields.js";
import { isJsonObject } from "../../../kernel/strict-json.js";
import { rootOf } from "../../../kernel/uidp.js";
import { Code, CommandError } from "../../errors.js";
import { escapeControls } from "../../output/terminal.js";
import { formatPlural, type KeyField } from "../kinds.js";
import { readRows } from "../method-call.js";
import type { Session } from "../session.js";
import { mayCall } from "./may-call.js";
import type { ResourceCommand } from "./resource-commands.js";

const PAGE_SIZE = 200;
/** How many uids an error lists. */
const MAX_LISTED = 20;

/** What is to be created, with uids in place of names. */
export interface Creation {
  readonly resource: ResourceCommand;
  readonly method: DescMethodUnary;
  readonly request: Message;
  /** The field with the resource; undefined where the request has its fields. */
  readonly field: DescField | undefined;
  /** The paths of the fields of the resource that were given, as in a field mask. */
  readonly paths: readonly string[];
}

/** What to do with the two outcomes. */
interface Outcomes {
  /** Creates the resource and prints it. */
  readonly create: () => Promise<void>;
  /** Prints one that exists. */
  readonly print: (existing: JsonObject) => Promise<void>;
  /** Describes further differences of one that exists from what was given. */
  readonly compare?: (existing: JsonObject) => Promise<readonly string[]>;
}

/**
 * Creates a resource unless there is one of the same key in the same parent, which is printed instead. Between the look and
 * the creation another command may create one.
 *
 * @throws CommandError INVALID_ARGUMENT where there are several, PERMISSION_DENIED where the caller may not list them
 */
export async function createIfAbsent(session: Session, creation: Creation, outcomes: Outcomes): Promise<void> {
  const existing = await findExisting(session, creation);
  if (existing !== undefined) return printExisting(session, creation, existing, outcomes);
  try {
    await outcomes.create();
  } catch (error) {
    if (!(error instanceof CommandError) || error.code !== Code.AlreadyExists) throw error;
    // Somebody else was faster.
    const other = await findExisting(session, creation);
    if (other === undefined) throw error;
    await printExisting(session, creation, other, outcomes);
  }
}

async function printExisting(
  { call }: Session,
  creation: Creation,
  row: JsonObject,
  { print, compare }: Outcomes,
): Promise<void> {
  const { singular, methods } = creation.resource;
  // A list may show less of it.
  const existing =
    methods.get === undefined ? row : await call(methods.get, create(methods.get.input, { uid: row.uid } as never));
  await print(existing);
  const lines = [`this ${singular} exists already, and nothing was created: ${row.uid}`];
  const differences = [...listDifferences(creation, existing), ...((await compare?.(existing)) ?? [])];
  if (differences.length > 0) lines.push(`warning: it differs from what was given: ${differences.join(", ")}`);
  process.stderr.write(lines.map((line) => `arbor: ${escapeControls(line)}\n`).join(""));
}

async function findExisting({ call }: Session, creation: Creation): Promise<JsonObject | undefined> {
  const { resource, method, request } = creation;
  const { singular, methods, key = [{ created: "name", filter: "name" }], counts = () => true } = resource;
  const { list } = methods;
  if (list === undefined) throw new TypeError(`nothing lists ${singular}`);
  const parent = String(getField(request, getFieldNamed(method.input, "parent")));
  const created = readCreated(creation);
  const filters = key.map(({ created: path, filter }) => [filter ?? "", readPath(created, path)] as const);
  const found: JsonObject[] = [];
  const rows = readRows(call, list, buildListRequest(list, parent, key.length === 0, Object.fromEntries(filters)));
  // Organisations of others may be visible to everybody.
  const { organisations } = parent === "" ? await (await import("../names/lookup.js")).readReach(call) : {};
  for await (const row of rows) {
    const isHere = organisations?.has(rootOf(String(row.uid))) ?? true;
    if (isHere && counts(row) && key.every((one) => hasSameKey(one, created, row))) found.push(row);
  }
  if (found.length > 1) {
    const uids = found.slice(0, MAX_LISTED).map(({ uid }) => String(uid));
    const rule = `--if-absent: ${found.length} ${formatPlural(singular)} are the same already: ${uids.join(", ")}`;
    throw new CommandError(Code.InvalidArgument, rule);
  }
  if (found.length === 0 && parent !== "") {
    const { allowed, missing } = await mayCall(call, [list], parent);
    const rule = `--if-absent needs the right to list ${formatPlural(singular)} there, and lacks ${missing.join(", ")}`;
    if (!allowed) throw new CommandError(Code.PermissionDenied, rule);
  }
  return found[0];
}

function buildListRequest(
  { input }: DescMethodUnary,
  parent: string,
  isOnly: boolean,
  filters: Readonly<Record<string, unknown>>,
): Message {
  const hidden = { includeReferrers: true, includeDates: true, includeEpochs: true, includeVcsSnapshots: true };
  const known = Object.entries({ ...hidden, ...filters }).filter(([name]) => name in input.field);
  // Of what a group has only one, that one has the uid of the group. The children of `/` are organisations.
  const uidp = isOnly ? { ids: [parent] } : parent === "" ? { inRoot: true } : { childrenOf: parent };
  const values = { pageSize: PAGE_SIZE, uidp, ...Object.fromEntries(known) };
  return create<DescMessage>(input, values as MessageInitShape<DescMessage>);
}

/** The JSON of what is to be created. */
function readCreated({ method, request, field }: Creation): JsonObject {
  const message = field === undefined ? request : (getField(request, field) as Message | undefined);
  const desc = field?.message ?? method.input;
  return message === undefined ? {} : (toJson(desc, message, { registry: createRegistry() }) as JsonObject);
}

function hasSameKey({ created: path, listed = [path] }: KeyField, created: JsonObject, row: JsonObject): boolean {
  const value = readPath(created, path);
  return listed.some((one) => isSameJson(value, readPath(row, one)));
}

/** Names the given fields in which one that exists differs, as far as it has them: secrets are not shown. */
function listDifferences(creation: Creation, existing: JsonObject): string[] {
  const { resource, field, paths } = creation;
  const created = readCreated(creation);
  const isKey = (path: string) => resource.key?.some((one) => one.created === path) ?? path === "name";
  return paths
    .filter((path) => !isWrittenOnly(field?.message, path))
    .map(toJsonMaskPath)
    .filter((path) => !isKey(path) && !isSameJson(readPath(created, path), readPath(existing, path)));
}

function isWrittenOnly(message: DescMessage | undefined, path: string): boolean {
  const [name = "", ...rest] = path.split(".");
  const field = message?.fields.find((one) => one.name === name);
  if (field === undefined) return false;
  return (
    hasBehavior(field, FieldBehavior.INPUT_ONLY) || (rest.length > 0 && isWrittenOnly(field.message, rest.join(".")))
  );
}

function readPath(json: JsonObject, path: string): JsonValue | undefined {
  return path
    .split(".")
    .reduce<JsonValue | undefined>((value, name) => (isJsonObject(value) ? value[name] : undefined), json);
}

/** Whether two values are the same, where an empty one and none are, and so is a list in another order. */
export function isSameJson(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  return JSON.stringify(normalize(a)) === JSON.stringify(normalize(b));
}

function normalize(value: JsonValue | undefined): JsonValue {
  if (Array.isArray(value)) return value.length === 0 ? null : value.map(normalize).sort(compareText);
  if (isJsonObject(value)) {
    const members = Object.entries(value).map(([name, member]) => [name, normalize(member)] as const);
    const set = members.filter(([, member]) => member !== null).sort(([one], [other]) => compareText(one, other));
    return set.length === 0 ? null : Object.fromEntries(set);
  }
  if (value === undefined || value === "" || value === false || value === 0 || value === "0") return null;
  if (typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value)) return Date.parse(value) || value;
  return value;
}

function compareText(one: JsonValue, other: JsonValue): number {
  const [a, b] = [JSON.stringify(one), JSON.stringify(other)];
  return a < b ? -1 : Number(a > b);
}

function getFieldNamed(message: DescMessage, name: string): DescField {
  const field = getFieldsByName(message).get(name);
  if (field === undefined) throw new TypeError(`${message} has no ${name}`);
  return field;
}
