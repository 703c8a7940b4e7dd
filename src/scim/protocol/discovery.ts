// What the service says of itself (RFC 7643, sections 5 to 7; RFC 7644, section 4).
import { buildListResponse } from "./list.js";
import type { Attribute, ResourceType, Schema } from "./schemas.js";

const CORE = "urn:ietf:params:scim:schemas:core:2.0";

type Json = Record<string, unknown>;

/** The resource of `/ServiceProviderConfig`. */
export function buildServiceProviderConfig(
  baseUrl: string,
  options: { readonly documentationUri: string; readonly maxResults: number },
): Json {
  const { documentationUri, maxResults } = options;
  return {
    schemas: [`${CORE}:ServiceProviderConfig`],
    documentationUri,
    patch: { supported: true },
    bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
    filter: { supported: true, maxResults },
    changePassword: { supported: false },
    sort: { supported: true },
    etag: { supported: true },
    authenticationSchemes: [
      {
        type: "oauthbearertoken",
        name: "Bearer token",
        description: "The SCIM token of the identity provider, in the header Authorization.",
        specUri: "https://www.rfc-editor.org/info/rfc6750",
        documentationUri,
        primary: true,
      },
    ],
    meta: { resourceType: "ServiceProviderConfig", location: `${baseUrl}/ServiceProviderConfig` },
  };
}

/** The list of `/ResourceTypes`. */
export function buildResourceTypes(types: readonly ResourceType[], baseUrl: string): Json {
  return buildList(types.map((type) => buildResourceType(type, baseUrl)));
}

/** The resource of `/ResourceTypes/{name}`. */
export function buildResourceType(type: ResourceType, baseUrl: string): Json {
  return {
    schemas: [`${CORE}:ResourceType`],
    id: type.name,
    name: type.name,
    description: type.description,
    endpoint: type.endpoint,
    schema: type.schema.id,
    schemaExtensions: type.extensions.map(({ id }) => ({ schema: id, required: false })),
    meta: { resourceType: "ResourceType", location: `${baseUrl}/ResourceTypes/${type.name}` },
  };
}

/** The list of `/Schemas`. */
export function buildSchemas(types: readonly ResourceType[], baseUrl: string): Json {
  return buildList(listSchemas(types).map((schema) => buildSchema(schema, baseUrl)));
}

/** The schema with a URN in any case of its letters. */
export function findSchema(types: readonly ResourceType[], id: string): Schema | undefined {
  return listSchemas(types).find((schema) => schema.id.toLowerCase() === id.toLowerCase());
}

/** The resource of `/Schemas/{urn}`. */
export function buildSchema({ id, name, description, attributes }: Schema, baseUrl: string): Json {
  return {
    schemas: [`${CORE}:Schema`],
    id,
    name,
    description,
    attributes: attributes.map(buildAttribute),
    meta: { resourceType: "Schema", location: `${baseUrl}/Schemas/${id}` },
  };
}

function listSchemas(types: readonly ResourceType[]): Schema[] {
  return types.flatMap(({ schema, extensions }) => [schema, ...extensions]);
}

function buildAttribute(attribute: Attribute): Json {
  const { canonicalValues, referenceTypes, subAttributes } = attribute;
  const isText = ["string", "reference", "binary"].includes(attribute.type);
  return {
    name: attribute.name,
    type: attribute.type,
    multiValued: attribute.multiValued,
    description: attribute.description,
    required: attribute.required,
    ...(isText && { caseExact: attribute.caseExact }),
    mutability: attribute.mutability,
    returned: attribute.returned,
    uniqueness: attribute.uniqueness,
    ...(canonicalValues.length > 0 && { canonicalValues }),
    ...(referenceTypes.length > 0 && { referenceTypes }),
    ...(subAttributes.length > 0 && { subAttributes: subAttributes.map(buildAttribute) }),
  };
}

function buildList(resources: readonly Json[]): Json {
  return buildListResponse(resources, resources.length, 1);
}
