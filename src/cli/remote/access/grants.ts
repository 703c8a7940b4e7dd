// The columns of grants, which say who has which role where, and why.
import type { DescEnum, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { EffectSchema, OriginSchema } from "#gen/arbor/access/v1/access_pb.js";
import type { ListColumn } from "../../output/format.js";
import { countOf, createColumn } from "../iam/columns.js";
import { findEnumValue, formatEnumValue } from "../iam/field-flags.js";

/** The columns of grants. Those of a list count capabilities, because it has all of the role. */
export function createGrantColumns(capabilities: "named" | "counted"): readonly ListColumn[] {
  return [
    { ...createColumn("GROUP", "group.name"), cell: ({ group }) => nameOf(group) },
    { ...createColumn("ROLE", "role.name"), cell: ({ role }) => nameOf(role) },
    // A count is no field, so `--columns capabilities` has the names.
    capabilities === "counted"
      ? { title: "CAPABILITIES", cell: countOf("capabilities") }
      : createColumn("CAPABILITIES", "capabilities", "prose"),
    { ...createColumn("EFFECT", "effect"), cell: formatEffect },
    { ...createColumn("ORIGIN", "origin"), cell: ({ origin }) => formatWords(OriginSchema, origin) },
    { title: "DIRECTORY", kind: "prose", cell: formatDirectory },
    { title: "BINDING", kind: "uid", cell: ({ roleBinding, mapping }) => text(roleBinding) || text(mapping) },
  ];
}

/** Formats a grant in a few words: the role and the group. */
export function formatGrant({ role, group }: JsonObject): string {
  return `${nameOf(role)} in ${nameOf(group)}`;
}

/** The groups of a directory that grant a role, and the mappings by which they do, where the directory says it. */
function formatDirectory({ mapping, externalGroupId, managedBy, sources }: JsonObject): string {
  if (text(mapping) !== "") return `group ${text(externalGroupId)}`;
  if (text(managedBy) === "") return "";
  const causes = (Array.isArray(sources) ? (sources as readonly JsonObject[]) : []).map(
    ({ directoryGroupName, externalGroupId: id, mapping: uid }) =>
      `${text(directoryGroupName) || text(id)} by mapping ${text(uid)}`,
  );
  return causes.length === 0 ? `that of ${text(managedBy)}` : `group ${causes.join(", ")}`;
}

function formatEffect({ effect, pending }: JsonObject): string {
  const words = formatWords(EffectSchema, effect);
  return pending === true ? `${words}, pending` : words;
}

/** Formats the value of an enum in words; empty for the unspecified one. */
export function formatWords(desc: DescEnum, value: JsonValue | undefined): string {
  const found = typeof value === "string" ? findEnumValue(desc, value) : undefined;
  return found === undefined || found.number === 0 ? "" : formatEnumValue(found).replaceAll("-", " ");
}

function nameOf(value: JsonValue | undefined): string {
  const { name, uid } = (value ?? {}) as JsonObject;
  return text(name) || text(uid);
}

function text(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}
