// Mounts a foreign service: its descriptor, an implementation as it is written for a
// router of connect, and beside them what the platform's protos say by options.
import {
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromJson,
  type JsonValue,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { iam } from "#gen/chainguard/annotations/annotations_pb.js";
import { http as httpOption } from "#gen/google/api/annotations_pb.js";
import { type HttpRule, HttpRuleSchema } from "#gen/google/api/http_pb.js";
import { getField, readOption } from "../codec/fields.js";
import {
  type AuthRule,
  declareMethod,
  getCapability,
  type MethodEntry,
  type MountedService,
  readAuthRule,
  type Scope,
} from "./method-table.js";
import type { Mount, MountAccess, MountHttpRule, MountOptions } from "./mount-options.js";

/** A mounted service with the entries of its methods. */
export interface MountedEntries extends Mount {
  readonly entries: readonly MethodEntry[];
}

/** Mounts a service; see `mount` of app/server. */
export function mount<S extends DescService>(
  desc: S,
  impl: Partial<ServiceImpl<S>>,
  options: MountOptions<S> = {},
): MountedEntries {
  const { access, registry, maxRequestBytes } = options;
  // Dispatch tells a path of RPC from others by the dot of the package.
  if (!desc.typeName.includes(".")) throw new TypeError(`${desc.typeName} has no package`);
  const rules: Readonly<Record<string, MountHttpRule | null | undefined>> = options.http ?? {};
  const accessByMethod = access === undefined || isAccess(access) ? undefined : access;
  for (const name of [...Object.keys(rules), ...Object.keys(accessByMethod ?? {})]) {
    if (desc.methods.every(({ localName }) => localName !== name)) {
      throw new TypeError(`${desc.typeName} has no method ${name}`);
    }
  }
  const mounted: MountedService = { desc, registry };
  const entries = desc.methods.map((method): MethodEntry => {
    const given = accessByMethod === undefined ? access : accessByMethod[method.localName as keyof S["method"]];
    const auth = ruleOf(method, given as MountAccess | undefined);
    const http = httpRuleOf(method, rules[method.localName]);
    const declared = {
      ...declareMethod(method, auth, maxRequestBytes),
      ...{ published: method, mounted },
      ...(http !== undefined && { http }),
    };
    return {
      ...declared,
      ...handlerOf(method, (impl as Record<string, Impl | undefined>)[method.localName]?.bind(impl)),
    };
  });
  return { desc, entries };
}

function isAccess(access: object | string): access is MountAccess {
  return typeof access === "string" || Array.isArray((access as { capabilities?: unknown }).capabilities);
}

function ruleOf(method: DescMethod, access: MountAccess | undefined): AuthRule {
  const rule = access === undefined ? requireDeclaredRule(method) : toAuthRule(method, access);
  if (rule.mode !== "guarded") return rule;
  // The pipeline leaves capabilities without a scope to the handlers, and foreign handlers do not check them.
  if (rule.capabilities.length > 0 && rule.scope === undefined) {
    throw new TypeError(
      `${fullNameOf(method)}: capabilities need a scope, the field of the request that names a group`,
    );
  }
  if (rule.scope !== undefined && takesStream(method)) {
    throw new TypeError(`${fullNameOf(method)} takes a stream, which has no one field that names a group`);
  }
  return rule;
}

function requireDeclaredRule(method: DescMethod): AuthRule {
  if (readOption(method, iam) === undefined) throw new TypeError(`${fullNameOf(method)} is given no access`);
  return readAuthRule(method);
}

function toAuthRule(method: DescMethod, access: MountAccess): AuthRule {
  if (access === "public") return { mode: "public" };
  if (access === "authenticated") return { mode: "guarded", capabilities: [] };
  const name = fullNameOf(method);
  if (typeof access !== "object" || !Array.isArray(access.capabilities) || access.capabilities.length === 0) {
    throw new TypeError(`${name}: access must be "public", "authenticated" or capabilities at a scope`);
  }
  const capabilities = access.capabilities.map((number) => getCapability(number, name));
  return { mode: "guarded", capabilities, scope: scopeAt(method.input, access.scope, name) };
}

function scopeAt(input: DescMessage, path: string | undefined, method: string): Scope {
  const fields: DescField[] = [];
  let message: DescMessage | undefined = input;
  for (const name of (path ?? "").split(".")) {
    const field: DescField | undefined = message?.fields.find((one) => one.name === name);
    if (field === undefined) throw new TypeError(`${method}: the scope "${path}" is no field of ${input.typeName}`);
    fields.push(field);
    message = field.fieldKind === "message" ? field.message : undefined;
  }
  const last = fields.at(-1);
  if (last?.fieldKind !== "scalar" || last.scalar !== ScalarType.STRING) {
    throw new TypeError(`${method}: the scope "${path}" is no single text`);
  }
  const of = (request: Message) => {
    let value: unknown = request;
    for (const field of fields) value = value === undefined ? undefined : getField(value as Message, field);
    return String(value ?? "");
  };
  return { field: fields.map(({ jsonName }) => jsonName).join("."), of };
}

function httpRuleOf(method: DescMethod, given: MountHttpRule | null | undefined): HttpRule | null | undefined {
  const name = fullNameOf(method);
  if (given !== null && takesStream(method) && (given !== undefined || readOption(method, httpOption) !== undefined)) {
    throw new TypeError(`${name} takes a stream, which JSON over HTTP cannot send: give null as its HTTP rule`);
  }
  if (given === undefined || given === null) return given;
  try {
    return fromJson(HttpRuleSchema, given as JsonValue);
  } catch (error) {
    throw new TypeError(`${name}: the HTTP rule cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

type Impl = (request: unknown, context: HandlerContext) => unknown;

// What `ServiceImpl` says of each kind of method has been checked by the compiler, or is in the hands of the program that mounts it.
function handlerOf(method: DescMethod, impl: Impl = createUnimplemented(method)) {
  switch (method.methodKind) {
    case "unary": {
      const handler = impl as (request: Message, context: HandlerContext) => Promise<object> | object;
      return { kind: "unary", access: "write", auditType: fullNameOf(method), handler } as const;
    }
    case "server_streaming":
      return { kind: "server_streaming", handler: impl as StreamImpl<Message> } as const;
    case "bidi_streaming":
      return { kind: "input_streaming", handler: impl as StreamImpl<AsyncIterable<Message>> } as const;
    case "client_streaming": {
      const response = impl as (requests: AsyncIterable<Message>, context: HandlerContext) => Promise<object>;
      const handler: StreamImpl<AsyncIterable<Message>> = async function* (requests, context) {
        yield await response(requests, context);
      };
      return { kind: "input_streaming", handler } as const;
    }
  }
}

type StreamImpl<I> = (request: I, context: HandlerContext) => AsyncIterable<object>;

function createUnimplemented(method: DescMethod): Impl {
  return () => {
    throw new ConnectError(`${fullNameOf(method)} is not implemented`, Code.Unimplemented);
  };
}

function takesStream({ methodKind }: DescMethod): boolean {
  return methodKind === "client_streaming" || methodKind === "bidi_streaming";
}

function fullNameOf({ parent, name }: DescMethod): string {
  return `${parent.typeName}.${name}`;
}
