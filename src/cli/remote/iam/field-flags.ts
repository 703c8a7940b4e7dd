// The flags that set the fields of a request. A flag is named as its field, with
// the names of the messages around it where these tell more than the field does.
import { type DescField, type DescMessage, getOption, hasOption, ScalarType } from "@bufbuild/protobuf";
import { Option } from "commander";
import { Identity_StaticKeysSchema } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { IdentityProvider_OIDCSchema } from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.js";
import { isOutputOnly, isRequired } from "../../../codec/field-behavior.js";
import { wellKnownName } from "../../../codec/fields.js";
import { offeredNames } from "./enum-names.js";

/** A flag that sets the field at the end of `path`, which leads there from the request. */
export class FieldFlag extends Option {
  readonly path: readonly DescField[];
  readonly field: DescField;
  /** The value is read from a file, because it is secret or long. */
  readonly fromFile: boolean;

  constructor(flags: string, path: readonly DescField[], fromFile = false) {
    super(flags);
    this.path = path;
    this.field = lastOf(path);
    this.fromFile = fromFile;
    if (this.field.enum !== undefined) this.argChoices = offeredNames(this.field.enum);
  }
}

// What is put before the names of the fields within a message, where that is not the message's own name.
const prefixes: Readonly<Record<string, string>> = { uidp: "", claim_match: "", aws_identity: "aws" };

const inFiles: ReadonlySet<DescField> = new Set([
  IdentityProvider_OIDCSchema.field.clientSecret,
  Identity_StaticKeysSchema.field.issuerKeys,
]);

/** What a request is for, as far as flags depend on it. */
export interface FlagScope {
  /** The field that holds the thing itself: the flags of its fields have no prefix. */
  readonly resource?: DescField | undefined;
  /** What exists is changed: fields that are fixed when it is made have no flags. */
  readonly changing?: boolean;
  /** What is set can be unset: switches have a `--no-` form. */
  readonly writing?: boolean;
}

/** The flags of a request: one for each field, and for each field of the messages in it, that callers set. */
export function fieldFlags(request: DescMessage, scope: FlagScope): FieldFlag[] {
  const walk = (message: DescMessage, parents: readonly DescField[], prefix: string): FieldFlag[] =>
    message.fields.flatMap((field) => {
      if (isOutputOnly(field) || (scope.changing && isImmutable(field))) return [];
      const path = [...parents, field];
      const name = joined(prefix, singular(field));
      if (field.fieldKind !== "message" || wellKnownName(field.message) !== undefined)
        return flagsOf(path, name, scope);
      return walk(field.message, path, field === scope.resource ? "" : (prefixes[field.name] ?? name));
    });
  return walk(request, [], "");
}

function flagsOf(path: readonly DescField[], name: string, { writing = false }: FlagScope): FieldFlag[] {
  const field = lastOf(path);
  if (isSwitch(field)) {
    const on = new FieldFlag(`--${name}`, path);
    return writing ? [on, new FieldFlag(`--no-${name}`, path)] : [on];
  }
  const fromFile = inFiles.has(field);
  const flag = new FieldFlag(
    fromFile ? `--${name}-file <file>` : `--${name} <${placeholderOf(field)}>`,
    path,
    fromFile,
  );
  // Kept in a list, as commander by itself would take the words behind a repeatable flag for its values.
  if (isRepeated(field)) flag.argParser<readonly string[]>((text, before = []) => [...before, text]);
  if (path.length === 1 && isRequired(field)) flag.makeOptionMandatory();
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
  return hasOption(field, field_behavior) && getOption(field, field_behavior).includes(FieldBehavior.IMMUTABLE);
}

// `--capability a --capability b`: each flag gives one.
function singular(field: DescField): string {
  const name = field.name.replaceAll("_", "-");
  return isRepeated(field) ? name.replace(/ies$/, "y").replace(/s$/, "") : name;
}

function joined(prefix: string, name: string): string {
  return prefix === "" || name.startsWith(`${prefix}-`) ? name : `${prefix}-${name}`;
}

function placeholderOf(field: DescField): string {
  if (field.fieldKind === "map") return "name=value";
  if (field.enum !== undefined) return "name";
  if (field.message !== undefined) return placeholders[wellKnownName(field.message) ?? ""] ?? "value";
  if (field.scalar !== ScalarType.STRING) return "number";
  return /^(ids|identity|role|default_role|group|parent|scope)$|uid$|_of$/.test(field.name) ? "uid" : "text";
}

const placeholders: Readonly<Record<string, string>> = { Timestamp: "time", Duration: "duration", FieldMask: "fields" };

function lastOf(path: readonly DescField[]): DescField {
  const last = path.at(-1);
  if (last === undefined) throw new TypeError("a path has at least one field");
  return last;
}
