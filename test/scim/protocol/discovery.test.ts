import assert from "node:assert/strict";
import { test } from "node:test";
import {
  buildResourceType,
  buildResourceTypes,
  buildSchema,
  buildSchemas,
  buildServiceProviderConfig,
  findSchema,
} from "../../../src/scim/protocol/discovery.js";
import { badRequest, ScimError, toErrorBody } from "../../../src/scim/protocol/error.js";
import { groupType, userType } from "../../../src/scim/protocol/schemas.js";

const BASE = "https://arbor.example/scim/v2/p";
const TYPES = [userType, groupType];
const LIST = "urn:ietf:params:scim:api:messages:2.0:ListResponse";

interface Described {
  readonly id: string;
  readonly attributes: readonly { readonly name: string }[];
  readonly meta: { readonly location: string };
}

test("the configuration says what is supported", () => {
  const config = buildServiceProviderConfig(BASE, { documentationUri: "https://arbor.example/docs", maxResults: 200 });
  const { patch, bulk, filter, changePassword, sort, etag, meta } = config;
  assert.deepEqual(
    { patch, bulk, filter, changePassword, sort, etag, meta },
    {
      patch: { supported: true },
      bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
      filter: { supported: true, maxResults: 200 },
      changePassword: { supported: false },
      sort: { supported: true },
      etag: { supported: true },
      meta: { resourceType: "ServiceProviderConfig", location: `${BASE}/ServiceProviderConfig` },
    },
  );
  assert.equal((config.authenticationSchemes as { type: string }[])[0]?.type, "oauthbearertoken");
});

test("the resource types name their schemas", () => {
  const list = buildResourceTypes(TYPES, BASE);
  assert.deepEqual(list.schemas, [LIST]);
  assert.deepEqual(list.Resources, [buildResourceType(userType, BASE), buildResourceType(groupType, BASE)]);
  const user = buildResourceType(userType, BASE);
  assert.deepEqual(
    [user.id, user.endpoint, user.schema, user.schemaExtensions, user.meta],
    [
      ...["User", "/Users", "urn:ietf:params:scim:schemas:core:2.0:User"],
      [{ schema: "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User", required: false }],
      { resourceType: "ResourceType", location: `${BASE}/ResourceTypes/User` },
    ],
  );
});

test("the schemas have the attributes of RFC 7643, section 8.7.1", () => {
  const { Resources, totalResults } = buildSchemas(TYPES, BASE);
  const schemas = Resources as Described[];
  assert.equal(totalResults, 3);
  assert.deepEqual(
    Object.fromEntries(schemas.map(({ id, attributes }) => [id, attributes.map(({ name }) => name).join(" ")])),
    {
      "urn:ietf:params:scim:schemas:core:2.0:User":
        "userName name displayName nickName profileUrl title userType preferredLanguage locale timezone active password emails phoneNumbers ims photos addresses groups entitlements roles x509Certificates",
      "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":
        "employeeNumber costCenter organization division department manager",
      "urn:ietf:params:scim:schemas:core:2.0:Group": "displayName members",
    },
  );
  for (const { id, meta } of schemas) assert.equal(meta.location, `${BASE}/Schemas/${id}`);
  const user = schemas[0]?.attributes as unknown as Record<string, unknown>[];
  const find = (name: string) => user.find((attribute) => attribute.name === name);
  const { description: _description, ...userName } = find("userName") ?? {};
  assert.deepEqual(userName, {
    ...{ name: "userName", type: "string", multiValued: false, required: true, caseExact: false },
    ...{ mutability: "readWrite", returned: "default", uniqueness: "server" },
  });
  assert.deepEqual([find("password")?.mutability, find("password")?.returned], ["writeOnly", "never"]);
  assert.equal(find("groups")?.mutability, "readOnly");
});

test("a schema is found by its URN", () => {
  const schema = findSchema(TYPES, "URN:ietf:params:scim:schemas:core:2.0:GROUP");
  assert.equal(schema && buildSchema(schema, BASE).id, "urn:ietf:params:scim:schemas:core:2.0:Group");
  assert.equal(findSchema(TYPES, "__proto__"), undefined);
});

test("errors have the form of RFC 7644, section 3.12", () => {
  assert.deepEqual(toErrorBody(badRequest("invalidPath", "no")), {
    schemas: ["urn:ietf:params:scim:api:messages:2.0:Error"],
    status: "400",
    scimType: "invalidPath",
    detail: "no",
  });
  assert.deepEqual(Object.keys(toErrorBody(new ScimError(404, "none"))), ["schemas", "status", "detail"]);
});
