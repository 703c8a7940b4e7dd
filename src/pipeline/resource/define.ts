// The resource kit: what the API says of a kind of resource is declared once, as data that the compiler checks against its
// message. How the kind is stored is declared in the store (store/kind.ts), and the definition names it. Handlers pass the
// definition to the functions of the kit. What concerns all kinds, such as deletion, quotas and stable names, reads the list of
// definitions that src/app/definitions.ts holds.
import type { DescMessage, DescService, MessageShape } from "@bufbuild/protobuf";
import type { ResourceKind } from "../../kernel/errors.js";
import type { Kind } from "../../store/kind.js";
import type { ListQuery, Page } from "../../store/lists/query.js";
import type { ListedKind } from "../../store/lists/resource.js";
import type { Tx } from "../../store/transaction.js";
import type { FixedFields } from "./fixed-fields.js";
import type { CreatingMethod } from "./quota.js";
import type { FieldRule } from "./rules.js";

type OneofMember<T> = {
  [K in keyof T]: T[K] extends { case: string | undefined } ? Extract<T[K]["case"], string> : never;
}[keyof T];

/** The fields of a message, by their local names, members of its oneofs included. */
export type FieldName<D extends DescMessage> =
  | Exclude<keyof MessageShape<D> & string, `$${string}`>
  | OneofMember<MessageShape<D>>;

/** The values of fields. The value of a oneof's member is undefined unless that member is set. */
export type FieldValues<D extends DescMessage, M extends FieldName<D>> = {
  [F in M]: F extends keyof MessageShape<D> ? MessageShape<D>[F] : unknown;
};

/** The fields of a message that callers set and change. */
export interface MutableFields<D extends DescMessage, M extends FieldName<D> = FieldName<D>> extends ResourceKind {
  /** The message of the newest version of the API. */
  readonly message: D;
  /** Each field with the rule for its values. */
  readonly mutable: Readonly<Record<M, FieldRule>>;
  /** The fields that requests may name with their stored value alone. The others are output-only, and ignored. */
  readonly fixed?: FixedFields;
}

/** Declares the mutable fields of a message that is part of another resource, such as the readme of a repo. */
export function defineMutableFields<D extends DescMessage, M extends FieldName<D>>(
  fields: MutableFields<D, M>,
): MutableFields<D, M> {
  return fields;
}

/** A field that lists are ordered by, as `order_by` spells it; `group` is the uid of a kind with one row per group. */
export type SortName = "uid" | "group" | "name" | "created_at" | "updated_at";

/** What happens to the rows of a kind when the resource above them is deleted; as ON DELETE of SQL. */
export interface OnDelete {
  /** Counts rows that exist at `nowMs` and keep the parent from being deleted, as far as MAX_COUNTED + 1 (delete.ts). */
  readonly restrict?: (tx: Tx, parentUid: string, nowMs: number) => Promise<number>;
  /** Deletes the rows that do not restrict. */
  readonly cascade?: (tx: Tx, parentUid: string) => Promise<void>;
}

/** The kind that a kind lies directly below. One of `restrict` and `cascade` is always declared. */
export interface Parent {
  /** The resource type of the parent, such as `iam.chainguard.dev/Group`. */
  readonly type: string;
  readonly onDelete: OnDelete & (Required<Pick<OnDelete, "restrict">> | Required<Pick<OnDelete, "cascade">>);
}

/** What the readers of all definitions need of each. */
export interface ResourceDefinition extends ResourceKind {
  /** The display name of several, such as `role bindings`. */
  readonly plural: string;
  readonly message: DescMessage;
  /** Undefined for a kind that no deletion concerns. */
  readonly parent?: Parent;
  /** Another kind that rows name, and that is kept while they do. */
  readonly keeps?: { readonly type: string; readonly restrict: Required<OnDelete>["restrict"] };
  /** How it is stored; undefined for what the store has no kind of. */
  readonly kind?: Pick<ListedKind, "sorts" | "quota">;
  /** The methods that create one, in both versions, where a quota limits the kind; stable names follow from those of the beta. */
  readonly createdBy?: readonly CreatingMethod[];
  /** The stable version of the service that manages the kind; undefined where version 2 has none. */
  readonly stable?: DescService;
}

/** The rows of a kind, as `Tx` offers them. */
export interface ResourceTable<Row> {
  find(uid: string): Promise<Row | undefined>;
  list(query: ListQuery): Promise<Page<Row>>;
}

/** A filter of a kind's own: the column that must equal the field of the request, unless that is empty. */
export interface EqualsFilter {
  readonly column: string;
  readonly rule?: FieldRule;
}

/** A kind of resource that callers get and list. */
export interface Resource<D extends DescMessage, M extends FieldName<D>, Row>
  extends ResourceDefinition,
    MutableFields<D, M> {
  readonly message: D;
  readonly table: (tx: Tx) => ResourceTable<Row>;
  /** The fields that lists can be ordered by. */
  readonly sort: readonly SortName[];
  /** The order of lists that ask for none; ascending by the first sort field unless set. */
  readonly defaultOrder?: string;
  /** The filters besides those of all kinds, by the fields of list requests. */
  readonly filters?: Readonly<Record<string, EqualsFilter>>;
  /** The uids of rows that belong to no group and that every caller sees. */
  readonly builtIn?: readonly string[];
}

/** A definition without what follows from how its kind is stored. */
type Declaration<D extends DescMessage, M extends FieldName<D>, Row> = Omit<Resource<D, M, Row>, "table" | "sort"> &
  Partial<Pick<Resource<D, M, Row>, "sort">>;

/**
 * Declares a kind of resource. Its rows are those of its stored kind, and lists can be ordered by the uid and by the orders of
 * the kind, unless the declaration says otherwise. It takes part in everything that concerns all kinds once
 * src/app/definitions.ts lists it.
 */
export function defineResource<D extends DescMessage, M extends FieldName<D>, Row>(
  declaration: Declaration<D, M, Row> & Pick<Resource<D, M, Row>, "table">,
): Resource<D, M, Row>;
export function defineResource<D extends DescMessage, M extends FieldName<D>, Row>(
  declaration: Declaration<D, M, Row> & { readonly kind: Kind<ResourceTable<Row>> },
): Resource<D, M, Row>;
export function defineResource<D extends DescMessage, M extends FieldName<D>, Row>(
  declaration: Declaration<D, M, Row> & { readonly kind?: Partial<Kind<ResourceTable<Row>>> } & Partial<
      Pick<Resource<D, M, Row>, "table">
    >,
): Resource<D, M, Row> {
  const { kind } = declaration;
  const sort = ["uid", ...Object.keys(kind?.sorts ?? {})] as SortName[];
  return { table: (tx) => tx.table(kind as Kind<ResourceTable<Row>>), sort, ...declaration };
}
