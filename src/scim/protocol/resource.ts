// A resource as its schema sees it.
import type { Attribute, ResourceType } from "./schemas.js";

/**
 * The attributes of a person or a group by their names in the spelling of the schema, and those of an extension in an object
 * under its URN. It has no `schemas`, `id` and `meta`: the service adds these. What is not assigned has no property.
 * `readResource` and `applyPatch` write the properties in the order of the schema, so that resources with the same
 * values are the same JSON.
 */
export type Resource = Readonly<Record<string, unknown>>;

/** The URNs of the schemas that a resource has. */
export function buildSchemasList(resource: Resource, type: ResourceType): string[] {
  const extensions = type.extensions.filter(({ id }) => resource[id] !== undefined);
  return [type.schema, ...extensions].map(({ id }) => id);
}

/** A text for comparisons that do not distinguish small and capital letters. */
export function foldCase(value: string): string {
  return value.toLowerCase();
}

const DATE_TIME = /^(\d{4}-\d{2}-(\d{2}))T(\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?)(Z|[+-]\d{2}:\d{2})?$/;

/** Reads a dateTime as epoch milliseconds; one without a zone is in UTC. NaN for other texts. */
export function parseDateTime(value: string): number {
  const [, date, day, time, zone = "Z"] = DATE_TIME.exec(value) ?? [];
  // Date.parse accepts February 30th as March 1st or 2nd.
  if (date === undefined || new Date(`${date}T00:00:00Z`).getUTCDate() !== Number(day)) return Number.NaN;
  return Date.parse(`${date}T${time}${zone}`);
}

/** A value in the form in which values of its attribute are compared: times as numbers, and texts in one case. */
export function toComparable({ type, caseExact }: Attribute, value: unknown): unknown {
  if (typeof value !== "string") return value;
  if (type === "dateTime") return parseDateTime(value);
  return caseExact ? value : foldCase(value);
}
