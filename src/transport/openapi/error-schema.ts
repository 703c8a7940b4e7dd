// The schema of errors: google.rpc.Status with the details that this service sets.
import type { DescMessage } from "@bufbuild/protobuf";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  QuotaFailureSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from "#gen/google/rpc/error_details_pb.js";
import { TYPE_URL_PREFIX } from "../../codec/type-registry.js";
import { createSchemas } from "./schema.js";
import { buildDescription, type Schema } from "./value-schema.js";

/** The name of the schema of errors. */
export const STATUS = "google.rpc.Status";

/** A reference to the response of every error. */
export const ERROR_RESPONSE: Schema = { $ref: "#/components/responses/Error" };

// The purpose of each detail, and its fields that are always set.
const details: readonly { desc: DescMessage; about: string; required: readonly string[] }[] = [
  {
    desc: ErrorInfoSchema,
    about: "Why, for programs: `reason` within `domain` does not change as texts do. Every error has one.",
    required: ["reason", "domain"],
  },
  {
    desc: BadRequestSchema,
    about: "Which fields of the request break which rules. `field` is the path of the field in JSON.",
    required: ["fieldViolations"],
  },
  { desc: PreconditionFailureSchema, about: "What stands in the way.", required: ["violations"] },
  {
    desc: QuotaFailureSchema,
    about: "Which quota does not allow more. Waiting does not help: something must be deleted, or the quota raised.",
    required: ["violations"],
  },
  { desc: ResourceInfoSchema, about: "Which resource the error is about.", required: ["resourceType"] },
  { desc: RetryInfoSchema, about: "When it makes sense to try again.", required: ["retryDelay"] },
];

/** The schemas of errors and of all their details, by name. */
export function buildErrorSchemas(): Record<string, Schema> {
  const schemas = createSchemas(() => "");
  for (const { desc } of details) schemas.refTo(desc, "detail");
  const made = schemas.components();
  for (const { desc, about, required } of details) {
    const type = { type: "string", const: TYPE_URL_PREFIX + desc.typeName };
    const own = made[`${desc.typeName}-detail`];
    delete made[`${desc.typeName}-detail`];
    made[desc.typeName] = {
      type: "object",
      ...buildDescription(about),
      required: ["@type", ...required],
      properties: { "@type": type, ...(own?.properties as Schema) },
    };
  }
  return { ...made, [STATUS]: buildStatusSchema(), [OTHER]: otherDetail };
}

/** The response of every error (AIP-193). */
export const errorResponse: Schema = {
  description: "What went wrong. The HTTP status follows from `code`.",
  content: {
    "application/json": {
      schema: { $ref: `#/components/schemas/${STATUS}` },
      example: {
        code: 3,
        message: "Invalid argument: name: name must match ^[a-z0-9 ._-]{1,}$",
        details: [
          { "@type": `${TYPE_URL_PREFIX}google.rpc.ErrorInfo`, reason: "INVALID_ARGUMENT", domain: "iam.example.org" },
          {
            "@type": `${TYPE_URL_PREFIX}google.rpc.BadRequest`,
            fieldViolations: [{ field: "name", description: "name must match ^[a-z0-9 ._-]{1,}$" }],
          },
        ],
      },
    },
  },
};

function buildStatusSchema(): Schema {
  const known = details.map(({ desc }) => ({ $ref: `#/components/schemas/${desc.typeName}` }));
  return {
    type: "object",
    description: "What went wrong (google.rpc.Status, AIP-193).",
    required: ["code", "message", "details"],
    properties: {
      code: { type: "integer", description: "The google.rpc.Code.", minimum: 1, maximum: 16 },
      message: { type: "string", description: "What went wrong, for people." },
      details: {
        type: "array",
        description: "What went wrong, for programs.",
        // At most one matches, by its `@type`. Generated clients that ignore the type may find several matches, which
        // `oneOf` would make an error.
        items: { anyOf: [...known, { $ref: `#/components/schemas/${OTHER}` }] },
        contains: { $ref: `#/components/schemas/${ErrorInfoSchema.typeName}` },
      },
    },
  };
}

// Later versions may add details, so readers must expect unknown types. A known type never matches this schema.
const OTHER = "ErrorDetail";
const otherDetail: Schema = {
  type: "object",
  description: "A detail of a type that this document does not know yet.",
  required: ["@type"],
  properties: {
    "@type": { type: "string", not: { enum: details.map(({ desc }) => TYPE_URL_PREFIX + desc.typeName) } },
  },
  additionalProperties: true,
};
