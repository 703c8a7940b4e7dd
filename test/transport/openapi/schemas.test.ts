// The schemas of the document hold for what is really written and read: whatever
// they admit is understood, and whatever is answered is admitted.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type DescMessage, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { createJsonWriters } from "../../../src/codec/json-writer.js";
import { createBodyReader } from "../../../src/transport/rest/decode.js";
import { featureMessage, featureRegistry } from "../../support/feature/feature.js";
import {
  type AnyObject,
  type ApiDocument,
  atRef,
  createValidators,
  operationsOf,
  type PlacedOperation,
  refsIn,
} from "../../support/openapi/document.js";
import { featureDocument, groupsDocument } from "../../support/openapi/documents.js";
import { createRandom } from "../../support/openapi/random.js";
import { valueFor } from "../../support/openapi/values.js";

const documents: readonly { name: string; document: ApiDocument }[] = [
  { name: "groups", document: groupsDocument() },
  { name: "feature", document: featureDocument() },
];

for (const { name, document } of documents) {
  const validators = createValidators(document);

  test(`${name}: every reference leads to something, and everything is referred to`, () => {
    const refs = refsIn(document);
    assert.ok(refs.length > 10);
    assert.deepEqual(
      refs.filter((ref) => atRef(document, ref) === undefined),
      [],
    );
    const used = new Set(refs);
    const unused = Object.keys(document.components.schemas).filter((key) => !used.has(`#/components/schemas/${key}`));
    assert.deepEqual(unused, []);
  });

  test(`${name}: every schema compiles`, () => {
    for (const key of Object.keys(document.components.schemas)) validators.component(key);
    for (const schema of schemasOf(document)) validators.of(schema);
  });

  for (const operation of operationsOf(document)) {
    test(`${name}: the examples of ${operation.operationId} are valid`, () => {
      for (const { schema, example } of examplesOf(operation)) assert.equal(validators.of(schema)(example), undefined);
    });
  }

  test(`${name}: the example of an error is valid`, () => {
    const example = document.components.responses.Error?.content?.["application/json"]?.example;
    assert.equal(validators.error(example), undefined);
  });
}

const { document } = documents[1] ?? { document: featureDocument() };
const validators = createValidators(document);
const writers = createJsonWriters(featureRegistry);
const RUNS = 500;
// A type that is known.
const ANY = { "@type": "type.googleapis.com/google.protobuf.Duration", value: "1s" };
const hint = (name: string) => (name === "any" ? ANY : undefined);

for (const name of ["Kinds", "Thing", "ListThingsResponse", "ThingList", "UploadResponse"]) {
  const desc = featureMessage(name);
  const valid = validators.component(desc.typeName);

  test(`${name}: whatever is answered is what the document says`, () => {
    const random = createRandom(RUNS);
    const whole = document.components.schemas[desc.typeName];
    assert.ok(whole);
    for (let i = 0; i < RUNS; i++) {
      const json = random.chance(0.05) ? {} : withOneChoice(valueFor(whole, document, random, hint));
      const message = fromJson(desc, json as JsonValue, { registry: featureRegistry });
      const text = writers.answer(desc)(message);
      assert.equal(valid(JSON.parse(text)), undefined, text);
    }
  });
}

for (const name of ["Kinds", "Thing"]) {
  test(`${name}: whatever the document admits as a body is read`, () => {
    const desc: DescMessage = featureMessage(name);
    const read = createBodyReader(desc, "all", featureRegistry, true);
    const schema = document.components.schemas[`${desc.typeName}-body`];
    assert.ok(schema);
    const random = createRandom(RUNS);
    for (let i = 0; i < RUNS; i++) read(JSON.stringify(withOneChoice(valueFor(schema, document, random, hint))));
  });
}

test("rejects an error that lacks ErrorInfo, or has a detail that does not match its type", () => {
  const info = { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "ABORTED", domain: "iam.test" };
  const error = (...details: object[]) => validators.error({ code: 3, message: "m", details });
  assert.equal(error(info), undefined);
  assert.equal(error(info, { "@type": "type.googleapis.com/google.rpc.Help", links: [] }), undefined);
  assert.match(error() ?? "", /contain at least 1/);
  assert.match(error({ ...info, reason: undefined }) ?? "", /anyOf/);
  assert.match(error(info, { "@type": "type.googleapis.com/google.rpc.BadRequest" }) ?? "", /anyOf/);
  assert.match(error({ ...info, more: 1 }) ?? "", /anyOf/);
});

function schemasOf(document: ApiDocument): AnyObject[] {
  return operationsOf(document).flatMap(({ parameters, requestBody, responses }) => [
    ...parameters.map(({ schema }) => schema),
    ...[requestBody?.content, responses["200"]?.content]
      .flatMap((content) => Object.values(content ?? {}))
      .flatMap(({ schema }) => (schema === undefined ? [] : [schema])),
  ]);
}

function examplesOf({
  parameters,
  requestBody,
  responses,
}: PlacedOperation): { schema: AnyObject; example: unknown }[] {
  const contents = [requestBody?.content, responses["200"]?.content].flatMap((content) => Object.values(content ?? {}));
  return [...parameters, ...contents].flatMap(({ schema, example }) =>
    schema === undefined || example === undefined ? [] : [{ schema, example }],
  );
}

// The document cannot say that the members of a oneof exclude each other.
function withOneChoice(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withOneChoice);
  if (typeof value !== "object" || value === null) return value;
  const kept: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    const otherMembers = key === "number" ? ["word"] : key.startsWith("choice") ? Object.keys(kept) : [];
    if (!otherMembers.some((member) => (member === "word" ? member in kept : member.startsWith("choice"))))
      kept[key] = withOneChoice(member);
  }
  return kept;
}
