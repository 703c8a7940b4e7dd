// The attributes that a response has (RFC 7644, section 3.9).
import { isJsonObject } from "../../kernel/strict-json.js";
import type { Resource } from "./resource.js";
import { type Attribute, type ResourceType, resolveName } from "./schemas.js";

/** `attributes` and `excludedAttributes` of a request. */
export interface Projection {
  readonly attributes: readonly string[];
  readonly excludedAttributes: readonly string[];
}

// The attributes that names mean, each with its parts: undefined for the whole attribute.
type Selection = Map<Attribute, Selection | undefined>;

/**
 * Leaves of a resource what a request wants: the `attributes` that it names, otherwise those that are returned by default,
 * without its `excludedAttributes`. `schemas` and `id` stay, and what is never returned goes. Names that the schema does
 * not have are ignored.
 *
 * @param resource with `schemas`, `id` and `meta`
 */
export function projectResource(resource: Resource, type: ResourceType, projection: Projection): Resource {
  return createProjector(type, projection)(resource);
}

/** Prepares the projection of many resources; see `projectResource`. */
export function createProjector(type: ResourceType, projection: Projection): (resource: Resource) => Resource {
  const named = projection.attributes.length === 0 ? undefined : select(type, projection.attributes);
  const excluded = select(type, projection.excludedAttributes);
  return (resource) => projectAttributes(resource, type.attributes, named, excluded);
}

function select(type: ResourceType, names: readonly string[]): Selection {
  const selection: Selection = new Map();
  for (const name of names) {
    let level: Selection | undefined = selection;
    const chain = resolveName(type, name) ?? [];
    chain.forEach((attribute, index) => {
      if (level === undefined) return;
      const isWhole = index === chain.length - 1 || (level.has(attribute) && level.get(attribute) === undefined);
      const parts: Selection | undefined = isWhole ? undefined : (level.get(attribute) ?? new Map());
      level.set(attribute, parts);
      level = parts;
    });
  }
  return selection;
}

function projectAttributes(
  holder: Resource,
  attributes: readonly Attribute[],
  named: Selection | undefined,
  excluded: Selection | undefined,
): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const attribute of attributes) {
    const value = holder[attribute.name];
    if (value === undefined || !isReturned(attribute, named, excluded)) continue;
    const projected = projectValue(value, attribute, named?.get(attribute), excluded?.get(attribute));
    if (projected !== undefined) result[attribute.name] = projected;
  }
  return result;
}

function isReturned(attribute: Attribute, named: Selection | undefined, excluded: Selection | undefined): boolean {
  if (attribute.returned === "always") return true;
  if (attribute.returned === "never") return false;
  if (excluded?.has(attribute) && excluded.get(attribute) === undefined) return false;
  return named === undefined ? attribute.returned === "default" : named.has(attribute);
}

function projectValue(
  value: unknown,
  attribute: Attribute,
  named: Selection | undefined,
  excluded: Selection | undefined,
): unknown {
  if (Array.isArray(value)) {
    const values = value.map((one) => projectValue(one, attribute, named, excluded));
    const present = values.filter((one) => one !== undefined);
    return present.length === 0 && value.length > 0 ? undefined : present;
  }
  if (!isJsonObject(value)) return value;
  const projected = projectAttributes(value, attribute.subAttributes, named, excluded);
  return Object.keys(projected).length === 0 ? undefined : projected;
}
