// Commands that call methods: the connection, responses as JSON, and errors. A token is
// never an argument, because other users of the machine can read arguments and the shell stores them in its history.
import {
  createRegistry,
  type DescMessage,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type JsonObject,
  type Message,
} from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { iam } from "#gen/chainguard/annotations/annotations_pb.js";
import { CapabilitySchema } from "#gen/chainguard/capabilities/capabilities_pb.js";
import {
  type Connection,
  connectTo,
  errorInfo,
  fieldViolations,
  preconditionViolations,
  quotaViolations,
  type TokenSource,
} from "../../client/index.js";
import { assertMayCarryToken, serviceUrl } from "../../client/token-source.js";
import { toJsonMaskPath } from "../../codec/field-mask.js";
import { readOption } from "../../codec/fields.js";
import { createJsonWriters } from "../../codec/json-writer.js";
import { Code, CommandError } from "../errors.js";
import { type Output, withStdout } from "../output/terminal.js";
import {
  describeForeignResponse,
  describeLostConnection,
  describeTimeout,
  findConnectionFailure,
} from "./connection-failure.js";
import { type CommonFlags, createOutputFilter } from "./flags.js";
import { type Credential, explainRefusal, findToken, type GivenToken } from "./given-token.js";
import { formatEnumValue } from "./iam/field-flags.js";
import type { MethodCall } from "./method-call.js";
import { createNameResolver, type NameResolver } from "./names/resolve.js";
import { asFlagError, findApiSetting } from "./service.js";

/** What a command works with: the calls that it may make, and where it prints their responses. */
export interface Session {
  readonly output: Output;
  /** Calls a method, after replacing names in the request by uids; the response is the JSON of REST. */
  readonly call: MethodCall;
  /** Calls a method that streams its responses; each is the JSON of REST. */
  follow(method: DescMethodServerStreaming, request: Message): AsyncIterable<JsonObject>;
  /** Replaces names in requests by uids, for commands that need the uid before their call. */
  readonly names: NameResolver;
  /** What the calls are made with; undefined for nothing. */
  readonly credential: Credential | undefined;
}

const writers = createJsonWriters(createRegistry());

/**
 * Runs a command against the service.
 *
 * @throws CommandError INVALID_ARGUMENT for an address or a token that cannot be used; the error of the service
 */
export async function withSession(flags: CommonFlags, work: (session: Session) => Promise<void>): Promise<void> {
  const { name, value: api } = findApiSetting(flags);
  const given = await findToken(flags, api);
  const connection = asFlagError(name, () => openConnection(api, name, given.token));
  const convert = async (error: unknown, method: DescMethod) =>
    error instanceof ConnectError ? toCommandError(error, { method, api, given }) : error;
  try {
    await withStdout((output) => {
      const send: MethodCall = async (method, request) => {
        try {
          return toJson(method.output, await callMethod(connection, method, request, output));
        } catch (error) {
          throw await convert(error, method);
        }
      };
      const names = createNameResolver(send);
      return work({
        output,
        names,
        credential: given.credential,
        async call(method, request) {
          await names.resolve(method, request);
          return send(method, request);
        },
        async *follow(method, request) {
          await names.resolve(method, request);
          try {
            for await (const response of followMethod(connection, method, request, output))
              yield toJson(method.output, response);
          } catch (error) {
            throw await convert(error, method);
          }
        },
      });
    }, createOutputFilter(flags));
  } catch (error) {
    // Only of errors that end the command: others need no explanation, and it takes a call.
    throw isDenied(error) ? await explainDenial(error, connection) : error;
  } finally {
    connection.close();
  }
}

function isDenied(error: unknown): error is CommandError {
  return error instanceof CommandError && error.code === Code.PermissionDenied && error.cause instanceof ConnectError;
}

async function explainDenial(error: CommandError, connection: Connection): Promise<CommandError> {
  const { findGrantors } = await import("./access/grantors.js");
  const grantors = await findGrantors((error.cause as ConnectError).rawMessage, connection);
  return grantors === undefined ? error : new CommandError(error.code, `${error.message}\n  ${grantors}`, error);
}

function openConnection(api: string, name: string, token: TokenSource | undefined): Connection {
  // Checked here as well, because the error of the client would name its own option.
  const url = serviceUrl(api, name);
  if (token !== undefined) assertMayCarryToken(url, name);
  return connectTo({ baseUrl: api, ...(token !== undefined && { token }), ...(usesProxy() && PROXIED) });
}

/** Node's own requests go through the proxies of its variables, and those of HTTP/2 do not. */
const PROXIED = { protocol: "connect", httpVersion: "1.1" } as const;

function usesProxy(): boolean {
  const names = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"];
  return process.env.NODE_USE_ENV_PROXY === "1" && names.some((name) => process.env[name]);
}

function toJson(desc: DescMessage, message: Message): JsonObject {
  return JSON.parse(writers.answer(desc)(message)) as JsonObject;
}

type Call = (request: Message, options: { signal: AbortSignal }) => Promise<Message>;

function callMethod(connection: Connection, method: DescMethodUnary, request: Message, { closed }: Output) {
  const client = connection.client(method.parent) as unknown as Readonly<Record<string, Call>>;
  const call = client[method.localName];
  if (call === undefined) throw new TypeError(`the client has no ${method}`);
  return call(request, { signal: closed });
}

type Follow = (request: Message, options: { signal: AbortSignal }) => AsyncIterable<Message>;

function followMethod(connection: Connection, method: DescMethodServerStreaming, request: Message, { closed }: Output) {
  const client = connection.client(method.parent) as unknown as Readonly<Record<string, Follow>>;
  const call = client[method.localName];
  if (call === undefined) throw new TypeError(`the client has no ${method}`);
  return call(request, { signal: closed });
}

/** What the text of an error needs beside the error. */
interface ErrorContext {
  readonly method: DescMethod;
  /** The address of the service, as given. */
  readonly api: string;
  readonly given: GivenToken;
}

/** Converts the error of a call to one with the details that its text lacks, and with a remedy where there is one. */
async function toCommandError(error: ConnectError, { method, api, given }: ErrorContext): Promise<CommandError> {
  // A login that could not be renewed, which says what to do.
  if (error.cause instanceof CommandError) return error.cause;
  const failure = findCallFailure(error, api);
  if (failure !== undefined) return failure;
  const lines = [...listLines(error), ...(await listBlocking(error, method))];
  if (error.code === Code.Unauthenticated) {
    // The text of the service would be about a token, as if there was one.
    if (given.token === undefined) lines.splice(0, lines.length, `not logged in to ${api}`);
    for (const line of await explainRefusal(given, api, error.rawMessage)) lines.push(`  ${line}`);
  }
  if (error.code === Code.PermissionDenied) {
    const needed = listNeeded(method);
    if (needed !== "") lines.push(`  ${method.name} needs ${needed}; arbor whoami prints what you may do`);
  }
  return new CommandError(error.code, lines.join("\n"), error);
}

// An error that did not come from the service, such as that of a connection.
function findCallFailure(error: ConnectError, api: string): CommandError | undefined {
  const failure = findConnectionFailure(error, api);
  if (failure !== undefined) return failure;
  if (error.code === Code.Unavailable && error.cause instanceof ConnectError) return describeLostConnection(api, error);
  if (error.code === Code.DeadlineExceeded && error.rawMessage === "the operation timed out")
    return describeTimeout(api, error);
  // The text of connect for a response without the status of gRPC.
  if (/^HTTP \d{3}$/.test(error.rawMessage)) return describeForeignResponse(api, error.rawMessage, error);
  return undefined;
}

/** The lines of an error: its text, in which several broken rules get a line each, and the details that it lacks. */
function listLines(error: ConnectError): string[] {
  const { rawMessage } = error;
  const violations = fieldViolations(error);
  const joined = violations.map(({ field, description }) => `${field}: ${description}`).join("; ");
  const details = [
    ...violations.map(({ field, description }) => ({ label: toJsonMaskPath(field), description })),
    // Of what keeps a resource from being deleted there are numbers, which say more.
    ...(Object.keys(errorInfo(error)?.metadata ?? {}).length > 0 ? [] : preconditionViolations(error)).map(
      ({ type, description }) => ({ label: type, description }),
    ),
    ...quotaViolations(error).map(({ subject, description }) => ({ label: subject, description })),
  ];
  const isSplit = violations.length > 1 && rawMessage.endsWith(joined);
  const text = isSplit ? rawMessage.slice(0, -joined.length).trimEnd() : rawMessage;
  const missing = details.filter(({ description }) => !text.includes(description));
  return [text, ...missing.map(({ label, description }) => `  ${label}: ${description}`)];
}

/** Says how many resources of which kinds keep another one from being deleted; nothing for other errors. */
async function listBlocking(error: ConnectError, { name }: DescMethod): Promise<string[]> {
  const entries = Object.entries(errorInfo(error)?.metadata ?? {});
  if (error.code !== Code.FailedPrecondition || entries.length === 0) return [];
  const { findKindOfKey, formatCount } = await import("./kinds.js");
  const counts = entries.map(([key, count]) => {
    const kind = findKindOfKey(key);
    return kind === undefined ? `${key}: ${count}` : formatCount(kind, count);
  });
  const remedy = name === "DeleteGroup" ? "; arbor iam groups delete --recursive deletes them as well" : "";
  return [`  in the way: ${counts.join(", ")}${remedy}`];
}

/** The capabilities that a method declares, for a sentence; empty without any. */
function listNeeded(method: DescMethod): string {
  const { mode } = readOption(method, iam) ?? {};
  const capabilities = mode?.case === "enabled" ? mode.value.capabilities : [];
  if (capabilities.length === 0) return "";
  const names = capabilities.map((number) => {
    const value = CapabilitySchema.value[number];
    return value === undefined ? String(number) : formatEnumValue(value);
  });
  return `the ${names.length > 1 ? "capabilities" : "capability"} ${names.join(" and ")}`;
}
