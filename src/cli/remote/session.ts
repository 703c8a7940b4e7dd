// Commands that call methods: the connection, responses as JSON, errors, and the confirmation of deletions. A token is
// never an argument, because other users of the machine can read arguments and the shell stores them in its history.
import { createInterface } from "node:readline/promises";
import {
  createRegistry,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type JsonObject,
  type Message,
} from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import {
  type Connection,
  connectTo,
  fieldViolations,
  preconditionViolations,
  quotaViolations,
  staticToken,
  type TokenSource,
  tokenFile,
} from "../../client/index.js";
import { assertMayCarryToken, serviceUrl } from "../../client/token-source.js";
import { toJsonMaskPath } from "../../codec/field-mask.js";
import { createJsonWriters } from "../../codec/json-writer.js";
import { Code, CommandError, invalidFlag } from "../errors.js";
import { escapeControls, type Output, withStdout } from "../output/terminal.js";
import type { CommonFlags } from "./flags.js";
import { asFlagError, findApiSetting } from "./service.js";

/** What a command works with: the calls that it may make, and where it prints their responses. */
export interface Session {
  readonly output: Output;
  /** Calls a method; the response is the JSON of REST. */
  call(method: DescMethodUnary, request: Message): Promise<JsonObject>;
  /** Calls a method that streams its responses; each is the JSON of REST. */
  follow(method: DescMethodServerStreaming, request: Message): AsyncIterable<JsonObject>;
}

const writers = createJsonWriters(createRegistry());

/**
 * Runs a command against the service.
 *
 * @throws CommandError INVALID_ARGUMENT for an address or a token that cannot be used; the error of the service
 */
export async function withSession(flags: CommonFlags, work: (session: Session) => Promise<void>): Promise<void> {
  let anonymous = false;
  let connection: Connection | undefined;
  try {
    const { name, value: api } = findApiSetting(flags);
    const token = await findToken(flags, api);
    anonymous = token === undefined;
    const opened = asFlagError(name, () => openConnection(api, name, token));
    connection = opened;
    await withStdout((output) =>
      work({
        output,
        call: async (method, request) => toJson(method.output, await callMethod(opened, method, request, output)),
        async *follow(method, request) {
          for await (const response of followMethod(opened, method, request, output))
            yield toJson(method.output, response);
        },
      }),
    );
  } catch (error) {
    throw toCommandError(error, anonymous);
  } finally {
    connection?.close();
  }
}

function openConnection(api: string, name: string, token: TokenSource | undefined): Connection {
  // Checked here as well, because the error of the client would name its own option.
  const url = serviceUrl(api, name);
  if (token !== undefined) assertMayCarryToken(url, name);
  return connectTo({ baseUrl: api, ...(token !== undefined && { token }) });
}

// In the order of docs/cli.md: the variable, the flag, the stored login. Without any, calls are anonymous.
async function findToken(flags: CommonFlags, api: string): Promise<TokenSource | undefined> {
  const given = process.env.ARBOR_TOKEN;
  if (given) return asFlagError("ARBOR_TOKEN", () => staticToken(given.trim()));
  if (flags.tokenFile !== undefined) return tokenFile(flags.tokenFile);
  const { findStoredToken } = await import("./auth/credentials.js");
  const stored = await findStoredToken(api);
  return stored && withConnectErrors(stored);
}

// The client repeats only the text of a ConnectError, because that of other errors may contain a token.
function withConnectErrors({ token, renew }: TokenSource): TokenSource {
  const convert = async (get: () => string | Promise<string>) => {
    try {
      return await get();
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      throw new ConnectError(error.message, error.code, undefined, undefined, error);
    }
  };
  return { token: () => convert(token), ...(renew && { renew: (rejected) => convert(() => renew(rejected)) }) };
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

/**
 * Converts an error of the service to one with a line for each detail; returns other errors unchanged.
 *
 * @param anonymous whether the command had no credentials
 */
function toCommandError(error: unknown, anonymous: boolean): unknown {
  if (!(error instanceof ConnectError)) return error;
  const lines = [
    error.rawMessage,
    ...fieldViolations(error).map(({ field, description }) => `  ${toJsonMaskPath(field)}: ${description}`),
    ...preconditionViolations(error).map(({ type, description }) => `  ${type}: ${description}`),
    ...quotaViolations(error).map(({ subject, description }) => `  ${subject}: ${description}`),
  ];
  if (error.code === Code.Unauthenticated && anonymous) {
    lines.push("  no credentials were given: run `arbor auth login`, or set ARBOR_TOKEN");
  }
  return new CommandError(error.code, lines.join("\n"));
}

/** The streams of a question. */
export interface Prompt {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream & { readonly isTTY?: boolean };
}

/**
 * Asks whether to delete something; only `y` or `yes` deletes it.
 *
 * @param what the resource in the question, such as `group 0123`
 * @throws CommandError INVALID_ARGUMENT when standard input is not a terminal
 * @throws Error for any other reply
 */
export async function confirmDelete(what: string, prompt?: Prompt): Promise<void> {
  await confirm(`Delete ${what}?`, prompt, "nothing was deleted");
}

/**
 * Asks a question; only `y` or `yes` goes on.
 *
 * @param declined the error after any other reply
 * @throws CommandError INVALID_ARGUMENT when standard input is not a terminal
 * @throws Error for any other reply
 */
export async function confirm(
  question: string,
  { input, output }: Prompt = { input: process.stdin, output: process.stderr },
  declined = "nothing was changed",
): Promise<void> {
  if (!input.isTTY || !output.isTTY) throw invalidFlag("--yes", "--yes is required without a terminal");
  const lines = createInterface({ input, output, terminal: false });
  // The end of input means no.
  const ended = new Promise<string>((resolve) => lines.once("close", () => resolve("")));
  const response = await Promise.race([lines.question(`${escapeControls(question)} [y/N] `), ended]);
  lines.close();
  if (!/^\s*y(es)?\s*$/i.test(response)) throw new Error(declined);
}
