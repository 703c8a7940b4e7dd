// `arbor events listen`: events for a machine without an address.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { create, type JsonObject } from "@bufbuild/protobuf";
import { EventsService, TailRequestSchema } from "#gen/arbor/events/v1/events_pb.js";
import { createListFormatter, type ListColumn } from "../../output/format.js";
import { escapeControls } from "../../output/terminal.js";
import type { CommonFlags } from "../flags.js";
import { createColumn } from "../iam/columns.js";
import { withSession } from "../session.js";

/** The flags of `arbor events listen`. */
export interface ListenFlags extends CommonFlags {
  readonly scope: string;
  readonly type?: string;
  readonly subject?: string;
  /** The command to run for each event. */
  readonly exec?: string;
}

const text = (value: unknown) => (typeof value === "string" ? value : "");
/** The columns of the table. */
export const columns: readonly ListColumn[] = [
  createColumn("TIME", "time"),
  createColumn("TYPE", "type", "path"),
  createColumn("SUBJECT", "subject", "uid"),
  createColumn("ID", "id", "uid"),
];

/**
 * Prints events, or runs a command for each, until the stream ends or the command is interrupted.
 *
 * @throws CommandError with the error that has ended the stream
 */
export async function listen({ scope, type = "", subject = "", exec, ...given }: ListenFlags): Promise<void> {
  // An expression gets each event as it arrives.
  const flags: CommonFlags = given.jq === undefined ? given : { ...given, output: "jsonl" };
  await withSession(flags, async ({ follow, output }) => {
    const list = createListFormatter(flags.output, "events", columns, output.terminal);
    const request = create(TailRequestSchema, { scope, type, subject });
    let hasBegun = false;
    for await (const { event } of follow(EventsService.method.tail, request)) {
      // The first message says that no event is missed from now on.
      if (!hasBegun) process.stderr.write(`arbor: listening to the events of ${escapeControls(scope)}\n`);
      hasBegun = true;
      if (event === undefined) continue;
      if (exec === undefined) await output.write(list.page([event as JsonObject]));
      else await run(exec, event as JsonObject, output.closed);
    }
    await output.write(list.end({}));
  });
}

/**
 * Runs a command of the shell with the data of an event on its standard input, as a receiver gets it, and the attributes
 * in its environment. They are never a part of the command: they have what callers of the service write. A command that
 * fails does not stop the next.
 */
async function run(command: string, event: JsonObject, signal: AbortSignal): Promise<void> {
  const env = { ...process.env, ...toVariables(event) };
  const child = spawn(command, { shell: true, env, signal, stdio: ["pipe", "inherit", "inherit"] });
  // A command need not read its input.
  child.stdin.on("error", () => {});
  child.stdin.end(text(event.data));
  const [code, killedBy] = await once(child, "close");
  if (code === 0) return;
  const how = code === null ? `was ended by ${killedBy}` : `ended with ${code}`;
  process.stderr.write(`arbor: the command ${how} for the event ${escapeControls(text(event.id))}\n`);
}

/** The attributes of an event as variables: CE_ID, CE_SOURCE, CE_TYPE, CE_SUBJECT, CE_TIME, and those of extensions. */
function toVariables({ id, source, type, subject, time, extensions }: JsonObject): Record<string, string> {
  const attributes = { ...(extensions as JsonObject | undefined), id, source, type, subject, time, specversion: "1.0" };
  const variables: Record<string, string> = {};
  for (const [name, value] of Object.entries(attributes)) {
    // Names of CloudEvents have only these characters.
    if (typeof value === "string" && /^[a-z0-9]+$/.test(name)) variables[`CE_${name.toUpperCase()}`] = value;
  }
  return variables;
}
