// Which methods of the API a command calls, for the list of methods and for the tests that find one without a command.
import type { DescMethod } from "@bufbuild/protobuf";
import type { Command } from "commander";

const methods = new WeakMap<Command, readonly string[]>();

/**
 * Notes the methods that a command calls.
 *
 * @param called descriptors, or full names such as `arbor.bindings.v1.BindingsService/ListBindings`, for commands that load
 * no descriptors before they run
 */
export function setMethods(command: Command, ...called: readonly (DescMethod | string)[]): Command {
  methods.set(
    command,
    called.map((method) => (typeof method === "string" ? method : formatMethod(method))),
  );
  return command;
}

/** The full names of the methods that a command calls. */
export function getMethods(command: Command): readonly string[] {
  return methods.get(command) ?? [];
}

/** Formats the full name of a method, such as `chainguard.platform.iam.v2.GroupsService/ListGroups`. */
export function formatMethod({ parent, name }: DescMethod): string {
  return `${parent.typeName}/${name}`;
}
