// What the help says of the flags of fields: the comments of the protos, so that
// it cannot say anything else than the reference. They are read when asked for.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Help, type Option } from "commander";
import { type Comments, parseComments } from "../../../codec/proto-comments.js";
import { FieldFlag, isRepeated } from "./field-flags.js";

// The same path from `src` and from `dist`.
const IMAGE = fileURLToPath(new URL("../../../../gen/api.binpb", import.meta.url));
/** More choices than these are too many to print. */
const MAX_CHOICES = 20;

let comments: Comments | undefined;

/** The description of an option: for a field's what its proto says, and what its values can be. */
export function optionDescription(option: Option): string {
  if (!(option instanceof FieldFlag)) return new Help().optionDescription(option);
  if (option.negate) return `the opposite of ${option.long?.replace("--no-", "--")}`;
  comments ??= parseComments(readFileSync(IMAGE));
  const { field, argChoices = [] } = option;
  const parts = [comments(`${field.parent.typeName}.${field.name}`).replace(/\s+/g, " ")];
  if (option.fromFile) parts.push("The name of a file that holds it, or - for standard input.");
  if (isRepeated(field)) parts.push("Can be given more than once.");
  if (argChoices.length > 0 && argChoices.length <= MAX_CHOICES) parts.push(`One of: ${argChoices.join(", ")}.`);
  return parts.filter((part) => part !== "").join(" ");
}
