import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { commentOf, isOffered, isOutputOnly, isRequiredInput, isUid, isUidOrRoot } from "../../codec/field-behavior.js";
import { findWellKnownName } from "../../codec/fields.js";
import type { Comments } from "../../codec/proto-comments.js";
import { createTextReader } from "../../codec/query-value.js";
import type { HttpBinding } from "../http/http-binding.js";
import { buildTextExample } from "./example.js";
import type { DocumentPath } from "./paths.js";
import {
  buildDescription,
  buildMapSchema,
  buildScalarSchema,
  buildUidSchema,
  buildWellKnownSchema,
  describeEnum,
  type Json,
  type Schema,
} from "./value-schema.js";

// Deeper fields can be set by a query as well, but messages may be recursive.
const MAX_DEPTH = 3;

/** Builds the parameters of a route: those of its path, then those of its query. */
export function buildParameters(route: HttpBinding, path: DocumentPath, comments: Comments): Schema[] {
  return [...buildPathParameters(path, comments), ...buildQueryParameters(route, comments)];
}

function buildPathParameters({ parameters }: DocumentPath, comments: Comments): Schema[] {
  return parameters.map(({ name, field, isWhole, isDeep }) => {
    const notes = [
      field === undefined ? "" : descriptionOf(field, comments),
      isDeep ? "May hold slashes, as uids do; they may be sent as they are or as `%2F`." : "",
    ];
    const schema = buildPathSchema(field, isWhole, comments);
    return {
      name,
      in: "path",
      required: true,
      ...buildDescription(notes.filter((note) => note !== "").join(" ")),
      schema,
      ...(field !== undefined && isWhole && { example: buildTextExample(field, comments, isDeep) }),
    };
  });
}

function buildPathSchema(field: DescField | undefined, isWhole: boolean, comments: Comments): Schema {
  if (field !== undefined && isWhole && isUid(field, comments)) return buildUidSchema();
  const isText = field === undefined || !isWhole || field.scalar === ScalarType.STRING;
  return isText ? { type: "string", minLength: 1 } : buildTextSchema(field, comments);
}

// Every field that neither path nor body sets and that has a textual form; those of nested messages by their dotted
// path.
function buildQueryParameters({ body, variables, entry }: HttpBinding, comments: Comments): Schema[] {
  if (body === "all") return [];
  const bound = new Set(variables.map(({ path }) => path));
  const parameters: Schema[] = [];

  const visit = (desc: DescMessage, parents: readonly DescField[]): void => {
    for (const field of desc.fields) {
      const chain = [...parents, field];
      if (field === body || bound.has(chain.map(({ jsonName }) => jsonName).join(".")) || isOutputOnly(field)) continue;
      if (createTextReader(field) !== undefined) {
        parameters.push({
          name: queryName(chain),
          in: "query",
          // Only required parameters have examples: Swagger UI fills its forms with them.
          ...(parents.length === 0 &&
            isRequiredInput(field, comments) && { required: true, example: queryExample(field, comments) }),
          ...buildDescription(descriptionOf(field, comments)),
          ...(field.deprecated && { deprecated: true }),
          ...buildQuerySchema(field, comments),
        });
      } else if (field.fieldKind === "message" && chain.length <= MAX_DEPTH && !parents.includes(field)) {
        visit(field.message, chain);
      }
    }
  };
  visit(entry.desc.input, []);
  return parameters;
}

// Both spellings are accepted. The document spells parameters as the protos do, except for the mask of an update.
function queryName(chain: readonly DescField[]): string {
  const isMask = chain.some(({ message }) => message !== undefined && findWellKnownName(message) === "FieldMask");
  return chain.map(({ name, jsonName }) => (isMask ? jsonName : name)).join(".");
}

function buildQuerySchema(field: DescField, comments: Comments): Schema {
  if (field.fieldKind === "list") return { schema: { type: "array", items: buildTextSchema(field, comments) } };
  if (field.fieldKind !== "map") return { schema: buildTextSchema(field, comments) };
  return { style: "deepObject", explode: true, schema: buildMapSchema(field.mapKey, buildTextSchema(field, comments)) };
}

function buildTextSchema(field: DescField, comments: Comments): Schema {
  if (field.enum) {
    const offered = field.enum.values.filter((value) => isOffered(value, comments));
    return { type: "string", enum: offered.map(({ name }) => name) };
  }
  if (field.message) return buildWellKnownSchema(field.message, "in") ?? {};
  if (isUid(field, comments)) return buildUidParameterSchema(field, comments);
  return buildScalarSchema(field.scalar ?? ScalarType.STRING, "in");
}

function queryExample(field: DescField, comments: Comments): Json {
  const example = buildTextExample(field, comments, true);
  return field.fieldKind === "list" ? [example] : example;
}

// An empty parameter counts as unset.
function buildUidParameterSchema(field: DescField, comments: Comments): Schema {
  if (isRequiredInput(field, comments)) return buildUidSchema();
  return isUidOrRoot(field, comments) ? buildUidSchema("", "/") : buildUidSchema("");
}

function descriptionOf(field: DescField, comments: Comments): string {
  const own = commentOf(field, comments);
  const values = field.enum === undefined ? "" : describeEnum(field.enum, comments);
  return [own, values].filter((part) => part !== "").join("\n\n");
}
