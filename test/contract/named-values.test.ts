// No value that a request names gets lost without an error. Every field of every message that creates or updates
// something is sent with a value of its own: the response shows the value, or is an error that names the field. What is
// neither must be output-only, or stand below with its reason. A new field is sent as soon as it is in a proto.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  type DescField,
  type DescMessage,
  type DescMethodUnary,
  getOption,
  hasOption,
  ScalarType,
} from "@bufbuild/protobuf";
import { http } from "#gen/google/api/annotations_pb.js";
import { FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.js";
import type { AnyObject, PlacedOperation } from "../support/openapi/document.js";
import { methods, nameOf } from "./iam-methods.js";
import { type OperationWorld, startOperationWorld } from "./operation-world.js";
import { findUnservedStatus } from "./served.js";

let world: OperationWorld;
before(async () => {
  world = await startOperationWorld();
});
after(() => world.stop());

/**
 * Fields that version 1 published without OUTPUT_ONLY: ids of new resources, who wrote and reviewed an advisory, and what
 * changes without a request of the caller, so that a client cannot send back what it has read.
 */
const SET_BY_SERVICE =
  /(^|\.)(id|author|reviewer|createdAt|updatedAt|createTime|lastUpdated|lastSeen)$|^scim\.(\w+ExpireTime|credentialState|etag)$/;

/** Fields that are stored and that no response to the request shows. */
const NOT_SHOWN = /^(ttl|oidc\.clientSecret)$/;
/** Of an invite, version 1 shows these in lists alone. */
const NOT_SHOWN_IN_V1 = "iam.GroupInvites.Create: singleUse";

/** A field of a body by its path in JSON, and a value for it that nothing else has. */
interface Sample {
  readonly path: readonly string[];
  readonly fields: readonly DescField[];
  readonly value: unknown;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const soon = new Date(Math.floor(Date.now() / 1000) * 1000 + 30 * DAY_MS).toISOString().replace(".000Z", "Z");

function sampleOf(field: DescField): unknown {
  switch (field.message?.typeName) {
    case undefined:
      break;
    case "google.protobuf.Timestamp":
      return soon;
    case "google.protobuf.Duration":
      return "7777s";
    case "google.protobuf.FieldMask":
      return undefined;
    default:
      return {};
  }
  if (field.enum) return field.enum.values.at(-1)?.name;
  switch (field.scalar) {
    case ScalarType.STRING:
      return "sample";
    case ScalarType.BOOL:
      return true;
    case ScalarType.BYTES:
      return "c2FtcGxl";
    case ScalarType.INT64:
    case ScalarType.UINT64:
      return "7777";
    default:
      return 7777;
  }
}

function samplesOf(message: DescMessage, above: readonly DescField[] = [], path: readonly string[] = []): Sample[] {
  return message.fields.flatMap((field) => {
    const fields = [...above, field];
    const at = [...path, field.jsonName];
    const isOwn = field.message && !field.message.typeName.startsWith("google.protobuf.");
    if (field.fieldKind === "list")
      return isOwn
        ? samplesOf(field.message, fields, [...at, "0"])
        : [{ fields, path: [...at, "0"], value: sampleOf(field) }];
    if (field.fieldKind === "map") {
      const key = field.mapKey === ScalarType.STRING ? "sample" : "7777";
      return isOwn
        ? samplesOf(field.message, fields, [...at, key])
        : [{ fields, path: [...at, key], value: sampleOf(field) }];
    }
    const nested = isOwn && field.message ? samplesOf(field.message, fields, at) : [];
    // A message without fields is a value of its own.
    return nested.length > 0 ? nested : [{ fields, path: at, value: sampleOf(field) }];
  });
}

/** A copy of `body` with the value of a sample; other members of its oneofs are taken out. */
function withSample(body: unknown, { path, fields, value }: Sample): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  if (/^\d+$/.test(name) && (Array.isArray(body) || body === undefined)) {
    const list = (body ?? []) as readonly unknown[];
    return [withSample(list[0], { path: rest, fields, value }), ...list.slice(1)];
  }
  const object = { ...(body as AnyObject | undefined) };
  for (const field of fields) {
    if (field.jsonName !== name) continue;
    for (const other of field.oneof?.fields ?? []) if (other !== field) delete object[other.jsonName];
  }
  return { ...object, [name]: withSample(object[name], { path: rest, fields, value }) };
}

/** Whether a value stands under this name, or as an element of what does, anywhere in a response. */
function shows(response: unknown, name: string, value: unknown): boolean {
  if (typeof response !== "object" || response === null) return false;
  return Object.entries(response).some(([key, member]) => {
    const own = key === name && (Array.isArray(member) ? member : [member]).some((one) => isEqual(one, value));
    return own || shows(member, name, value);
  });
}

// Times are equal to the second.
function isEqual(shown: unknown, value: unknown): boolean {
  const text = (one: unknown) => String(one).replace(/\.\d+Z$/, "Z");
  return typeof value === "object" ? typeof shown === "object" : text(shown) === text(value);
}

function isOutputOnly({ fields }: Sample): boolean {
  return fields.some(
    (field) => hasOption(field, field_behavior) && getOption(field, field_behavior).includes(FieldBehavior.OUTPUT_ONLY),
  );
}

function methodOf({ operationId, tags }: PlacedOperation): DescMethodUnary | undefined {
  return methods.find(
    ({ name, parent }) => tags.includes(parent.typeName) && new RegExp(`_${name}(_[0-9]+)?$`).test(operationId),
  );
}

// Version 2 has the messages and handlers of its beta.
function writesResource(operation: PlacedOperation): boolean {
  const method = methodOf(operation);
  if (method === undefined || findUnservedStatus(operation) !== undefined) return false;
  return /^(Create|Update|BatchCreate)/.test(method.name) && !method.parent.typeName.includes(".v2.");
}

describe("a value that a request names", () => {
  it("is stored, output-only or rejected, in every field of every request", async (t) => {
    const operations = world.operations.filter(writesResource);
    assert.ok(operations.length >= 35, `${operations.length} operations write`);
    for (const operation of operations) {
      const method = methodOf(operation);
      assert.ok(method);
      const { body = "" } = getOption(method, http);
      const field = method.input.field[toLocalName(body)];
      const resource = body === "*" ? method.input : field?.message;
      assert.ok(resource, `${nameOf(method)} has a body`);
      const samples = samplesOf(resource, [], field?.fieldKind === "list" ? ["0"] : []);
      const inPath = operation.parameters.map(({ name }) => name.split(".").at(-1));
      for (const sample of samples) {
        const path = sample.path.join(".").replace(/^0\./, "");
        if (sample.value === undefined || inPath.includes(sample.fields[0]?.name)) continue;
        if (isOutputOnly(sample) || SET_BY_SERVICE.test(path) || NOT_SHOWN.test(path)) continue;
        const title = `${nameOf(method)}: ${path}`;
        if (title === NOT_SHOWN_IN_V1) continue;
        await t.test(title, async () => {
          const request = await world.arrange(operation);
          const { status, text } = await world.send({ ...request, body: withSample(request.body, sample) });
          const told = `${JSON.stringify(withSample(request.body, sample))}: ${status} ${text}`;
          const names = sample.path.filter((name) => !/^\d+$/.test(name));
          if (status !== 200) {
            const { message } = JSON.parse(text) as { message: string };
            assert.ok(
              names.some((name) => new RegExp(`(\\b|re)${name}\\b`).test(message)),
              told,
            );
            return;
          }
          const name = sample.fields.at(-1)?.jsonName ?? "";
          const leaf = sample.fields.at(-1)?.fieldKind === "map" ? (sample.path.at(-1) ?? "") : name;
          assert.ok(shows(JSON.parse(text), leaf, sample.value), told);
        });
      }
    }
  });
});

function toLocalName(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
