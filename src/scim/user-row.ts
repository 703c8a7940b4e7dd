// A person of a directory, as it is stored and as a SCIM resource.
import { buildUserNameKey, type ScimUserRow } from "../store/iam/scim-users.js";
import type { Resource } from "./protocol/resource.js";

/** What a directory says of a person, as columns. */
export type UserValues = Pick<
  ScimUserRow,
  "userName" | "userNameKey" | "externalId" | "displayName" | "active" | "attributes"
>;

/**
 * Converts a resource, which has the types of its schema, to columns.
 *
 * @param active whether the person is active where the resource does not say so. Then `active` is stored among the attributes as
 * null, so that the service does not say so either (RFC 7643, section 2.5)
 */
export function toValues(resource: Resource, active: boolean): UserValues {
  const { userName, externalId, displayName, active: stated, ...attributes } = resource;
  return {
    userName: String(userName),
    userNameKey: buildUserNameKey(String(userName)),
    externalId: textOf(externalId),
    displayName: textOf(displayName),
    active: stated === undefined ? active : stated === true,
    attributes: stated === undefined ? { ...attributes, active: null } : attributes,
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The attributes that a directory may change. */
export function toResource(row: Pick<ScimUserRow, keyof UserValues>): Resource {
  const { userName, externalId, displayName, active } = row;
  const { active: unstated, ...attributes } = row.attributes;
  return {
    ...(externalId !== "" && { externalId }),
    userName,
    ...(displayName !== "" && { displayName }),
    ...(unstated !== null && { active }),
    ...attributes,
  };
}
