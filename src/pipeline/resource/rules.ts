import { isUidp } from "../../kernel/uidp.js";

/** Whether a field's value will do: undefined, or the rule it breaks, beginning with the field's name. */
export type FieldRule = (value: unknown, field: string) => string | undefined;

const NAME = /^[a-z0-9 ._-]{1,}$/;
const MAX_NAME = 1_000;
const MAX_DESCRIPTION = 512;
// Control characters, halves of surrogate pairs, line and paragraph separators.
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;

/** The rule for names (spec section 2), whose text is fixed by section 7. */
export const isName: FieldRule = (value, field) => {
  if (typeof value !== "string" || !NAME.test(value)) return `${field} must match ${NAME.source}`;
  return value.length > MAX_NAME ? `${field} must be at most ${MAX_NAME} characters` : undefined;
};

/** The rule for descriptions: one line of at most 512 characters, possibly empty. */
export const isDescription: FieldRule = (value, field) => {
  if (typeof value !== "string" || !isPrintable(value)) return `${field} must not contain control characters`;
  return value.length > MAX_DESCRIPTION && [...value].length > MAX_DESCRIPTION
    ? `${field} must be at most ${MAX_DESCRIPTION} characters`
    : undefined;
};

/** Whether `text` can be stored and shown: databases refuse some of what this excludes. */
export function isPrintable(text: string): boolean {
  return !UNPRINTABLE.test(text);
}

/** The rule for fields that must name something by its uid. */
export const isRequiredUid: FieldRule = (value, field) => {
  if (typeof value !== "string" || value === "") return `${field} is required`;
  return isUidp(value) ? undefined : `${field} must be a uid, such as the service assigns`;
};
