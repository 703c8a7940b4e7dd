// How questions name the resources that they are about.
import type { JsonObject } from "@bufbuild/protobuf";

/** Formats a resource for a question: what it is, its name where it has one, and its uid. */
export function formatNamed(what: string, name: string, uid: string): string {
  return name === "" ? `${what} ${uid}` : `${what} ${name} (${uid})`;
}

/** Describes a resource by its name, or by what it says who may do what. */
export function describeRow({ name, email, identity, role, group, externalGroupId, sink }: JsonObject): string {
  if (typeof name === "string" && name !== "") return name;
  const person = identity as JsonObject | undefined;
  const parts = [
    ["", person?.email ?? person?.name ?? email ?? externalGroupId ?? sink],
    ["as ", (role as JsonObject | undefined)?.name],
    ["in ", (group as JsonObject | undefined)?.name],
  ];
  const told = parts.filter(([, part]) => typeof part === "string" && part !== "");
  return told.map(([word, part]) => `${word}${part}`).join(" ");
}
