// Filters and patches in parts, as random tests make them: the service gets them as texts, the reference interpreter as they are.

/** `flag` and `time`, and texts: `exact` and `key` distinguish capital letters, `name` and `key` are never empty. */
export type Kind = "text" | "exact" | "name" | "key" | "flag" | "time" | Kinds | readonly [Kinds];
export interface Kinds {
  readonly [name: string]: Kind;
}

export type Json = Record<string, unknown>;

export interface Model {
  /** `and`, `or`, `not`, `some` (an element of `path` that satisfies `of`), `pr` or a comparison. */
  readonly op: string;
  readonly of: readonly Model[];
  readonly path: readonly string[];
  readonly value: unknown;
  /** Whether the schema does not allow the condition. */
  readonly isWrong: boolean;
}

export interface Step {
  readonly op: "add" | "remove" | "replace";
  readonly path: readonly string[];
  /** Of the multi-valued attribute that `path` begins with. */
  readonly filter: Model | undefined;
  readonly value: unknown;
  /** Whether it is an attribute of the value of an operation without a path. */
  readonly isPart: boolean;
}

export const ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";

const values = { value: "text", type: "text", display: "text", primary: "flag" } as const;
/** Some of the attributes of people; the random tests use no others. */
export const KINDS: Kinds = {
  ...{ id: "exact", externalId: "key", userName: "name", displayName: "text", active: "flag", password: "text" },
  meta: { lastModified: "time", version: "exact" },
  name: { givenName: "text", familyName: "text" },
  emails: [values],
  roles: [values],
  addresses: [{ locality: "text", type: "text", primary: "flag" }],
  groups: [{ value: "exact" }],
  [ENTERPRISE]: { department: "text", manager: { value: "exact", displayName: "text" } },
};

/** Whether callers cannot change what is at a path. */
export function isFixed(path: readonly string[]): boolean {
  return /^(?:id|meta|groups)\b|manager\.displayName$/.test(path.join("."));
}

export function partsOf(kind: Kind | undefined): Kinds | undefined {
  if (typeof kind !== "object") return undefined;
  return Array.isArray(kind) ? (kind[0] as Kinds) : (kind as Kinds);
}

export function kindAt(kinds: Kinds, [name = "", ...rest]: readonly string[]): Kind | undefined {
  const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
  return rest.length === 0 ? kind : kindAt(partsOf(kind) ?? {}, rest);
}

export function isWrong(model: Model): boolean {
  return model.isWrong || model.of.some(isWrong);
}
