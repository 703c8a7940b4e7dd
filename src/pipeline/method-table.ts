// The one table of everything that can be called. At boot each method of each
// served service becomes an entry that holds its handler and all that its proto
// options declare, worked out once, so that a call looks nothing up.
import {
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  getOption,
  hasOption,
  type Message,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { events, iam, iam_scope } from "#gen/chainguard/annotations/annotations_pb.js";
import { bit, CapabilitySchema, name as capabilityName } from "#gen/chainguard/capabilities/capabilities_pb.js";
import type { Awaitable, Tx } from "../store/port.js";
import type { Caller } from "./auth/caller.js";
import type { Call, StreamCall } from "./call.js";

/**
 * What answers a method. Of a unary one a pure function of the request and the open transaction; of
 * one that streams its answers a function to an `AsyncIterable`, which runs outside any transaction.
 */
export type Handler =
  | ((request: never, call: Call) => Promise<object> | object)
  | PreparedHandler<never, unknown, object>
  | PartsHandler<never, unknown, object>;

/**
 * A handler that needs something from outside, such as the keys of another issuer, before its
 * transaction begins. What it then relies on of the store it must read again in there.
 */
export interface PreparedHandler<I, P, O> {
  /** Runs before the transaction, at most once per call, and may wait for the network. */
  readonly prepare: (request: I, call: StreamCall) => Promise<P>;
  readonly handle: (request: I, call: Call, prepared: P) => Promise<O> | O;
}

/** A part of a list, and where the part behind it begins: undefined where there is none. */
export interface ListPart<O, P> {
  readonly part: O;
  readonly next: P | undefined;
}

/** A handler of a list that has no pages; see {@link inParts}. */
export interface PartsHandler<I, P, O> {
  readonly partAt: (request: I, call: Call, after: P | undefined) => Promise<ListPart<O, P>>;
}

/**
 * Makes the handler of a list that is answered whole, however long it is, from one that reads a part of
 * it. Each part is a unit of work of its own, decided on anew, so that a long list holds nobody up and
 * ends where the caller's rights do. The answer may have no field but the list.
 *
 * @param partAt reads the part behind `after`, the first part without it
 */
export function inParts<I, P, O>(
  partAt: (request: I, call: Call, after: P | undefined) => Promise<ListPart<O, P>>,
): PartsHandler<I, unknown, O> {
  return { partAt: partAt as PartsHandler<I, unknown, O>["partAt"] };
}

/** Makes a handler of a preparation and what it prepares for, checked by the compiler. */
export function prepared<I, P, O>(handler: PreparedHandler<I, P, O>): PreparedHandler<I, unknown, O> {
  return handler as PreparedHandler<I, unknown, O>;
}

/** The handlers of a service, by connect's local method names. */
export type Handlers<S extends DescService> = {
  [K in keyof S["method"]]: S["method"][K] extends DescMethodUnary<infer I, infer O>
    ?
        | ((request: MessageShape<I>, call: Call) => Promise<MessageInitShape<O>> | MessageInitShape<O>)
        | PreparedHandler<MessageShape<I>, unknown, MessageInitShape<O>>
        | PartsHandler<MessageShape<I>, unknown, MessageInitShape<O>>
    : S["method"][K] extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageShape<I>, call: StreamCall) => AsyncIterable<MessageInitShape<O>>
      : never;
};

/** A capability that a method needs. */
export interface NeededCapability {
  readonly name: string;
  readonly bit: number;
}

/** Who may call a method. */
export type AuthRule =
  | { readonly mode: "public" }
  | { readonly mode: "self" }
  | {
      readonly mode: "guarded";
      readonly capabilities: readonly NeededCapability[];
      /** Reads from the request where the capabilities are needed; absent on unscoped methods. */
      readonly scope?: { readonly field: string; readonly of: (request: Message) => string };
    };

/** What the declaration of any callable method says. */
interface DeclaredMethod {
  readonly desc: DescMethod;
  /** What the method is described as; its messages may be called by other names there. */
  readonly published: DescMethod;
  /** The RPC path, `/package.Service/Method`. */
  readonly path: string;
  readonly auth: AuthRule;
  /** The largest request, in bytes as sent and after decompression. */
  readonly maxRequestBytes: number;
}

/** The largest request of a method unless its service is registered with another size, in bytes. */
export const REQUEST_BYTES = 256 * 1024;
/** The largest request of a method whose callers need not be known, in bytes. */
export const PUBLIC_REQUEST_BYTES = 16 * 1024;
/** The largest request that a service may be registered with, in bytes; the same as gRPC's own default. */
export const MAX_REQUEST_BYTES = 4 * 1024 * 1024;

/**
 * Makes sure that there is room for what a request creates, in a read of its own before the method runs.
 * It is called only after the caller was authorized.
 *
 * @throws ApiError RESOURCE_EXHAUSTED
 */
export type RoomCheck = (request: Message, caller: Caller, tx: Tx) => Awaitable<void>;

/** A method with one answer. */
export interface UnaryEntry extends DeclaredMethod {
  readonly kind: "unary";
  /** Whether the call opens a read or a write transaction: NO_SIDE_EFFECTS on the proto means read. */
  readonly access: "read" | "write";
  /** The event type to record; of methods that declare none, the method's own name. */
  readonly auditType: string;
  readonly handler: (request: Message, call: Call) => Promise<object> | object;
  /** What is done before the transaction, if anything is. */
  readonly prepare?: (request: Message, call: StreamCall) => Promise<unknown>;
  /** Whether a quota allows what is to be created; absent where none limits it. */
  readonly requireRoom?: RoomCheck;
  /** The list that is the whole answer, where the handler gives it in parts; see list-chunks. */
  readonly list?: DescField;
}

/** A method with a stream of answers. It has no transaction, so it changes nothing and records nothing. */
export interface StreamEntry extends DeclaredMethod {
  readonly kind: "server_streaming";
  readonly handler: (request: Message, call: StreamCall) => AsyncIterable<object>;
}

/** One callable method and all that its declaration says. */
export type MethodEntry = UnaryEntry | StreamEntry;

/** All callable methods, by RPC path. */
export type MethodTable = ReadonlyMap<string, MethodEntry>;

/** Methods that authenticate their caller by themselves, and so carry no authorization option. */
const SELF_AUTHENTICATING: ReadonlySet<string> = new Set([
  "chainguard.platform.oidc.SecurityTokenService.Exchange",
  "chainguard.platform.oidc.SecurityTokenService.ExchangeRefreshToken",
  "chainguard.platform.auth.Auth.GetHeadlessSession",
]);

/** A served service: its descriptor and its handlers. */
export interface ServedService<S extends DescService = DescService> {
  readonly desc: S;
  readonly handlers: Readonly<Record<string, Handler>>;
  /** What the service is described as, where its messages go by other names; see stable. */
  readonly published?: DescService;
  /** The largest requests in bytes, by connect's local method names, of methods that differ from the rest. */
  readonly maxRequestBytes?: Readonly<Record<string, number>>;
}

/**
 * Pairs a service with its handlers, checked by the compiler.
 *
 * @param maxRequestBytes the largest request of a method, 256 KiB unless given, and 16 KiB where callers need
 * not be known; at most 4 MiB
 */
export function serve<S extends DescService>(
  desc: S,
  handlers: Handlers<S>,
  maxRequestBytes: Partial<Readonly<Record<keyof S["method"], number>>> = {},
): ServedService<S> {
  return {
    desc,
    handlers: handlers as Readonly<Record<string, Handler>>,
    maxRequestBytes: maxRequestBytes as Readonly<Record<string, number>>,
  };
}

/**
 * Builds the table.
 *
 * @param roomCheckOf what makes sure that a quota allows what a method creates; no quotas unless given
 * @throws TypeError at boot when a method takes a stream, has no handler, no authorization rule, or a
 * scope that is not exactly one field.
 */
export function createMethodTable(
  services: readonly ServedService[],
  roomCheckOf: (method: DescMethod) => RoomCheck | undefined = () => undefined,
): MethodTable {
  const table = new Map<string, MethodEntry>();
  for (const { desc, handlers, published, maxRequestBytes = {} } of services) {
    for (const method of desc.methods) {
      const handler = handlers[method.localName];
      if (handler === undefined) throw new TypeError(`${method} has no handler`);
      const requireRoom = roomCheckOf(method);
      const entry = {
        ...entryOf(method, handler, maxRequestBytes[method.localName]),
        ...(requireRoom && { requireRoom }),
        published: published?.method[method.localName] ?? method,
      };
      table.set(entry.path, entry);
    }
  }
  return table;
}

function entryOf(
  desc: DescMethod,
  handler: Handler,
  maxRequestBytes: number | undefined,
): Unpublished<UnaryEntry> | Unpublished<StreamEntry> {
  const { typeName } = desc.parent;
  if (desc.methodKind !== "unary" && desc.methodKind !== "server_streaming") {
    throw new TypeError(`${typeName}.${desc.name} takes a stream, which the method table does not serve`);
  }
  const auth = authRuleOf(desc);
  const bytes = maxRequestBytes ?? (auth.mode === "guarded" ? REQUEST_BYTES : PUBLIC_REQUEST_BYTES);
  if (!(bytes > 0 && bytes <= MAX_REQUEST_BYTES)) throw new TypeError(`${typeName}.${desc.name}: ${bytes} bytes`);
  const declared = { desc, path: `/${typeName}/${desc.name}`, auth, maxRequestBytes: bytes };
  // `serve` has checked each handler against its method.
  if (desc.methodKind === "server_streaming") {
    return { ...declared, kind: "server_streaming", handler: handler as StreamEntry["handler"] };
  }
  const event = hasOption(desc, events) ? getOption(desc, events) : undefined;
  return {
    ...declared,
    kind: "unary",
    access: desc.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS ? "read" : "write",
    auditType: event?.type || `${typeName}.${desc.name}`,
    ...unaryHandler(desc, handler),
  };
}

type Unpublished<E> = Omit<E, "published">;

function unaryHandler(desc: DescMethod, handler: Handler): Pick<UnaryEntry, "handler" | "prepare" | "list"> {
  if (typeof handler === "function") return { handler: handler as UnaryEntry["handler"] };
  if ("partAt" in handler) {
    const { partAt } = handler as PartsHandler<Message, unknown, object>;
    const [list, ...others] = desc.output.fields;
    if (list?.fieldKind !== "list" || others.length > 0) throw new TypeError(`${desc} answers more than a list`);
    return {
      list,
      async handler(request, call) {
        const { part, next } = await partAt(request, call, call.after);
        call.next = next;
        return part;
      },
    };
  }
  const { prepare, handle } = handler as PreparedHandler<Message, unknown, object>;
  return { prepare, handler: (request, call) => handle(request, call, call.prepared) };
}

/** The authorization rule a method declares; throws TypeError when it is missing or makes no sense. */
export function authRuleOf(method: DescMethod): AuthRule {
  const fullName = `${method.parent.typeName}.${method.name}`;
  if (!hasOption(method, iam)) {
    if (SELF_AUTHENTICATING.has(fullName)) return { mode: "self" };
    throw new TypeError(`${fullName} has no (chainguard.annotations.iam) option`);
  }
  const { mode } = getOption(method, iam);
  if (mode.case === "disabled") return { mode: "public" };
  if (mode.case !== "enabled") throw new TypeError(`${fullName}: the iam option names no mode`);
  const capabilities = mode.value.capabilities.map((number) => neededCapability(number, fullName));
  if (mode.value.unscoped) return { mode: "guarded", capabilities };
  const scopes = scopeFieldsOf(method.input);
  const [scope] = scopes;
  if (scopes.length > 1) throw new TypeError(`${fullName}: more than one field is marked iam_scope`);
  if (scope === undefined) {
    if (capabilities.length > 0) throw new TypeError(`${fullName}: no field is marked iam_scope`);
    return { mode: "guarded", capabilities };
  }
  return { mode: "guarded", capabilities, scope };
}

/** The capabilities that a method declares; none for one that anybody may call. */
export function capabilitiesFor(method: DescMethod): readonly NeededCapability[] {
  const rule = authRuleOf(method);
  return rule.mode === "guarded" ? rule.capabilities : [];
}

function neededCapability(number: number, method: string): NeededCapability {
  const value = CapabilitySchema.values.find((v) => v.number === number);
  if (value === undefined || !hasOption(value, bit)) throw new TypeError(`${method}: capability ${number} has no bit`);
  return { name: getOption(value, capabilityName), bit: getOption(value, bit) };
}

type Scope = NonNullable<Extract<AuthRule, { mode: "guarded" }>["scope"]>;

// A marked message field stands for the marked field inside it; an unmarked one is never looked
// into, since a create request carries a uid of the client's own making.
function scopeFieldsOf(message: DescMessage): Scope[] {
  return message.fields.filter(isScope).flatMap((outer): Scope[] => {
    const read = (m: Message, field: DescField): unknown => (m as unknown as Record<string, unknown>)[field.localName];
    if (outer.fieldKind === "scalar") {
      return [{ field: outer.jsonName, of: (m) => String(read(m, outer) ?? "") }];
    }
    if (outer.fieldKind !== "message") return [];
    return outer.message.fields.filter(isScope).map((inner) => ({
      field: `${outer.jsonName}.${inner.jsonName}`,
      of: (m) => {
        const nested = read(m, outer) as Message | undefined;
        return nested === undefined ? "" : String(read(nested, inner) ?? "");
      },
    }));
  });
}

function isScope(field: DescField): boolean {
  return hasOption(field, iam_scope) && getOption(field, iam_scope);
}
