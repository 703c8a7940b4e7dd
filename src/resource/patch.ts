// Turns what a caller sent into what changes (spec section 4, partial update
// rules; AIP-134, AIP-161, AIP-203).
import { create, type DescField, type DescMessage, isFieldSet, type MessageShape } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { type FieldViolation, invalidArgument } from "../kernel/errors.js";
import type { FieldName, Resource } from "./define.js";

/**
 * The values of a new resource: every mutable field, checked.
 *
 * @throws ApiError INVALID_ARGUMENT naming each field that breaks its rule.
 */
export function valuesOf<D extends DescMessage, M extends FieldName<D>>(
  resource: Resource<D, M>,
  body: MessageShape<D> | undefined,
): Pick<MessageShape<D>, M> {
  return checked(resource, body, mutableFields(resource)) as Pick<MessageShape<D>, M>;
}

/**
 * The values to change. Without a mask (absent or empty) these are the fields populated in `body`;
 * over REST the gateway has made a mask of the keys present. With a mask its fields alone count:
 * one absent from the body is cleared. Fields callers cannot change are ignored wherever named.
 *
 * @throws ApiError INVALID_ARGUMENT for a path that names no field, or a value that breaks its rule.
 */
export function patchOf<D extends DescMessage, M extends FieldName<D>>(
  resource: Resource<D, M>,
  body: MessageShape<D> | undefined,
  mask: FieldMask | undefined,
): Partial<Pick<MessageShape<D>, M>> {
  return checked(resource, body, selectedFields(resource, body, mask?.paths ?? [])) as Partial<
    Pick<MessageShape<D>, M>
  >;
}

function selectedFields<D extends DescMessage, M extends FieldName<D>>(
  resource: Resource<D, M>,
  body: MessageShape<D> | undefined,
  paths: readonly string[],
): readonly DescField[] {
  const mutable = mutableFields(resource);
  if (paths.length === 0) return body ? mutable.filter((field) => isFieldSet(body, field)) : [];
  if (paths.includes("*")) {
    if (paths.length > 1) throw invalidMask("* must stand alone");
    return mutable;
  }
  const named = paths.map((path) => fieldAt(resource, path));
  return mutable.filter((field) => named.includes(field));
}

function fieldAt<D extends DescMessage, M extends FieldName<D>>(resource: Resource<D, M>, path: string): DescField {
  const [head, ...rest] = path.split(".");
  const field = resource.message.fields.find(({ name, jsonName }) => name === head || jsonName === head);
  // A path into a field that cannot be changed is ignored with the field; one into a scalar names nothing.
  const leadsNowhere = rest.length > 0 && field?.fieldKind !== "message" && field?.fieldKind !== "map";
  if (field === undefined || leadsNowhere)
    throw invalidMask(`${path.slice(0, 100)} is not a field of a ${resource.noun}`);
  return field;
}

function checked<D extends DescMessage, M extends FieldName<D>>(
  resource: Resource<D, M>,
  body: MessageShape<D> | undefined,
  fields: readonly DescField[],
): Record<string, unknown> {
  const source = (body ?? create(resource.message)) as unknown as Record<string, unknown>;
  const values: Record<string, unknown> = {};
  const violations: FieldViolation[] = [];
  for (const field of fields) {
    const value = source[field.localName];
    const broken = resource.mutable[field.localName as M](value, field.jsonName);
    if (broken === undefined) values[field.localName] = value;
    else violations.push({ field: field.jsonName, description: broken });
  }
  if (violations.length > 0) throw invalidArgument(...violations);
  return values;
}

function mutableFields<D extends DescMessage, M extends FieldName<D>>(resource: Resource<D, M>): readonly DescField[] {
  return resource.message.fields.filter(({ localName }) => Object.hasOwn(resource.mutable, localName));
}

function invalidMask(rule: string) {
  return invalidArgument({ field: "updateMask", description: `updateMask: ${rule}` });
}
