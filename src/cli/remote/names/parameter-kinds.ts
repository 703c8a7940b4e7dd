// The kinds of resources whose names a flag or an argument takes, for completion.
import type { Argument, Command, Option } from "commander";
import { pathOf } from "../../lazy-command.js";
import { FieldArgument, FieldFlag } from "../iam/field-flags.js";
import { kinds } from "../kinds.js";
import { getMethods } from "../methods.js";
import { type CompletedKind, completedKinds } from "./complete.js";
import { findServiceKinds } from "./fields.js";

/** Those of flags and arguments that are no fields of a request. */
const byName: Readonly<Record<string, CompletedKind>> = {
  ...{ group: "group", scope: "group", resource: "group", org: "group", parent: "group" },
  ...{ identity: "identity", actor: "identity", role: "role", repo: "repo" },
  ...{ provider: "identity provider", "identity-provider": "identity provider" },
};

/** Finds the kind of the names that a flag or an argument takes; undefined for other values, and for kinds without names. */
export function findNamedKind(command: Command, parameter: Option | Argument): CompletedKind | undefined {
  // On the host there is no service to ask.
  const isOnHost = command.options.some(({ long }) => long === "--data") && pathOf(command).split(" ")[0] !== "audit";
  return isOnHost ? undefined : completedKinds.find((kind) => kind === findKind(command, parameter));
}

function findKind(command: Command, parameter: Option | Argument): string | undefined {
  if (parameter instanceof FieldFlag || parameter instanceof FieldArgument) {
    const [service] = getMethods(command)[0]?.split("/") ?? [];
    return findServiceKinds(service?.split(".").at(-1) ?? "", parameter.field)?.[0];
  }
  if ("flags" in parameter)
    return /<(?:uid|uid-or-name|group)>/.test(parameter.flags) ? byName[parameter.name()] : undefined;
  if (parameter.name() !== "uid") return byName[parameter.name()];
  const path = pathOf(command);
  return kinds.find((row) => path.startsWith(`${row.command} `))?.kind;
}
