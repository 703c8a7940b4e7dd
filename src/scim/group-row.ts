// A group of a directory, as it is stored and as a SCIM resource without its members, which are rows of their own.
import { buildDisplayNameKey, type ScimGroupRow } from "../store/iam/scim-groups.js";
import { MEMBERS } from "./member-changes.js";
import type { Resource } from "./protocol/resource.js";

/** What a directory says of a group besides its members, as columns. */
export type GroupValues = Pick<ScimGroupRow, "displayName" | "displayNameKey" | "externalId" | "attributes">;

/** Converts a resource, which has the types of its schema, to columns. */
export function toGroupValues(resource: Resource): GroupValues {
  const { displayName, externalId, [MEMBERS]: _, ...attributes } = resource;
  return {
    displayName: String(displayName),
    displayNameKey: buildDisplayNameKey(String(displayName)),
    externalId: typeof externalId === "string" ? externalId : "",
    attributes,
  };
}

/** The attributes that a directory may change, without the members. */
export function toGroupResource(row: Pick<ScimGroupRow, keyof GroupValues>): Resource {
  const { displayName, externalId, attributes } = row;
  return { ...(externalId !== "" && { externalId }), displayName, ...attributes };
}
