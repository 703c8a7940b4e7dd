// The table of all callable methods. At boot each method of each served service
// becomes an entry with its handler and what its proto options declare, so that
// a call looks nothing up.
import type { DescField, DescMessage, DescMethod, DescService, Message, Registry } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { events, iam, iam_scope } from "#gen/chainguard/annotations/annotations_pb.js";
import { bit, CapabilitySchema, name as capabilityName } from "#gen/chainguard/capabilities/capabilities_pb.js";
import type { HttpRule } from "#gen/google/api/http_pb.js";
import { readOption } from "../codec/fields.js";
import type { Tx } from "../store/transaction.js";
import type { Caller } from "./auth/caller.js";
import { type BodyView, type DeclaredBody, type MethodBody, stableTypeOf } from "./body.js";
import type { CallContext, StreamCall, UnaryCall } from "./call.js";
import type { ChunkedHandler, Handler, Handlers, Outcome, PreparedHandler } from "./handlers.js";
import type { Reservation } from "./resource/reservation.js";

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
      /** Whether people may call it without the capabilities about their own identity. */
      readonly ownIdentity?: boolean;
    };

/** What the declaration of any callable method says. */
interface DeclaredMethod {
  readonly desc: DescMethod;
  /** The descriptor that reflection and OpenAPI show, whose messages may have other names. */
  readonly published: DescMethod;
  /** The RPC path, `/package.Service/Method`. */
  readonly path: string;
  readonly auth: AuthRule;
  /** The largest request, in bytes as sent and after decompression. */
  readonly maxRequestBytes: number;
  /** Whether REST ignores query parameters that name no field. */
  readonly ignoreUnknownQuery?: boolean;
  /** Whether the `**` of the path may match no segment; see {@link MethodSettings}. */
  readonly allowEmptyPath?: boolean;
  /** Former spellings of the path; see {@link ServedService}. */
  readonly formerPaths?: readonly FormerPath[];
  /** The HTTP rule in place of the option google.api.http; null for none. */
  readonly http?: HttpRule | null;
  /** Whether its calls have no spans, as those of health checks, which are many and say nothing. */
  readonly isUntraced?: boolean;
  /** Set for a mounted method, whose handler runs outside the unit of work and whose errors are those of connect. */
  readonly mounted?: MountedService;
}

/** What the methods of a mounted service share. */
export interface MountedService {
  readonly desc: DescService;
  /** The types beyond those of its own files that may stand in an Any. */
  readonly registry: Registry | undefined;
}

/** The largest request of a method unless its service is registered with another size, in bytes. */
export const REQUEST_BYTES = 256 * 1024;
/** The largest request of a method whose callers need not be known, in bytes. */
export const PUBLIC_REQUEST_BYTES = 16 * 1024;
/** The largest request that a service may be registered with, in bytes; the same as gRPC's own default. */
export const MAX_REQUEST_BYTES = 4 * 1024 * 1024;

/**
 * Makes sure that there is room for what a request creates: in a read of its own before the method runs, with a
 * reservation, and where that says so again in the transaction of the method, without one. It is called only after the
 * caller was authorized.
 *
 * @throws ApiError RESOURCE_EXHAUSTED
 */
export type RoomCheck = (request: Message, caller: Caller, tx: Tx, reservation?: Reservation) => Promise<void>;

/** The body of a method, and what follows from the method. */
export interface EntryBody extends MethodBody {
  /** The full name of the message that it is the JSON of. */
  readonly type: string;
}

/** A method with one response. */
export interface UnaryEntry extends DeclaredMethod {
  readonly kind: "unary";
  /**
   * Whether the call opens a read or a write transaction: NO_SIDE_EFFECTS on the proto means read. That of a mounted
   * method opens none.
   */
  readonly access: "read" | "write";
  /** The event type to record; of methods that declare none, the method's own name. */
  readonly auditType: string;
  /** What is recorded of a change; absent where there is nothing to say. */
  readonly body?: EntryBody;
  /** Returns a response or an {@link Outcome}. */
  readonly handler: (request: Message, call: UnaryCall) => Promise<object> | object;
  /** What runs before the transaction, if anything does. */
  readonly prepare?: (request: Message, call: CallContext) => Promise<unknown>;
  /** Whether a quota allows what is to be created; absent where none limits it. */
  readonly requireRoom?: RoomCheck;
  /** The only field of the response, where the handler reads it in chunks; see list-chunks. */
  readonly list?: DescField;
}

/** A method with a stream of responses. It has no transaction, so it changes nothing and records nothing. */
export interface StreamEntry extends DeclaredMethod {
  readonly kind: "server_streaming";
  readonly handler: (request: Message, call: StreamCall) => AsyncIterable<object>;
}

/** A mounted method that takes a stream of requests, with one response or a stream of them. */
export interface InputStreamEntry extends DeclaredMethod {
  readonly kind: "input_streaming";
  readonly handler: (requests: AsyncIterable<Message>, call: StreamCall) => AsyncIterable<object>;
}

/** One callable method and all that its declaration says. */
export type MethodEntry = UnaryEntry | StreamEntry | InputStreamEntry;

/** All callable methods, by RPC path. */
export type MethodTable = ReadonlyMap<string, MethodEntry>;

/** What the registration of a service says about one of its methods. */
export interface MethodSettings {
  /**
   * The largest request in bytes: 256 KiB unless given, and 16 KiB where callers need not be authenticated; at most
   * 4 MiB.
   */
  readonly maxRequestBytes?: number;
  /** The handler authenticates its caller itself, so the method declares no authorization option. */
  readonly selfAuthenticating?: boolean;
  /** REST ignores query parameters that name no field, for clients of other versions. */
  readonly ignoreUnknownQuery?: boolean;
  /**
   * REST also serves the path that ends where its `**` begins, such as `/v1/things/` for `/v1/things/{parent=**}`, and
   * the field is empty there. Without it such a path is no route.
   */
  readonly allowEmptyPath?: boolean;
  /** What the audit log gets of a change. A method with an event must say it. */
  readonly body?: DeclaredBody;
  /** People may call it about their own identity, without the capabilities that it declares. */
  readonly ownIdentity?: boolean;
}

/** A part of the paths of a service, and how an older version of the API spells it. */
export interface FormerPath {
  /** As in the HTTP rules of the service, such as `/things`. */
  readonly current: string;
  readonly former: string;
}

/** A served service: its descriptor and its handlers. */
export interface ServedService<S extends DescService = DescService> {
  readonly desc: S;
  readonly handlers: Readonly<Record<string, Handler>>;
  /** The descriptor that reflection and OpenAPI show instead; see app/services. */
  readonly published?: DescService;
  /** By connect's local method names, for the methods that differ from the rest. */
  readonly settings?: Readonly<Record<string, MethodSettings>>;
  /**
   * REST also serves each path that contains `current` with `former` in its place, and describes it as deprecated:
   * for clients that take over the paths of an older version.
   */
  readonly formerPaths?: readonly FormerPath[];
}

/** Pairs a service with its handlers, checked by the compiler, and with the settings of single methods. */
export function serve<S extends DescService>(
  desc: S,
  handlers: Handlers<S>,
  settings: Partial<Readonly<Record<keyof S["method"], MethodSettings>>> = {},
): ServedService<S> {
  return {
    desc,
    handlers: handlers as Readonly<Record<string, Handler>>,
    settings: settings as Readonly<Record<string, MethodSettings>>,
  };
}

/**
 * Builds the table.
 *
 * @param roomCheckOf what makes sure that a quota allows what a method creates; no quotas unless given
 * @throws TypeError at boot when a method takes a stream, has no handler, no authorization rule, a
 * scope that is not exactly one field, or an event and no body.
 */
export function createMethodTable(
  services: readonly ServedService[],
  roomCheckOf: (method: DescMethod) => RoomCheck | undefined = () => undefined,
): MethodTable {
  const table = new Map<string, MethodEntry>();
  for (const { desc, handlers, published, settings = {}, formerPaths } of services) {
    for (const method of desc.methods) {
      const handler = handlers[method.localName];
      if (handler === undefined) throw new TypeError(`${method} has no handler`);
      const requireRoom = roomCheckOf(method);
      const isStable = published !== undefined;
      const entry = {
        ...buildEntry(method, handler, settings[method.localName] ?? {}, isStable),
        ...(requireRoom && { requireRoom }),
        ...(formerPaths && { formerPaths }),
        published: published?.method[method.localName] ?? method,
      };
      table.set(entry.path, entry);
    }
  }
  return table;
}

function buildEntry(
  desc: DescMethod,
  handler: Handler,
  { maxRequestBytes, selfAuthenticating, ignoreUnknownQuery, allowEmptyPath, body, ownIdentity }: MethodSettings,
  isStable: boolean,
): Unpublished<UnaryEntry> | Unpublished<StreamEntry> {
  const { typeName } = desc.parent;
  if (desc.methodKind !== "unary" && desc.methodKind !== "server_streaming") {
    throw new TypeError(`${typeName}.${desc.name} takes a stream, which the method table does not serve`);
  }
  const rule = readAuthRule(desc, selfAuthenticating);
  const auth = ownIdentity && rule.mode === "guarded" ? { ...rule, ownIdentity } : rule;
  const declared = {
    ...declareMethod(desc, auth, maxRequestBytes),
    ...(ignoreUnknownQuery && { ignoreUnknownQuery }),
    ...(allowEmptyPath && { allowEmptyPath }),
  };
  // `serve` has checked each handler against its method.
  if (desc.methodKind === "server_streaming") {
    return { ...declared, kind: "server_streaming", handler: handler as StreamEntry["handler"] };
  }
  const event = readOption(desc, events);
  if (event !== undefined && body === undefined)
    throw new TypeError(`${typeName}.${desc.name} has an event and no body`);
  return {
    ...declared,
    kind: "unary",
    access: desc.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS ? "read" : "write",
    auditType: event?.type || `${typeName}.${desc.name}`,
    ...(body !== undefined && body !== "none" && { body: { ...body, type: bodyTypeOf(body.view, isStable) } }),
    ...unaryHandler(desc, handler),
  };
}

function bodyTypeOf(view: BodyView, isStable: boolean): string {
  return isStable ? stableTypeOf(view) : view.message.typeName;
}

/**
 * Finds what a reader of bodies needs: the capabilities at the subject, by the types of bodies.
 *
 * @param others the methods that show what bodies say that no method writes, by the types of these
 */
export function findBodyReaders(
  services: readonly ServedService[],
  others: Readonly<Record<string, readonly DescMethod[]>> = {},
): ReadonlyMap<string, readonly NeededCapability[]> {
  const found = new Map<string, readonly NeededCapability[]>();
  const add = (type: string, readers: readonly DescMethod[]) => found.set(type, readers.flatMap(readCapabilities));
  for (const [type, readers] of Object.entries(others)) add(type, readers);
  for (const { published, settings = {} } of services) {
    for (const { body = "none" } of Object.values(settings)) {
      if (body !== "none") add(bodyTypeOf(body.view, published !== undefined), body.view.readers);
    }
  }
  return found;
}

/**
 * Builds what the entries of all kinds have.
 *
 * @throws TypeError when `maxRequestBytes` is out of range
 */
export function declareMethod(desc: DescMethod, auth: AuthRule, maxRequestBytes?: number) {
  const { typeName } = desc.parent;
  const bytes = maxRequestBytes ?? (auth.mode === "guarded" ? REQUEST_BYTES : PUBLIC_REQUEST_BYTES);
  if (!(bytes > 0 && bytes <= MAX_REQUEST_BYTES)) throw new TypeError(`${typeName}.${desc.name}: ${bytes} bytes`);
  return { desc, path: `/${typeName}/${desc.name}`, auth, maxRequestBytes: bytes };
}

type Unpublished<E> = Omit<E, "published">;

function unaryHandler(desc: DescMethod, handler: Handler): Pick<UnaryEntry, "handler" | "prepare" | "list"> {
  if (typeof handler === "function") return { handler: handler as UnaryEntry["handler"] };
  if ("readChunk" in handler) {
    const { readChunk } = handler as ChunkedHandler<Message, unknown, object>;
    const [list, ...others] = desc.output.fields;
    if (list?.fieldKind !== "list" || others.length > 0)
      throw new TypeError(`the response of ${desc} has more than a list`);
    return {
      list,
      async handler(request, call) {
        const { chunk, next } = await readChunk(request, call, call.cursor);
        call.nextCursor = next;
        return chunk;
      },
    };
  }
  const { prepare, handle } = handler as PreparedHandler<Message, unknown, object>;
  return { prepare, handler: (request, call) => handle(request, call, call.prepared) };
}

/**
 * Reads the authorization rule that a method declares.
 *
 * @param selfAuthenticating whether its handler authenticates the caller; then it must declare none
 * @throws TypeError when the rule is missing or contradicts itself
 */
export function readAuthRule(method: DescMethod, selfAuthenticating = false): AuthRule {
  const fullName = `${method.parent.typeName}.${method.name}`;
  const declared = readOption(method, iam);
  if (selfAuthenticating && declared === undefined) return { mode: "self" };
  if (selfAuthenticating) throw new TypeError(`${fullName} authenticates its caller, but has an iam option`);
  if (declared === undefined) throw new TypeError(`${fullName} has no (chainguard.annotations.iam) option`);
  const { mode } = declared;
  if (mode.case === "disabled") return { mode: "public" };
  if (mode.case !== "enabled") throw new TypeError(`${fullName}: the iam option names no mode`);
  const capabilities = mode.value.capabilities.map((number) => getCapability(number, fullName));
  if (mode.value.unscoped) return { mode: "guarded", capabilities };
  const scopes = findScopeFields(method.input);
  const [scope] = scopes;
  if (scopes.length > 1) throw new TypeError(`${fullName}: more than one field is marked iam_scope`);
  if (scope === undefined) {
    if (capabilities.length > 0) throw new TypeError(`${fullName}: no field is marked iam_scope`);
    return { mode: "guarded", capabilities };
  }
  return { mode: "guarded", capabilities, scope };
}

/** Reads the capabilities that a method declares; none for one that everybody may call. */
export function readCapabilities(method: DescMethod): readonly NeededCapability[] {
  const rule = readAuthRule(method);
  return rule.mode === "guarded" ? rule.capabilities : [];
}

/** Reads a capability by its number. @throws TypeError naming `method` when there is none. */
export function getCapability(number: number, method: string): NeededCapability {
  const value = CapabilitySchema.values.find((one) => one.number === number);
  const name = value && readOption(value, capabilityName);
  const declaredBit = value && readOption(value, bit);
  if (name === undefined || declaredBit === undefined)
    throw new TypeError(`${method}: capability ${number} has no bit`);
  return { name, bit: declaredBit };
}

/** Reads from the request where capabilities are needed. */
export type Scope = NonNullable<Extract<AuthRule, { mode: "guarded" }>["scope"]>;

// A marked message field stands for the marked field within it. An unmarked one is not searched, because the resource
// in a create request has a uid that the client chose.
function findScopeFields(message: DescMessage): Scope[] {
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
  return readOption(field, iam_scope) === true;
}
