// `arbor iam NOUN get`, `create`, `update` and `delete`
import {
  create,
  type DescField,
  type DescMessage,
  type DescMethodUnary,
  type JsonObject,
  type Message,
} from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { ensureContainer, getField, setField } from "../../../codec/fields.js";
import { invalidArgument } from "../../../kernel/errors.js";
import { answerText } from "../../output/format.js";
import { printable } from "../../printable.js";
import { confirmDelete } from "./confirm.js";
import { type DetailRow, detailRows } from "./detail-rows.js";
import type { FieldFlag } from "./field-flags.js";
import { type ResourceCommand, resourceFieldOf } from "./nouns.js";
import { redirectUrisAt } from "./redirect-uri.js";
import { type Given, requestOf } from "./request.js";
import { type CommonFlags, type Session, withSession } from "./session.js";

type OneFlags = CommonFlags & Given;

/** Prints one thing. */
export async function runGet(
  noun: ResourceCommand,
  method: DescMethodUnary,
  uid: string,
  given: OneFlags,
): Promise<void> {
  await withSession(given, async (session) => print(noun, session, method, named(method, uid), given));
}

/** Creates one thing and prints it. */
export async function runCreate(
  noun: ResourceCommand,
  method: DescMethodUnary,
  flags: readonly FieldFlag[],
  given: OneFlags,
): Promise<void> {
  const { request } = await requestOf(method.input, flags, given, resourceFieldOf(noun, method));
  await withSession(given, async (session) => print(noun, session, method, request, given));
}

/**
 * Changes one thing and prints it: the fields given, or those that `--update-mask` names.
 *
 * @throws ApiError INVALID_ARGUMENT when neither says what to change
 */
export async function runUpdate(
  noun: ResourceCommand,
  method: DescMethodUnary,
  uid: string,
  flags: readonly FieldFlag[],
  given: OneFlags,
): Promise<void> {
  const resource = resourceFieldOf(noun, method);
  if (resource === undefined) throw new TypeError(`${method} changes nothing`);
  const { request, paths } = await requestOf(method.input, flags, given, resource);
  setUid(ensureContainer(request, [resource]), resource.message, uid);
  const mask = fieldNamed(method.input, "update_mask");
  if (getField(request, mask) === undefined) {
    if (paths.length === 0) {
      const rule = "give a flag for each field to change, --file, or --update-mask to clear fields";
      throw invalidArgument({ field: "--update-mask", description: rule });
    }
    setField(request, mask, create(FieldMaskSchema, { paths: [...paths] }));
  }
  await withSession(given, async (session) => print(noun, session, method, request, given));
}

/** Deletes one thing, if it is meant. */
export async function runDelete(
  noun: ResourceCommand,
  method: DescMethodUnary,
  uid: string,
  given: OneFlags & { readonly yes?: boolean },
): Promise<void> {
  if (!given.yes) await confirmDelete(`${noun.one} ${uid}`);
  await withSession(given, async ({ call, output }) => {
    const answer = await call(method, named(method, uid));
    const { output: format } = given;
    const text =
      format === "table" ? `deleted ${printable(uid)}\n` : answerText(format, answer, () => [], output.terminal);
    await output.write(text);
  });
}

async function print(
  { hasRedirectUri }: ResourceCommand,
  { call, output }: Session,
  method: DescMethodUnary,
  request: Message,
  given: OneFlags,
): Promise<void> {
  const { output: format } = given;
  const answer: JsonObject = await call(method, request);
  const redirectUris = hasRedirectUri && format === "table" ? await redirectUrisAt(given) : undefined;
  const rows = (): DetailRow[] => [
    ...detailRows(method.output, answer),
    ...(redirectUris ? [["redirect URI", redirectUris(answer)] as const] : []),
  ];
  await output.write(answerText(format, answer, rows, output.terminal));
}

function named({ input }: DescMethodUnary, uid: string): Message {
  const request = create(input);
  setUid(request, input, uid);
  return request;
}

function setUid(message: Message, desc: DescMessage | undefined, uid: string): void {
  if (desc !== undefined) setField(message, fieldNamed(desc, "uid"), uid);
}

function fieldNamed(desc: DescMessage, name: string): DescField {
  const field = desc.fields.find((one) => one.name === name);
  if (field === undefined) throw new TypeError(`${desc} has no ${name}`);
  return field;
}
