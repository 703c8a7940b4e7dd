// The services of feature.proto, asked by the examples of their document, answer
// as the document says.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type FeatureStack, startFeatureStack } from "../../support/feature/feature-service.js";
import {
  type AnyObject,
  createValidators,
  operationsOf,
  type PlacedOperation,
} from "../../support/openapi/document.js";
import { featureDocument } from "../../support/openapi/documents.js";
import { requestOf, withQuery } from "../../support/openapi/request.js";

const document = featureDocument();
const validators = createValidators(document);
const JSON_TYPE = "application/json";
const LINES = "application/x-ndjson";
const EVENTS = "text/event-stream";

let stack: FeatureStack;

before(async () => {
  stack = await startFeatureStack();
});
after(() => stack.stop());

for (const operation of operationsOf(document)) {
  const content = operation.responses["200"]?.content;

  test(`${operation.operationId}: its example is accepted and its answer described`, async () => {
    const { status, type, text } = await ask(operation);
    assert.equal(status, 200, text);
    if (content === undefined) return assert.equal(text, "");
    if ("*/*" in content) return assert.notEqual(type, JSON_TYPE);
    assert.ok(type in content, type);
    if (type === JSON_TYPE) {
      assert.equal(validators.of(content[JSON_TYPE]?.schema ?? {})(JSON.parse(text)), undefined, text);
    }
  });

  if (content !== undefined && LINES in content) {
    test(`${operation.operationId}: the parts of the stream are described, as lines and as events`, async () => {
      const lines = await ask(operation, LINES);
      assert.deepEqual(faults(content[LINES]?.schema, lines.text.trimEnd().split("\n")), []);
      const events = await ask(operation, EVENTS);
      assert.equal(events.type, EVENTS);
      const data = [...events.text.matchAll(/^data: (.*)$/gm)].map(([, text]) => text ?? "");
      assert.deepEqual(faults(content[EVENTS]?.schema, data), []);
    });

    test(`${operation.operationId}: so is an error in the middle of it`, async () => {
      const watch = stack.watch;
      stack.watch = async function* () {
        yield { uid: "a", labels: {} };
        throw new Error("broken");
      };
      try {
        const lines = (await ask(operation, LINES)).text.trimEnd().split("\n");
        assert.match(lines.at(-1) ?? "", /^\{"error":/);
        assert.deepEqual(faults(content[LINES]?.schema, lines), []);
      } finally {
        stack.watch = watch;
      }
    });
  }
}

function faults(schema: AnyObject | undefined, parts: readonly string[]): unknown[] {
  assert.ok(parts.length > 1, parts.join());
  const valid = validators.of(schema?.contentSchema as AnyObject);
  return parts.map((part) => valid(JSON.parse(part))).filter((fault) => fault !== undefined);
}

async function ask(operation: PlacedOperation, accept = "*/*") {
  const { method, path, body } = requestOf(operation, (name) => (name === "count" ? 3 : undefined));
  const several = operation.parameters.some(({ name }) => name === "count") ? ["count=3"] : [];
  const isWatch = operation.operationId === "StreamService_Watch_2";
  const sent = isWatch ? { uid: "a", count: 3 } : body;
  const response = await fetch(stack.url + withQuery(path, several), {
    method,
    headers: { accept, ...(sent !== undefined && { "content-type": JSON_TYPE }) },
    ...(sent !== undefined && { body: JSON.stringify(sent) }),
  });
  // A stream that breaks off has no proper end; what came before it counts.
  let text = "";
  try {
    for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString();
  } catch (error) {
    if (text === "") throw error;
  }
  return { status: response.status, type: response.headers.get("content-type") ?? "", text };
}
