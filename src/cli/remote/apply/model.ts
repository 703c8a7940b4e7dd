// What a file says of an organisation, what the service says of it, and the differences.
import type { JsonValue } from "@bufbuild/protobuf";

/** The kinds of resources that a file may have, in the order in which they are created. */
export const kindNames = ["group", "issuer guard", "role", "identity", "role binding", "subscription"] as const;

export type KindName = (typeof kindNames)[number];

/** Fields by their names in the file, in a form in which equal values have the same JSON. */
export type Values = Readonly<Record<string, JsonValue>>;

/** The path of the organisation itself. */
export const ROOT = "/";

/** Where something stands in a file. */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** What says which resource is meant. */
export interface Reference {
  /** The text of the file, or what a person would write. */
  readonly text: string;
  readonly at?: Position;
}

/** A resource of a file. */
export interface Desired {
  readonly kind: KindName;
  /** The path of its group; that of the group above for a group. */
  readonly group: string;
  /** The name; the sink of a subscription. */
  readonly name: string;
  /** Who has which role, of a role binding. */
  readonly identity?: Reference;
  readonly role?: Reference;
  /** The fields that the file has. Others are left as they are. */
  readonly values: Values;
  readonly at: Position;
  /** The positions of its fields. */
  readonly fields: Readonly<Record<string, Position>>;
}

/** A file. */
export interface DesiredState {
  readonly file: string;
  /** The name or uid of the organisation. */
  readonly organization: string;
  readonly resources: readonly Desired[];
  /** The kinds that the file has a section for. */
  readonly sections: ReadonlySet<KindName>;
  /** Whether the file says that the organisation has no issuer guard. */
  readonly hasNoGuard: boolean;
}

/** A resource of the service. */
export interface Actual {
  readonly kind: KindName;
  readonly uid: string;
  readonly group: string;
  readonly name: string;
  /** The uids of a role binding, and how people would name them. */
  readonly identityUid?: string;
  readonly roleUid?: string;
  readonly identityText?: string;
  readonly roleText?: string;
  readonly values: Values;
  /** Why the resource is managed by something else, and never deleted or exported. */
  readonly managedBy?: ManagedBy;
}

/** What manages a resource besides the people who write files. */
export type ManagedBy = "a directory, by SCIM" | "the operator of the service" | "arbor auth pull-tokens";

/** The service. */
export interface ActualState {
  readonly organization: { readonly uid: string; readonly name: string };
  readonly resources: readonly Actual[];
  /** The uids of the people with an e-mail address. */
  readonly people: ReadonlyMap<string, ReadonlySet<string>>;
  /** The uids of the built-in roles by their names. */
  readonly builtInRoles: ReadonlyMap<string, string>;
  /** The uid of the caller. */
  readonly caller: string;
  /** The uids of groups that hold something of another kind, such as repos, with what it is. */
  readonly occupied: ReadonlyMap<string, string>;
}

/** A field that changes. */
export interface FieldChange {
  readonly field: string;
  /** Undefined where there was none. */
  readonly before?: JsonValue;
  readonly after: JsonValue;
}

/** A change, with the resource of the file, that of the service, or both. */
export type Change =
  | { readonly action: "create"; readonly kind: KindName; readonly label: string; readonly desired: Desired }
  | {
      readonly action: "update";
      readonly kind: KindName;
      readonly label: string;
      readonly desired: Desired;
      readonly actual: Actual;
      readonly fields: readonly FieldChange[];
    }
  | { readonly action: "delete"; readonly kind: KindName; readonly label: string; readonly actual: Actual };

/** A resource that the file does not have, and which stays all the same. */
export interface Kept {
  readonly kind: KindName;
  readonly label: string;
  readonly uid: string;
  readonly reason: string;
}

/** What to do. */
export interface Plan {
  /** In the order in which they are made. */
  readonly changes: readonly Change[];
  readonly kept: readonly Kept[];
  /** What the reader of the plan should know, a sentence each. */
  readonly notes: readonly string[];
  /** How many resources of the file are as it says. */
  readonly unchanged: number;
}

/** Joins the path of a group and a name. */
export function joinPath(group: string, name: string): string {
  return group === ROOT ? `/${name}` : `${group}/${name}`;
}

/** Splits a path into that of the group and the name; both are of the organisation itself for {@link ROOT}. */
export function splitPath(path: string): { readonly group: string; readonly name: string } {
  const slash = path.lastIndexOf("/");
  return { group: path.slice(0, slash) || ROOT, name: path.slice(slash + 1) };
}

/** Whether one path is another, or below it. */
export function isPathWithin(path: string, ancestor: string): boolean {
  return ancestor === ROOT || path === ancestor || path.startsWith(`${ancestor}/`);
}

/** How many groups a path goes down. */
export function depthOfPath(path: string): number {
  return path === ROOT ? 0 : path.split("/").length - 1;
}

/** The path of a group, role or identity. */
export function pathOf({ kind, group, name }: Pick<Desired, "kind" | "group" | "name">): string {
  return kind === "group" && name === "" ? ROOT : joinPath(group, name);
}

/** Formats a value for a stable comparison: the keys of objects are sorted. */
export function canonical(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, one]): [string, JsonValue] => [key, canonical(one)]);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Whether two values are the same. */
export function isSame(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  return (
    JSON.stringify(a === undefined ? null : canonical(a)) === JSON.stringify(b === undefined ? null : canonical(b))
  );
}
