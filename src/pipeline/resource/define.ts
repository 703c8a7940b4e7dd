// The resource kit: a resource is declared as data, checked by the compiler
// against its message, and handlers call the kit's functions with it. Nothing
// here calls a handler.
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { ResourceKind } from "../../kernel/errors.js";
import type { FieldRule } from "./rules.js";

type OneofMember<T> = {
  [K in keyof T]: T[K] extends { case: string | undefined } ? Extract<T[K]["case"], string> : never;
}[keyof T];

/** The fields of a message, by their local names, members of its oneofs included. */
export type FieldName<D extends DescMessage> =
  | Exclude<keyof MessageShape<D> & string, `$${string}`>
  | OneofMember<MessageShape<D>>;

/** The values of fields; of a oneof's member the value, or undefined where it is not the one set. */
export type FieldValues<D extends DescMessage, M extends FieldName<D>> = {
  [F in M]: F extends keyof MessageShape<D> ? MessageShape<D>[F] : unknown;
};

/** What callers can sort by and change of one resource. */
export interface Resource<D extends DescMessage, M extends FieldName<D> = FieldName<D>> extends ResourceKind {
  /** The message of the newest version of the API. */
  readonly message: D;
  /** The fields lists can be ordered by, as `order_by` spells them. */
  readonly sort: readonly SortName[];
  /** The order of lists that ask for none; ascending by the first sort field unless set. */
  readonly defaultOrder?: string;
  /** The fields callers set and change, each with the rule for its values. All others are ignored in what they send. */
  readonly mutable: Readonly<Record<M, FieldRule>>;
}

/** A sort field by the name it has in `order_by`; `group` is the uid of what lies at its group's own. */
export type SortName = "uid" | "group" | "name" | "created_at" | "updated_at";

/** Declares a resource. */
export function defineResource<D extends DescMessage, M extends FieldName<D>>(
  resource: Resource<D, M>,
): Resource<D, M> {
  return resource;
}
