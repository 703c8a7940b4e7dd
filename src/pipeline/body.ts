// What methods say in the audit log of the changes that they make (docs/adr/0020-audit-bodies.md).
import { createRegistry, type DescMessage, type DescMethod, type MessageInitShape } from "@bufbuild/protobuf";
import { createJsonWriters } from "../codec/json-writer.js";
import type { Change, JsonFields } from "../kernel/audit-body.js";
import type { UnaryCall } from "./call.js";

/** How bodies show a kind of resource. */
export interface BodyView<D extends DescMessage = DescMessage> {
  readonly message: D;
  /** The methods that show the kind: who holds the capabilities of all of them at the subject may read the body. */
  readonly readers: readonly [DescMethod, ...DescMethod[]];
  /** The names of the fields in JSON that bodies have; all unless set. */
  readonly only?: readonly string[];
  /** The names of the fields in JSON that bodies never have. */
  readonly without?: readonly string[];
}

/** Reads a resource as a view shows it; undefined where it does not exist. */
export type FindBody<D extends DescMessage = DescMessage> = (
  uid: string,
  call: UnaryCall,
  request: never,
) => Promise<MessageInitShape<D> | undefined>;

export interface MethodBody {
  readonly view: BodyView;
  /**
   * Reads the resource before the change: by the uid where the method is authorized, or by the request. Absent for
   * creations.
   */
  readonly findBefore?: FindBody;
  /** What the response shows: the resource after the change unless set, that before a deletion, or nothing of it. */
  readonly response?: "before" | "nothing";
  /** Finds the resource in a response that has more; the response itself unless set. */
  readonly shown?: (response: never) => object | undefined;
}

/** What a method says of its changes, or `none` with nothing to say but that it was called. */
export type DeclaredBody = MethodBody | "none";

/**
 * Describes the bodies of the methods that create, update and delete a kind.
 *
 * @param find reads the resource before a change
 */
export function defineBodies<D extends DescMessage>(view: BodyView<D>, find?: FindBody<D>) {
  const findBefore = find as FindBody | undefined;
  return {
    created: { view },
    updated: { view, ...(findBefore && { findBefore }) },
    deleted: { view, ...(findBefore && { findBefore }), response: "nothing" },
  } as const satisfies Record<string, MethodBody>;
}

// Fields that are not set are left out, and so are those that are only input: secrets and times to live. Bodies have no
// Any, so the registry is empty.
const writers = createJsonWriters(createRegistry()).details;

/** Shows a message of a view as bodies do. */
export function showBody({ message, only, without = [] }: BodyView, shown: object): JsonFields {
  const json = JSON.parse(writers.writerOf(message)(shown)) as JsonFields;
  if (only === undefined && without.length === 0) return json;
  const isShown = (name: string) => (only === undefined || only.includes(name)) && !without.includes(name);
  return Object.fromEntries(Object.entries(json).filter(([name]) => isShown(name)));
}

/** The full name of the message of a view in the stable version of the API, if it has one. */
export function stableTypeOf({ message }: BodyView): string {
  return message.typeName.replace(".v2beta1.", ".v2.");
}

/** Describes a change that no method makes, such as one by a command on the host. */
export function describeChange<D extends DescMessage>(
  view: BodyView<D>,
  { before, after }: { readonly [part in "before" | "after"]?: MessageInitShape<D> | undefined },
): Change {
  return {
    type: stableTypeOf(view),
    ...(before && { before: showBody(view, before) }),
    ...(after && { after: showBody(view, after) }),
  };
}
