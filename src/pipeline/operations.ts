// Version 1 of the API is a view of version 2: its handlers convert a request to one of version 2, run the handler of
// that version in the same unit of work, and convert the response. So no rule is written twice.
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type DescService,
  type Message,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { ApiError, type FieldViolation, replaceViolations } from "../kernel/errors.js";
import type { UnaryCall } from "./call.js";
import { type Handler, Outcome } from "./handlers.js";
import type { ServedService } from "./method-table.js";
import { assertRequiredFields } from "./validate-request.js";

/** The unary methods of a service, as functions to be called within handlers. */
export type Operations<S extends DescService> = {
  readonly [K in keyof S["method"]]: S["method"][K] extends DescMethodUnary<infer I, infer O>
    ? (request: MessageInitShape<I>, call: UnaryCall) => Promise<MessageShape<O>>
    : never;
};

/**
 * The names that the caller of a view has for fields, by single names of a path. An empty name removes the field from
 * the path.
 */
export type FieldNames = Readonly<Record<string, string>>;

/**
 * Creates the operations of a served service, for handlers that are views of it. They run in the transaction of the
 * call, which is authorized already.
 *
 * A method that prepares something outside the transaction gets what the view itself has prepared. An operation
 * returns the response alone: a view whose audit row needs a subject returns it in its own outcome.
 *
 * @param names the names of fields in errors
 * @throws TypeError when called for a list that has no pages, or by a view that has prepared nothing for a
 * method that needs it.
 */
export function createOperations<S extends DescService>(
  { desc, handlers }: ServedService<S>,
  names: FieldNames = {},
): Operations<S> {
  const operations = desc.methods.map((method) => {
    const handler = handlers[method.localName];
    const maps = findMaps(method.input);
    const run = async (init: object, call: UnaryCall): Promise<Message> => {
      const handle = findHandle(handler);
      if (handle === undefined) throw new TypeError(`${method} takes more than its transaction`);
      const request = create<DescMessage>(method.input, init as MessageInitShape<DescMessage>);
      try {
        assertRequiredFields(method.input, request);
        const result = await handle(request as never, call);
        const response = result instanceof Outcome ? result.response : result;
        if (typeof response === "function") throw new TypeError(`${method} has a response only after its commit`);
        return create<DescMessage>(method.output, response as MessageInitShape<DescMessage>);
      } catch (error) {
        throw renameErrorFields(error, names, maps);
      }
    };
    return [method.localName, run];
  });
  return Object.fromEntries(operations) as Operations<S>;
}

type Handle = (request: never, call: UnaryCall) => Promise<object> | object;

function findHandle(handler: Handler | undefined): Handle | undefined {
  // The types of Operations allow unary methods alone.
  if (typeof handler === "function") return handler as Handle;
  if (handler === undefined || !("handle" in handler)) return undefined;
  return (request, call) => {
    if (call.prepared === undefined) throw new TypeError(`${call.method} prepared nothing`);
    return handler.handle(request, call, call.prepared);
  };
}

/**
 * Renames the fields in an error to the names of the caller of a view.
 *
 * @param maps the fields that are maps; the keys below them stay as they are
 */
export function renameErrorFields(error: unknown, names: FieldNames, maps: ReadonlySet<string> = new Set()): unknown {
  if (!(error instanceof ApiError) || error.violations.length === 0) return error;
  return replaceViolations(
    error,
    error.violations.map((violation) => renameViolation(violation, names, maps)),
  );
}

// The names of all maps in a message and the messages in it.
function findMaps(message: DescMessage, maps = new Set<string>(), seen = new Set<DescMessage>()): ReadonlySet<string> {
  seen.add(message);
  for (const { fieldKind, jsonName, message: inner } of message.fields) {
    if (fieldKind === "map") maps.add(jsonName);
    if (inner && !seen.has(inner)) findMaps(inner, maps, seen);
  }
  return maps;
}

function renameViolation(violation: FieldViolation, names: FieldNames, maps: ReadonlySet<string>): FieldViolation {
  const rename = (path: string) => joinParts(renameParts(path, names, maps));
  const { field, subject, args } = violation;
  return {
    ...violation,
    field: rename(field),
    ...(subject !== undefined && { subject: renameSubject(subject, field, names, maps) }),
    ...(args !== undefined && { args: args.map(rename) }),
  };
}

// The subject is the field or within it, or the last parts of its path, some of which may be keys of a map. Anything else
// is no name of a field.
function renameSubject(subject: string, field: string, names: FieldNames, maps: ReadonlySet<string>): string {
  const own = field.replace(/\[\d+\]$/, "");
  if (subject === own || subject.startsWith(`${own}.`)) return joinParts(renameParts(subject, names, maps));
  if (!own.endsWith(`.${subject}`)) return subject;
  return joinParts(renameParts(own, names, maps).slice(-subject.split(".").length));
}

// Renames each part of a path up to a map, and keeps what follows a name, such as an index. Undefined for a part that the
// view does not have.
function renameParts(path: string, names: FieldNames, maps: ReadonlySet<string>): readonly (string | undefined)[] {
  const parts = path.split(".");
  const end = parts.findIndex((part) => maps.has(part)) + 1 || parts.length;
  return parts.map((part, i) => {
    const [name = ""] = /^[A-Za-z_]*/.exec(part) ?? [];
    const renamed = i < end && Object.hasOwn(names, name) ? names[name] : name;
    return renamed === "" && name !== "" ? undefined : `${renamed}${part.slice(name.length)}`;
  });
}

function joinParts(parts: readonly (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined).join(".");
}
