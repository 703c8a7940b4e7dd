// What the verbs of `arbor iam RESOURCE` do.
import {
  create,
  type DescField,
  type DescMessage,
  type DescMethodUnary,
  type JsonObject,
  type JsonValue,
  type Message,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { ensureContainer, findWellKnownName, getField, getFieldsByName, setField } from "../../../codec/fields.js";
import { isJsonObject } from "../../../kernel/strict-json.js";
import { isUidText } from "../../../kernel/uidp.js";
import { buildCallbackPath } from "../../../kernel/web.js";
import { CommandError, invalidFlag } from "../../errors.js";
import { confirm, confirmDelete } from "../../output/confirm.js";
import { describeRow, formatNamed } from "../../output/describe.js";
import { formatResponse, type ListColumn } from "../../output/format.js";
import { escapeControls } from "../../output/terminal.js";
import { type CommonFlags, hasColumns, isTable } from "../flags.js";
import { type ApiFlags, fetchIssuer, resolveApi } from "../service.js";
import { type Session, withSession } from "../session.js";
import { addColumn } from "./columns.js";
import { type FieldArgument, type FieldFlag, findEnumValue, formatEnumValue } from "./field-flags.js";
import { omitUnseen } from "./last-seen.js";
import { type ListFlags, printPages } from "./pages.js";
import { buildRequest, type FlagValues, setArguments } from "./request.js";
import { type ActionCommand, findResourceField, getRowsField, type ResourceCommand } from "./resource-commands.js";
import { type ColumnFlags, selectColumns } from "./select-columns.js";

/** How many values of a field of a field the table of one resource has. */
const MAX_VALUES = 10;
/** How many others with the name of a new resource are listed. */
const MAX_NAMESAKES = 20;

/** Prints a page of a list, or all pages. */
export async function runList(
  resource: ResourceCommand,
  method: DescMethodUnary,
  flags: readonly FieldFlag[],
  given: ListFlags,
): Promise<void> {
  const { request } = await buildRequest(method.input, flags, given, undefined);
  const columns = selectColumns(getRowsField(method).message, resource.columns ?? [], given);
  await withSession(given, async (session) => {
    const { hasRedirectUri } = resource;
    const asTable = hasRedirectUri && hasColumns(given.output) && given.columns === undefined;
    const redirectUri = asTable ? await fetchRedirectUri(given) : undefined;
    const added: ListColumn[] = redirectUri ? [{ title: "REDIRECT URI", cell: redirectUri }] : [];
    if (resource.mayEnd && hasColumns(given.output) && given.columns === undefined) {
      const ends = await (await import("./binding-ends.js")).readEndColumn(session.call);
      // The columns of a file for programs are always the same.
      if (ends.isSome || given.output === "csv") added.push(ends.column);
    }
    const complete =
      resource.singular === "role binding"
        ? (await import("./member-names.js")).createNameFinder(session.call)
        : undefined;
    const view = { method, columns: addColumn(columns, ...added), ...(complete && { complete }) };
    await printPages(view, request, given, session);
  });
}

/** Builds the redirect URI to register at an identity provider, which is given as JSON; empty without a uid. */
type RedirectUri = (provider: JsonObject) => string;

/**
 * Fetches the issuer of the service, which the redirect URIs of identity providers begin with.
 *
 * @returns undefined when the service does not answer. Tables then have no redirect URIs.
 */
async function fetchRedirectUri(flags: ApiFlags): Promise<RedirectUri | undefined> {
  try {
    const issuer = await fetchIssuer(resolveApi(flags));
    if (issuer === undefined) return undefined;
    return ({ uid }) => (typeof uid === "string" && uid !== "" ? `${issuer}${buildCallbackPath(uid)}` : "");
  } catch {
    return undefined;
  }
}

// `get`, `create`, `update` and `delete`

/** The flags of a command about one resource. */
export type OneFlags = CommonFlags & FlagValues;

/** Prints one resource. */
export async function runGet(
  resource: ResourceCommand,
  method: DescMethodUnary,
  uid: string,
  given: OneFlags,
): Promise<void> {
  await withSession(given, async (session) =>
    printResponse(resource, session, method, buildUidRequest(method, uid), given),
  );
}

/** Creates a resource and prints it. */
export async function runCreate(
  resource: ResourceCommand,
  method: DescMethodUnary,
  flags: readonly FieldFlag[],
  given: OneFlags,
): Promise<void> {
  const field = findResourceField(resource, method);
  const { request, paths } = await buildRequest(method.input, flags, given, field);
  const { expires, ifAbsent } = given;
  await withSession(given, async (session) => {
    await session.names.resolve(method, request);
    const createOne = async () => {
      const called =
        typeof expires === "string"
          ? (await import("./binding-ends.js")).toTemporary(request, expires)
          : { method, request };
      await printResponse(resource, session, called.method, called.request, given);
      if (resource.creationNote !== undefined && isTable(given.output))
        process.stderr.write(`arbor: ${resource.creationNote}\n`);
    };
    if (ifAbsent !== true) return createWarning(session, resource, { method, request, created: field }, createOne);
    const { createIfAbsent } = await import("./if-absent.js");
    await createIfAbsent(
      session,
      { resource, method, request, field, paths },
      {
        create: createOne,
        print: (existing) => printOne(resource, session, method, existing, given),
        compare: async (existing) =>
          resource.mayEnd ? (await import("./binding-ends.js")).compareEnds(session.call, existing, expires) : [],
      },
    );
  });
}

/** Creates a resource by `work`, and says which others in its parent have the name already. */
export async function createWarning(
  session: Session,
  resource: ResourceCommand,
  creation: Creation,
  work: () => Promise<void>,
): Promise<void> {
  const namesakes = resource.warnsOfNamesakes ? await findNamesakes(session, resource, creation) : [];
  await work();
  if (namesakes.length === 0) return;
  const others =
    namesakes.length === 1 ? `another ${resource.singular} here has` : `${namesakes.length} others here have`;
  const text = `${others} the same name: ${namesakes.join(", ")}; commands need the uid in place of a name of several`;
  process.stderr.write(`arbor: warning: ${escapeControls(text)}\n`);
}

/** A request that creates a resource, with uids in place of names. */
interface Creation {
  readonly method: DescMethodUnary;
  readonly request: Message;
  /** The field with the resource. */
  readonly created: DescField | undefined;
}

/**
 * Finds the resources in the parent of a new one that have its name already, which the API allows. Of new organisations it
 * finds none, because anybody may have an organisation of that name, and none where the caller may not list.
 */
async function findNamesakes(
  { call }: Session,
  { methods: { list } }: ResourceCommand,
  { method, request, created }: Creation,
): Promise<readonly string[]> {
  const field = created && getField(request, created);
  const [parent, name] = [getFieldText(request, method.input, "parent"), getFieldText(field, created?.message, "name")];
  if (list === undefined || parent === "" || name === "") return [];
  const listRequest = create<DescMessage>(list.input, {
    ...{ name, pageSize: MAX_NAMESAKES, uidp: { childrenOf: parent } },
  } as MessageInitShape<DescMessage>);
  try {
    const { [getRowsField(list).jsonName]: rows = [] } = await call(list, listRequest);
    return (rows as JsonObject[]).filter((row) => row.name === name).map(({ uid }) => String(uid));
  } catch (error) {
    // What is wrong with the request the creation says.
    if (error instanceof CommandError) return [];
    throw error;
  }
}

/**
 * Updates a resource and prints it: the fields of `--update-mask`, or else those of flags and file.
 *
 * @throws CommandError INVALID_ARGUMENT without any field
 */
export async function runUpdate(
  resource: ResourceCommand,
  method: DescMethodUnary,
  uid: string,
  flags: readonly FieldFlag[],
  given: OneFlags,
): Promise<void> {
  const field = findResourceField(resource, method);
  if (field === undefined) throw new TypeError(`${method} changes nothing`);
  const { request, paths } = await buildRequest(method.input, flags, given, field);
  setUid(ensureContainer(request, [field]), field.message, uid);
  const mask = getFieldByName(method.input, "update_mask");
  if (getField(request, mask) === undefined) {
    if (paths.length === 0) {
      const rule = "give a flag for each field to change, --file, or --update-mask to clear fields";
      throw invalidFlag("--update-mask", rule);
    }
    setField(request, mask, create(FieldMaskSchema, { paths: [...paths] }));
  }
  await withSession(given, async (session) => printResponse(resource, session, method, request, given));
}

/** Deletes a resource after a confirmation. */
export async function runDelete(
  resource: ResourceCommand,
  method: DescMethodUnary,
  text: string,
  given: OneFlags & { readonly yes?: boolean },
): Promise<void> {
  if (resource.singular === "identity") rejectPerson(text);
  await withSession(given, async (session) => {
    const { call, names, output } = session;
    const request = buildUidRequest(method, text);
    await names.resolve(method, request);
    const uid = String(getField(request, getFieldByName(method.input, "uid")));
    if (!given.yes) {
      const name = uid === text ? await readName(session, resource.methods.get, uid) : text;
      await confirmDelete(formatNamed(resource.singular, name, uid));
    }
    const response = await call(method, request);
    const { output: format } = given;
    const done = isTable(format)
      ? `deleted ${escapeControls(uid)}\n`
      : formatResponse(format, response, () => [], output.terminal);
    await output.write(done);
    if (resource.deletionNote !== undefined) process.stderr.write(`arbor: ${resource.deletionNote}\n`);
  });
}

/**
 * Rejects what is a person: an address, or a uid that is in no group.
 *
 * @throws CommandError INVALID_ARGUMENT with the command that does what was probably meant
 */
function rejectPerson(text: string): void {
  const isAddress = text.includes("@") && !text.includes("/");
  if (!isAddress && !(isUidText(text) && !text.includes("/"))) return;
  const instead = `arbor members offboard ${isAddress ? text : "ADDRESS"}`;
  const rule = `the identity of a person is not deleted, because signing in would register it again; to take all that the person may do: ${instead}`;
  throw invalidFlag("uid", rule);
}

// Who may delete a resource need not be allowed to read it: the question then has the uid alone.
async function readName({ call }: Session, get: DescMethodUnary | undefined, uid: string): Promise<string> {
  if (get === undefined) return "";
  const row = await call(get, buildUidRequest(get, uid)).catch(() => ({}));
  return describeRow(row);
}

/** The arguments and flags of an action. */
export interface ActionFlags {
  readonly args: readonly FieldArgument[];
  /** The texts of `args`. */
  readonly values: readonly string[];
  readonly flags: readonly FieldFlag[];
  /** The field that `--file` sets. */
  readonly resource: DescField | undefined;
}

/** Calls a method that is none of the verbs, and prints its response. */
export async function runAction(
  { name, method, columns, destructive, describe: get }: ActionCommand,
  { args, values, flags, resource }: ActionFlags,
  given: OneFlags & ColumnFlags & { readonly yes?: boolean },
): Promise<void> {
  const { request, paths } = await buildRequest(method.input, flags, given, resource);
  setArguments(request, args, values);
  const shown = columns && selectColumns(getRowsField(method).message, columns, given);
  const mask = method.input.fields.find((field) => field.name === "update_mask");
  if (mask !== undefined && getField(request, mask) === undefined) {
    setField(request, mask, create(FieldMaskSchema, { paths: [...paths] }));
  }
  await withSession(given, async (session) => {
    if (destructive && !given.yes) {
      await session.names.resolve(method, request);
      await confirm(`Run ${name} of ${await formatArguments(session, get, request, { args, values })}?`);
    }
    if (shown !== undefined) await printPages({ method, columns: shown }, request, given, session);
    else await printResponse({}, session, method, request, given);
  });
}

/** Formats the texts of arguments for a question: those that are uids with the names, those that are names with the uids. */
async function formatArguments(
  session: Session,
  get: DescMethodUnary | undefined,
  request: Message,
  { args, values }: Pick<ActionFlags, "args" | "values">,
): Promise<string> {
  const shown: string[] = [];
  for (const [i, { field }] of args.entries()) {
    const [text = "", uid] = [values[i], getField(request, field)];
    const isUid = typeof uid === "string" && isUidText(uid);
    const name = !isUid ? "" : uid === text ? await readName(session, get, uid) : text;
    shown.push(name === "" ? text : `${name} (${uid})`);
  }
  return shown.join(" ");
}

async function printResponse(
  resource: Pick<ResourceCommand, "hasRedirectUri">,
  session: Session,
  method: DescMethodUnary,
  request: Message,
  given: OneFlags,
): Promise<void> {
  await printOne(resource, session, method, await session.call(method, request), given);
}

/** Prints one resource, as a method returns it. */
async function printOne(
  { hasRedirectUri }: Pick<ResourceCommand, "hasRedirectUri">,
  { output }: Session,
  method: DescMethodUnary,
  response: JsonObject,
  given: OneFlags,
): Promise<void> {
  const { output: format } = given;
  const redirectUri = hasRedirectUri && isTable(format) ? await fetchRedirectUri(given) : undefined;
  const rows = (): DetailRow[] => [
    ...toDetailRows(method.output, omitUnseen(response)),
    ...(redirectUri ? [["redirect URI", redirectUri(response)] as const] : []),
  ];
  await output.write(formatResponse(format, response, rows, output.terminal));
}

function buildUidRequest({ input }: DescMethodUnary, uid: string): Message {
  const request = create(input);
  setUid(request, input, uid);
  return request;
}

function setUid(message: Message, desc: DescMessage | undefined, uid: string): void {
  if (desc !== undefined) setField(message, getFieldByName(desc, "uid"), uid);
}

/** The text of a field; empty without the message. */
function getFieldText(message: unknown, desc: DescMessage | undefined, name: string): string {
  return message === undefined || desc === undefined
    ? ""
    : String(getField(message as Message, getFieldByName(desc, name)));
}

function getFieldByName(desc: DescMessage, name: string): DescField {
  const field = desc.fields.find((one) => one.name === name);
  if (field === undefined) throw new TypeError(`${desc} has no ${name}`);
  return field;
}

/** A line of the table of one resource: the path of a field, and its value. */
export type DetailRow = readonly [field: string, value: string];

/** Builds the lines of the fields that are not empty. A list has a line for each element. */
export function toDetailRows(desc: DescMessage, json: JsonObject): DetailRow[] {
  return buildMessageRows(desc, json, "");
}

function buildMessageRows(desc: DescMessage, json: JsonObject, prefix: string): DetailRow[] {
  return Object.entries(json).flatMap(([name, value]) => {
    const field = getFieldsByName(desc).get(name);
    return field === undefined ? [] : buildFieldRows(field, value, prefix + name);
  });
}

function buildFieldRows(field: DescField, value: JsonValue, path: string): DetailRow[] {
  const { message } = field;
  if (field.fieldKind === "message" && isJsonObject(value) && message && findWellKnownName(message) === undefined) {
    return buildMessageRows(message, value, `${path}.`);
  }
  if (field.fieldKind === "list" && Array.isArray(value)) {
    // The capabilities of the role of an invite are a page of their own.
    if (field.enum !== undefined && path.includes(".") && value.length > MAX_VALUES)
      return [[path, `${value.length} values`]];
    return value.map((element): DetailRow => [path, formatElement(field, element)]);
  }
  if (field.fieldKind === "map" && isJsonObject(value)) {
    return Object.entries(value).map(([key, element]): DetailRow => [`${path}.${key}`, formatElement(field, element)]);
  }
  return value === "" ? [] : [[path, formatElement(field, value)]];
}

function formatElement(field: DescField, value: JsonValue): string {
  if (typeof value !== "string") return JSON.stringify(value);
  const enumValue = field.enum && findEnumValue(field.enum, value);
  return enumValue ? formatEnumValue(enumValue) : value;
}
