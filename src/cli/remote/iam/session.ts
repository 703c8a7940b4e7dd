// What every command of `arbor iam` does around its calls: the connection, the
// answers as JSON, and failures as people read them.
import {
  createRegistry,
  type DescMessage,
  type DescMethodUnary,
  type JsonObject,
  type Message,
} from "@bufbuild/protobuf";
import { createJsonWriters } from "../../../codec/json-writer.js";
import { failureOf } from "../../output/failure.js";
import type { Format } from "../../output/formats.js";
import { type Output, withStdout } from "../../output/stdout.js";
import { type CommandConnection, type ConnectionFlags, connectionOf } from "../connection.js";

/** The flags that all commands have. */
export interface CommonFlags extends ConnectionFlags {
  readonly output: Format;
}

/** A command at work. */
export interface Session {
  readonly output: Output;
  /** Calls a method; the answer is the JSON that REST gives. */
  call(method: DescMethodUnary, request: Message): Promise<JsonObject>;
}

const writers = createJsonWriters(createRegistry());

/**
 * Runs a command against the service.
 *
 * @throws CommandFailure when the service refuses.
 */
export async function withSession(flags: CommonFlags, work: (session: Session) => Promise<void>): Promise<void> {
  let connection: CommandConnection | undefined;
  try {
    const made = await connectionOf(flags);
    connection = made;
    await withStdout((output) =>
      work({
        output,
        call: async (method, request) => jsonOf(method.output, await answer(made, method, request, output)),
      }),
    );
  } catch (error) {
    throw failureOf(error, connection?.anonymous === true);
  } finally {
    connection?.close();
  }
}

function jsonOf(desc: DescMessage, message: Message): JsonObject {
  return JSON.parse(writers.answer(desc)(message)) as JsonObject;
}

type Call = (request: Message, options: { signal: AbortSignal }) => Promise<Message>;

function answer(connection: CommandConnection, method: DescMethodUnary, request: Message, { closed }: Output) {
  const client = connection.client(method.parent) as unknown as Readonly<Record<string, Call>>;
  const call = client[method.localName];
  if (call === undefined) throw new TypeError(`the client has no ${method}`);
  return call(request, { signal: closed });
}
