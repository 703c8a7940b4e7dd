// What the document says of the services by which callers become known: what they
// take for a bearer, and that parameters may come as a form.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type AnyObject,
  type ApiDocument,
  operationsOf,
  type PlacedOperation,
} from "../../support/openapi/document.js";
import { groupsDocument, signInDocument } from "../../support/openapi/documents.js";

const FORM = "application/x-www-form-urlencoded";
const document = signInDocument();
const operations = operationsOf(document);

function operation(id: string): PlacedOperation {
  const found = operations.find(({ operationId }) => operationId === id);
  assert.ok(found, id);
  return found;
}

const rows: readonly { id: string; at: string; bearer: string | undefined; form: boolean }[] = [
  { id: "SecurityTokenService_Exchange", at: "POST /sts/exchange", bearer: "foreignToken", form: true },
  { id: "SecurityTokenService_Exchange_2", at: "GET /sts/exchange", bearer: "foreignToken", form: false },
  {
    id: "SecurityTokenService_ExchangeRefreshToken",
    at: "POST /sts/exchange_refresh_token",
    bearer: "refreshToken",
    form: true,
  },
  { id: "Auth_Validate", at: "GET /auth/v1/ok", bearer: "bearer", form: false },
  { id: "Auth_Register", at: "POST /auth/v1/register", bearer: "foreignToken", form: false },
  { id: "Auth_GetHeadlessSession", at: "GET /sts/headless_sessions", bearer: undefined, form: false },
  { id: "Auth_Delete", at: "DELETE /auth/v1/delete/{id}", bearer: "bearer", form: false },
];

test("every operation is looked at", () => {
  assert.deepEqual(
    operations.map(({ operationId }) => operationId),
    rows.map(({ id }) => id),
  );
});

for (const { id, at, bearer, form } of rows) {
  test(`${id}: takes ${bearer === undefined ? "no bearer" : `a bearer of the sort ${bearer}`}`, () => {
    const { method, path, security = document.security } = operation(id);
    assert.equal(`${method} ${path}`, at);
    assert.deepEqual(security, bearer === undefined ? [] : [{ [bearer]: [] }]);
    if (bearer !== undefined) assert.equal(document.components.securitySchemes[bearer]?.scheme, "bearer");
  });

  test(`${id}: ${form ? "the fields of a form are the parameters of the query" : "takes no form"}`, () => {
    const { parameters, requestBody } = operation(id);
    const { schema, encoding } = (requestBody?.content[FORM] ?? {}) as { schema?: AnyObject; encoding?: AnyObject };
    assert.equal(schema !== undefined, form);
    if (schema === undefined) return;
    assert.equal(requestBody?.required, undefined);
    const properties = schema.properties as Record<string, AnyObject>;
    const optional = parameters.filter(({ required }) => required !== true);
    const names = optional.map(({ name }) => name);
    assert.deepEqual(Object.keys(properties), names);
    for (const one of optional) {
      const { type, items } = one.schema;
      assert.deepEqual([properties[one.name]?.type, properties[one.name]?.items], [type, items]);
      assert.equal(properties[one.name]?.description, one.description);
    }
    assert.deepEqual(encoding?.cap, { style: "form", explode: true }, "lists repeat the name");
    assert.equal(properties.scope?.deprecated, true);
  });
}

test("only the sorts of bearers that some operation takes are described", () => {
  const sorts = (of: ApiDocument) => Object.keys(of.components.securitySchemes);
  assert.deepEqual(sorts(document), ["bearer", "foreignToken", "refreshToken"]);
  assert.deepEqual(sorts(groupsDocument()), ["bearer"]);
});
