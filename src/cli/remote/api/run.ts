// What the commands of `arbor api` do.
import type { DescMethod, DescMethodServerStreaming, DescMethodUnary } from "@bufbuild/protobuf";
import type { Command } from "commander";
import { findUnavailable } from "../../../kernel/unavailable-methods.js";
import { fillAll, pathOf } from "../../lazy-command.js";
import { createListFormatter, formatResponse, type ListColumn } from "../../output/format.js";
import { withStdout } from "../../output/terminal.js";
import { type CommonFlags, createOutputFilter, type Format } from "../flags.js";
import { createColumn } from "../iam/columns.js";
import { buildRequest } from "../iam/request.js";
import { formatMethod, getMethods } from "../methods.js";
import { withSession } from "../session.js";
import { findMethod, isBetaOf, readMethods } from "./catalogue.js";

interface ListFlags {
  readonly output: Format;
  readonly jq?: string;
}

/** The columns of the list. */
export const columns: readonly ListColumn[] = [
  createColumn("METHOD", "method", "path"),
  {
    title: "COMMAND",
    path: "command",
    cell: ({ command, notOffered }) =>
      String(command || (notOffered === undefined ? "" : `not offered: ${notOffered}`)),
  },
];

/**
 * `arbor api list`.
 *
 * @param api a command of the command line in which to look for the commands
 * @param text what the names of the methods contain
 */
export async function listMethods(api: Command, text = "", flags: ListFlags): Promise<void> {
  const wanted = text.toLowerCase();
  const all = readMethods();
  const arbor = api.parent ?? api;
  await fillAll(arbor);
  const commands = findCommands(arbor, all);
  const rows = all
    .filter((method) => formatMethod(method).toLowerCase().includes(wanted))
    .map((method) => {
      const name = formatMethod(method);
      const notOffered = findUnavailable(name);
      return { method: name, command: commands.get(name) ?? "", ...(notOffered !== undefined && { notOffered }) };
    });
  await withStdout(async ({ write, terminal }) => {
    const list = createListFormatter(flags.output, "methods", columns, terminal);
    await write(list.page(rows) + list.end({}));
  }, createOutputFilter(flags));
}

/**
 * Finds the commands of their own that methods have, such as `arbor iam groups list`, by the names of the methods. Of several
 * commands it is the one that calls the fewest methods. A method of version 2 has the command of its beta.
 */
export function findCommands(program: Command, methods: readonly DescMethod[]): ReadonlyMap<string, string> {
  const found = listCommands(program).sort((a, b) => getMethods(b).length - getMethods(a).length);
  const commands = new Map<string, string>();
  for (const command of found)
    for (const method of getMethods(command)) commands.set(method, `arbor ${pathOf(command)}`);
  for (const method of methods) {
    const beta = methods.find((one) => isBetaOf(one, method));
    const command = beta && commands.get(formatMethod(beta));
    if (command !== undefined) commands.set(formatMethod(method), command);
  }
  return commands;
}

function listCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(listCommands)];
}

/** `arbor api call`. */
export async function callMethod(name: string, given: CommonFlags & { readonly file?: string }): Promise<void> {
  const method = findMethod(readMethods(), name);
  const { request } = await buildRequest(method.input, [], { ...given }, undefined);
  // A stream has a line for each response.
  const flags: CommonFlags = isUnary(method) ? given : { ...given, output: "jsonl" };
  await withSession(flags, async ({ call, follow, output }) => {
    const print = (response: Parameters<typeof formatResponse>[1]) =>
      output.write(formatResponse(flags.output, response, () => [], output.terminal));
    if (isUnary(method)) return print(await call(method, request));
    if (!isStream(method)) throw new TypeError(`${method} reads a stream`);
    for await (const response of follow(method, request)) await print(response);
  });
}

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === "unary";
}

function isStream(method: DescMethod): method is DescMethodServerStreaming {
  return method.methodKind === "server_streaming";
}
