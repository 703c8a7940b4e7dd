// The flags for the fields of a request, and the names of enum values. A flag has the name of its field, with the names
// of the messages around it. Capabilities have their dotted names, other enum values their names without the prefix of
// the proto.
import { type DescEnum, type DescEnumValue, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { Argument, Option } from "commander";
import { CapabilitySchema, name as capabilityName } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { FieldBehavior } from "#gen/google/api/field_behavior_pb.js";
import { isOutputOnly } from "../../../codec/field-behavior.js";
import { findWellKnownName, hasBehavior, isRequired, readOption } from "../../../codec/fields.js";
import { invalidFlag } from "../../errors.js";

type FieldFlagOptions = Partial<Pick<FieldFlag, "fromFile" | "former">>;

/** A flag that sets the field at the end of `path`, a field path of the request. */
export class FieldFlag extends Option {
  readonly path: readonly DescField[];
  readonly field: DescField;
  /** Whether the value is the path of a file, because it is secret or long. */
  readonly fromFile: boolean;
  /** The former name with the placeholder, for a flag that had the name of its field. */
  readonly former: string | undefined;

  constructor(flags: string, path: readonly DescField[], { fromFile = false, former }: FieldFlagOptions = {}) {
    super(flags);
    this.path = path;
    this.field = lastOf(path);
    this.fromFile = fromFile;
    this.former = former;
    if (this.field.enum !== undefined) this.argChoices = [...listEnumNames(this.field.enum)];
  }
}

/** An argument that sets a field of the request. */
export class FieldArgument extends Argument {
  readonly field: DescField;

  constructor(field: DescField) {
    // Commander prints arguments that have a description; the help replaces it by the comment of the field.
    super(`<${field.name.replaceAll("_", "-")}>`, field.name);
    this.field = field;
    if (field.enum !== undefined) this.argChoices = [...listEnumNames(field.enum)];
  }
}

/**
 * Creates the arguments of a request.
 *
 * @param names the names of their fields; the required ones with one value, unless given
 */
export function createFieldArguments({ fields }: DescMessage, names?: readonly string[]): FieldArgument[] {
  const isOne = (field: DescField) => (field.fieldKind === "scalar" || field.fieldKind === "enum") && !isSwitch(field);
  const chosen = names
    ? names.map((name) => fields.find((field) => field.name === name))
    : fields.filter((field) => isRequired(field) && isOne(field));
  return chosen.map((field) => {
    if (field === undefined) throw new TypeError(`there is no such field among ${names}`);
    return new FieldArgument(field);
  });
}

// Flags take names as well as uids, and are called the same in all commands, whatever their fields are called. Until
// version 1.4 they had the names of the fields.
const plainNames: Readonly<Record<string, string>> = {
  "identity-uid": "identity",
  "role-uid": "role",
  "identity-provider-uid": "identity-provider",
};

// Prefixes of the fields of messages that differ from the name of the message.
const prefixes: Readonly<Record<string, string>> = { uidp: "", claim_match: "", aws_identity: "aws" };

const PLATFORM = "chainguard.platform";
const ADVISORY = `${PLATFORM}.vulnerabilities.v1.Advisory`;

// Fields are named, because loading the descriptors of all of them takes longer than most commands do.
/** The full names of the fields whose flags name a file. */
export const fileFields: ReadonlySet<string> = new Set([
  `${PLATFORM}.iam.v2beta1.IdentityProvider.OIDC.client_secret`,
  `${PLATFORM}.iam.v2beta1.Identity.StaticKeys.issuer_keys`,
  `${PLATFORM}.registry.v2beta1.RepoReadme.content`,
]);

/** The full names of fields of which version 1 says in comments alone, which are not read to create flags, that the service sets them. */
export const setByService: ReadonlySet<string> = new Set([
  ...["id", "created_at", "updated_at", "deleted_at", "advisory_id", "author"].map((name) => `${ADVISORY}.${name}`),
  ...["id", "author", "reviewer"].map((name) => `${ADVISORY}Event.${name}`),
  `${PLATFORM}.registry.Tag.last_updated`,
]);

function fullNameOf({ parent, name }: DescField): string {
  return `${parent.typeName}.${name}`;
}

/** The properties of a request that determine its flags. */
export interface FlagScope {
  /** The field with the resource, whose flags have no prefix. */
  readonly resource?: DescField | undefined;
  /** Whether the request updates a resource, so that immutable fields have no flags. */
  readonly updating?: boolean;
  /** Whether the request writes a resource, so that boolean flags have a `--no-` form. */
  readonly writing?: boolean;
  /** The fields that arguments set, which have no flags. */
  readonly args?: readonly DescField[];
  /** Whether a file may set required fields, so that their flags may be absent. */
  readonly fromFile?: boolean;
}

/** Creates the flags of a request: one for each field that callers set, also in nested messages. */
export function createFieldFlags(request: DescMessage, scope: FlagScope): FieldFlag[] {
  const walk = (message: DescMessage, parents: readonly DescField[], prefix: string): FieldFlag[] =>
    message.fields.flatMap((field) => {
      if (
        isOutputOnly(field) ||
        setByService.has(fullNameOf(field)) ||
        (scope.updating && isImmutable(field)) ||
        scope.args?.includes(field)
      )
        return [];
      const path = [...parents, field];
      const name = joinNames(prefix, singular(field));
      if (field.fieldKind !== "message" || findWellKnownName(field.message) !== undefined)
        return createFlags(path, name, scope);
      return walk(field.message, path, field === scope.resource ? "" : (prefixes[field.name] ?? name));
    });
  return walk(request, [], "");
}

function createFlags(
  path: readonly DescField[],
  fieldName: string,
  { writing = false, fromFile: inFile = false }: FlagScope,
): FieldFlag[] {
  const field = lastOf(path);
  const name = plainNames[fieldName] ?? fieldName;
  if (isSwitch(field)) {
    const on = new FieldFlag(`--${name}`, path);
    return writing ? [on, new FieldFlag(`--no-${name}`, path)] : [on];
  }
  const fromFile = fileFields.has(fullNameOf(field));
  const value = `<${placeholderOf(field)}>`;
  const former = name === fieldName ? undefined : `--${fieldName} ${value}`;
  const flag = new FieldFlag(fromFile ? `--${name}-file <file>` : `--${name} ${value}`, path, { fromFile, former });
  // With a variadic option, commander would take the words after a flag as values too.
  if (isRepeated(field)) flag.argParser<readonly string[]>((text, before = []) => [...before, text]);
  if (path.length === 1 && isRequired(field) && !inFile) flag.makeOptionMandatory();
  return [flag];
}

/** Whether a field is set by a flag without a value. */
export function isSwitch(field: DescField): boolean {
  return field.fieldKind === "scalar" && field.scalar === ScalarType.BOOL;
}

/** Whether the flag of a field may be given more than once. */
export function isRepeated(field: DescField): boolean {
  return field.fieldKind === "list" || field.fieldKind === "map";
}

function isImmutable(field: DescField): boolean {
  return hasBehavior(field, FieldBehavior.IMMUTABLE);
}

// The flag of a repeated field is singular, because each use adds one value: `--capability a --capability b`.
function singular(field: DescField): string {
  const name = field.name.replaceAll("_", "-");
  return isRepeated(field) ? name.replace(/ies$/, "y").replace(/(?<=alias)es$|s$/, "") : name;
}

function joinNames(prefix: string, name: string): string {
  return prefix === "" || name.startsWith(`${prefix}-`) ? name : `${prefix}-${name}`;
}

function placeholderOf(field: DescField): string {
  if (field.fieldKind === "map") return "name=value";
  if (field.enum !== undefined) return "name";
  if (field.message !== undefined) return placeholders[findWellKnownName(field.message) ?? ""] ?? "value";
  if (field.scalar === ScalarType.BYTES) return "base64";
  if (field.scalar !== ScalarType.STRING) return "number";
  if (field.name === "ids") return "uid";
  return /^(identity|role|default_role|group|parent|scope)$|uid$|_of$/.test(field.name) ? "uid-or-name" : "text";
}

const placeholders: Readonly<Record<string, string>> = { Timestamp: "time", Duration: "duration", FieldMask: "fields" };

function lastOf(path: readonly DescField[]): DescField {
  const last = path.at(-1);
  if (last === undefined) throw new TypeError("a path has at least one field");
  return last;
}

const MAX_NAMES = 20;

/** Formats the name of a value in commands, such as `groups.list` or `claim-match`. */
export function formatEnumValue(value: DescEnumValue): string {
  const name = readOption(value, capabilityName);
  if (name !== undefined) return name;
  const { sharedPrefix = "" } = value.parent;
  const bare = value.name.toLowerCase().startsWith(sharedPrefix) ? value.name.slice(sharedPrefix.length) : value.name;
  return bare.toLowerCase().replaceAll("_", "-");
}

/** Lists the names that flags accept: all but that of the unspecified value. */
function listEnumNames(desc: DescEnum): readonly string[] {
  let names = namesByEnum.get(desc);
  if (names === undefined) {
    names = desc.values.filter(({ number }) => number !== 0).map(formatEnumValue);
    namesByEnum.set(desc, names);
  }
  return names;
}

// A cache, because many flags have the same hundred names, which are computed from their options.
const namesByEnum = new WeakMap<DescEnum, readonly string[]>();

/** Finds the value with a name, as in commands or in the proto, in any case; undefined for none. */
export function findEnumValue(desc: DescEnum, text: string): DescEnumValue | undefined {
  const name = normalizeName(text);
  return desc.values.find(
    (value) => normalizeName(value.name) === name || normalizeName(formatEnumValue(value)) === name,
  );
}

/** Finds the dotted name of a capability that is spelled so or as in the proto, in any case; undefined for none. */
export function findCapability(text: string): string | undefined {
  const value = findEnumValue(CapabilitySchema, text);
  return value === undefined || value.number === 0 ? undefined : formatEnumValue(value);
}

/**
 * Parses a capability to its dotted name.
 *
 * @param flag the name of the flag in errors
 * @throws CommandError INVALID_ARGUMENT for what is none
 */
export function parseCapability(flag: string, text: string): string {
  const name = findCapability(text);
  if (name !== undefined) return name;
  throw invalidFlag(flag, `there is no capability ${text}: a capability ${formatEnumRule(CapabilitySchema, text)}`);
}

/** Formats the rule for a text that names no value of `desc`, without its subject. */
export function formatEnumRule(desc: DescEnum, text: string): string {
  const names = listEnumNames(desc);
  if (names.length <= MAX_NAMES) return `must be one of ${names.join(", ")}`;
  // If there are hundreds of names: those with the same first part, or all first parts.
  const [head] = normalizeName(text).split(".");
  const close = names.filter((name) => normalizeName(name).split(".")[0] === head);
  if (close.length > 0) return `must be one of ${close.join(", ")}`;
  const heads = new Set(names.map((name) => name.split(".")[0]));
  return `must begin with one of ${[...heads].join(", ")}`;
}

function normalizeName(name: string): string {
  return name.trim().toLowerCase().replaceAll("-", "_");
}
