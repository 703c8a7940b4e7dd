// A request as the command line describes it: what a file holds, and over it
// what the flags say.
import { create, type DescField, type Message } from "@bufbuild/protobuf";
import { findMaskPaths } from "../../../codec/field-mask.js";
import { ensureContainer, setField } from "../../../codec/fields.js";
import { invalidArgument } from "../../../kernel/errors.js";
import { type FieldFlag, isRepeated, isSwitch } from "./field-flags.js";
import { flagValue } from "./flag-value.js";
import { fileText, resourceIn } from "./resource-file.js";

/** What was given on the command line, by the names commander gives to flags. */
export type Given = Readonly<Record<string, unknown>>;

/** A request and what of its resource it names. */
export interface BuiltRequest {
  readonly request: Message;
  /** The fields given, as paths of a field mask within the resource. */
  readonly paths: readonly string[];
}

/**
 * Builds the request of a method.
 *
 * @param resource the field that `--file` is for; undefined where there is none
 * @throws ApiError INVALID_ARGUMENT naming the flag that is wrong.
 */
export async function requestOf(
  input: DescField["parent"],
  flags: readonly FieldFlag[],
  given: Given,
  resource: DescField | undefined,
): Promise<BuiltRequest> {
  const request = create(input);
  const used = flags.filter((flag) => isGiven(flag, given[flag.attributeName()]));
  assertTogether(used);
  assertOneStdin([given.file, ...used.filter(({ fromFile }) => fromFile).map((flag) => given[flag.attributeName()])]);
  const paths = new Set<string>();
  if (resource?.message !== undefined && typeof given.file === "string") {
    const { message, json } = await resourceIn(given.file, resource.message, "--file");
    setField(request, resource, message);
    for (const path of findMaskPaths(resource.message, json, new Set(["uid"]))) paths.add(path);
  }
  for (const flag of used) {
    setField(ensureContainer(request, flag.path.slice(0, -1)), flag.field, await valueGiven(flag, given));
    if (flag.path[0] === resource) paths.add(maskPath(flag));
  }
  return { request, paths: [...paths] };
}

function maskPath({ path }: FieldFlag): string {
  return path
    .slice(1)
    .map(({ name }) => name)
    .join(".");
}

// A switch and its reverse share a name; the one that was given has its value.
function isGiven(flag: FieldFlag, value: unknown): boolean {
  return isSwitch(flag.field) ? value === !flag.negate : value !== undefined;
}

async function valueGiven(flag: FieldFlag, given: Given): Promise<unknown> {
  const value = given[flag.attributeName()];
  if (isSwitch(flag.field)) return value;
  const name = flag.long ?? flag.flags;
  if (!flag.fromFile)
    return flagValue(flag.field, isRepeated(flag.field) ? (value as string[]) : [String(value)], name);
  // The end of the last line belongs to the file and not to what it holds.
  const content = (await fileText(String(value), name)).replace(/[\r\n]+$/, "");
  if (content === "") throw invalidArgument({ field: name, description: `${name} must name a file that is not empty` });
  return flagValue(flag.field, [content], name);
}

// Where a request takes one of several, the last flag must not silently win over those before it.
function assertTogether(flags: readonly FieldFlag[]): void {
  for (const [i, flag] of flags.entries()) {
    const rival = flags.slice(0, i).find((other) => excludes(other, flag));
    if (rival === undefined) continue;
    throw invalidArgument({ field: `${flag.long}`, description: `${flag.long} cannot go together with ${rival.long}` });
  }
}

function excludes({ path: a }: FieldFlag, { path: b }: FieldFlag): boolean {
  const fork = a.findIndex((field, i) => field !== b[i]);
  const [left, right] = [a[fork], b[fork]];
  return left?.oneof !== undefined && left.oneof === right?.oneof;
}

function assertOneStdin(files: readonly unknown[]): void {
  if (files.filter((file) => file === "-").length < 2) return;
  throw invalidArgument({ field: "--file", description: "only one file can be -, which is standard input" });
}
