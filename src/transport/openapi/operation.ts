import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { isRequiredInput } from "../../codec/field-behavior.js";
import type { Comments } from "../../codec/proto-comments.js";
import type { MethodEntry } from "../../pipeline/method-table.js";
import type { HttpBinding } from "../http/http-binding.js";
import type { Template } from "../http/http-rule.js";
import { ERROR_RESPONSE, STATUS } from "./error-schema.js";
import { buildExample, buildFieldExample } from "./example.js";
import { buildParameters } from "./parameters.js";
import type { DocumentPath } from "./paths.js";
import { findOpenOneofs, type Schemas } from "./schema.js";
import { buildSecurity } from "./security.js";
import { buildDescription, type Json, type Schema } from "./value-schema.js";

/** The schemas and comments that describe operations. */
export interface OperationContext {
  readonly schemas: Schemas;
  readonly comments: Comments;
}

/** Builds the description of a route (OpenAPI 3.1, "Operation Object"). */
export function buildOperation(
  route: HttpBinding,
  operationId: string,
  path: DocumentPath,
  { schemas, comments }: OperationContext,
): Schema {
  const { entry, name, current } = route;
  const { desc } = entry;
  const comment = comments(name);
  const [first = "", ...rest] = comment.split(/\.(?:\s|$)/).filter((sentence) => sentence !== "");
  const summary = summarizeWithoutVariable(route, comments) ?? first;
  const more = rest.length === 0 ? "" : comment;
  const parameters = buildParameters(route, path, comments);
  const requestBody = requestBodyOf(route, { schemas, comments }, parameters);
  return {
    operationId,
    tags: [desc.parent.typeName],
    summary: summary || desc.name,
    ...buildDescription([more, rightsOf(entry), replacementOf(current)].filter((part) => part !== "").join("\n\n")),
    ...((desc.deprecated || current !== undefined) && { deprecated: true }),
    parameters,
    ...(requestBody && { requestBody }),
    responses: { "200": responseOf(route, { schemas, comments }), "4XX": ERROR_RESPONSE, "5XX": ERROR_RESPONSE },
    ...buildSecurity(entry),
  };
}

// A path that ends before a variable does what the comment of the field says of an empty one.
function summarizeWithoutVariable({ template, variables }: HttpBinding, comments: Comments): string | undefined {
  const omitted = template.variables.length < variables.length ? variables.at(-1)?.field : undefined;
  if (omitted === undefined) return undefined;
  const [, text = ""] = /\bEmpty: ([^.]*)\./.exec(comments(`${omitted.parent.typeName}.${omitted.name}`)) ?? [];
  return text === "" ? undefined : `${text[0]?.toUpperCase()}${text.slice(1)}`;
}

function replacementOf(current: Template | undefined): string {
  return current === undefined ? "" : `A former spelling of \`${current.text.replace(/=[^}]*/g, "")}\`.`;
}

function rightsOf({ auth }: MethodEntry): string {
  if (auth.mode !== "guarded" || auth.capabilities.length === 0) return "";
  const names = auth.capabilities.map(({ name }) => `\`${name}\``).join(" and ");
  return auth.scope === undefined
    ? `Works where the caller holds ${names}.`
    : `Needs ${names} there or in a group above.`;
}

// Without another body, query parameters may be fields of a form instead. Required parameters are not in the form,
// because they are documented as part of the query and may be given only once.
function formOf({ method }: HttpBinding, parameters: readonly Schema[]): Schema | undefined {
  const fields = parameters.filter((one) => one.in === "query" && one.required !== true);
  if (method !== "POST" || fields.length === 0) return undefined;
  const mapByName = (of: (field: Schema) => Schema) =>
    Object.fromEntries(fields.map((one) => [String(one.name), of(one)]));
  const properties = mapByName(({ schema, description, deprecated }) => ({
    ...(schema as Schema),
    ...(description !== undefined && { description }),
    ...(deprecated !== undefined && { deprecated }),
  }));
  const encoding = mapByName(({ style = "form", explode = true }) => ({ style, explode }));
  return {
    description: "What is not in the query, which may be a required parameter as well.",
    content: { "application/x-www-form-urlencoded": { schema: { type: "object", properties }, encoding } },
  };
}

function requestBodyOf(
  route: HttpBinding,
  { schemas, comments }: OperationContext,
  parameters: readonly Schema[],
): Schema | undefined {
  const { body, method, variables, entry } = route;
  if (body === "none") return formOf(route, parameters);
  const target = body === "all" ? entry.desc.input : body.fieldKind === "message" ? body.message : undefined;
  if (isHttpBody(target)) return { content: ANY_BYTES };
  const form = method === "PATCH" ? "patch" : "body";
  const inPath = variables
    .filter(({ parents, field }) => body === "all" || (parents[0] ?? field) === body)
    .map(({ parents, field }) =>
      [...(body === "all" ? parents : parents.slice(1)), field].map((f) => f.name).join("."),
    );
  const schema = target === undefined ? schemas.ofField(body as DescField, form) : schemas.ofBody(target, form, inPath);
  const side = { side: "body", comments } as const;
  const example =
    target === undefined ? buildFieldExample(body as DescField, side) : buildExample(target, side, inPath);
  const needs = (field: DescField) => isRequiredInput(field, comments);
  const isNeeded =
    form === "body" &&
    (target === undefined
      ? needs(body as DescField)
      : target.fields.some((one) => needs(one) && !inPath.includes(one.name)) ||
        findOpenOneofs(target, inPath, comments).length > 0);
  return { ...(isNeeded && { required: true }), content: buildJsonContent(schema, example) };
}

function responseOf({ entry, method, responseBody }: HttpBinding, { schemas, comments }: OperationContext): Schema {
  const { output, methodKind } = entry.desc;
  const target = responseBody === undefined ? output : responseBody.message;
  if (isHttpBody(target) && responseBody?.fieldKind !== "list")
    return { description: "The content.", content: ANY_BYTES };
  if (responseBody === undefined && output.typeName === "google.protobuf.Empty" && method === "DELETE") {
    return { description: "Done. There is no body." };
  }
  const schema = responseBody ? schemas.ofField(responseBody, "answer") : schemas.refTo(output, "answer");
  if (methodKind !== "unary") return streamOf(schema);
  const side = { side: "answer", comments } as const;
  const example = responseBody ? buildFieldExample(responseBody, side) : buildExample(output, side);
  return { description: "The answer.", content: buildJsonContent(schema, example) };
}

// OpenAPI 3.1 cannot describe a sequence: a stream is a string whose messages `contentSchema` describes.
function streamOf(schema: Schema): Schema {
  const error = { $ref: `#/components/schemas/${STATUS}` };
  const line: Schema = {
    oneOf: [
      { type: "object", required: ["result"], properties: { result: schema } },
      { type: "object", required: ["error"], properties: { error } },
    ],
  };
  const content = (description: string, contentSchema: Schema): Schema => ({
    schema: { type: "string", description, contentMediaType: "application/json", contentSchema },
  });
  return {
    description: "The answers, one after the other, as they come.",
    content: {
      "application/x-ndjson": content("One JSON object per line. An `error` is the last.", line),
      "text/event-stream": content(
        "One event per answer, to callers that ask for events. The last may be of the type `error`, its data the error.",
        { anyOf: [schema, error] },
      ),
    },
  };
}

function buildJsonContent(schema: Schema, example: Json | undefined): Schema {
  return { "application/json": { schema, ...(example !== undefined && { example }) } };
}

function isHttpBody(desc: DescMessage | undefined): boolean {
  return desc?.typeName === "google.api.HttpBody";
}

const ANY_BYTES: Schema = { "*/*": {} };
