// An OpenAPI document as tests read it: its operations, and validators of what
// they answer that let nothing pass which the document does not speak of.
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

/** A JSON object that nothing is known of. */
export type AnyObject = Readonly<Record<string, unknown>>;

/** A parameter, as far as tests read it. */
export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query";
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: AnyObject;
  readonly example?: unknown;
}

type Content = Readonly<Record<string, { readonly schema?: AnyObject; readonly example?: unknown }>>;

/** A response, or a reference to one. */
export interface ResponseObject {
  readonly $ref?: string;
  readonly description?: string;
  readonly content?: Content;
}

/** What a call needs, by the names of security schemes. */
export type Security = Readonly<Record<string, readonly string[]>>;

/** An operation, as far as tests read it. */
export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly deprecated?: boolean;
  readonly tags: readonly string[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, ResponseObject>>;
  readonly security?: readonly Security[];
}

/** An OpenAPI document, as far as tests read it. */
export interface ApiDocument {
  readonly openapi: string;
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly "x-displayName": string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly security: readonly Security[];
  readonly components: {
    readonly securitySchemes: Readonly<Record<string, AnyObject>>;
    readonly schemas: Readonly<Record<string, AnyObject>>;
    readonly responses: Readonly<Record<string, ResponseObject>>;
  };
}

/** An operation and how it is reached. */
export interface PlacedOperation extends Operation {
  /** In upper case. */
  readonly method: string;
  /** The template, such as `/iam/v2beta1/groups/{uid}`. */
  readonly path: string;
}

/** All operations of a document. */
export function operationsOf({ paths }: ApiDocument): PlacedOperation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ ...operation, path, method: method.toUpperCase() })),
  );
}

/** Those whose responses end: streams that have no end are read by test/audit/api and test/events. */
export function endingOperationsOf(document: ApiDocument): PlacedOperation[] {
  return operationsOf(document).filter(({ path }) => !path.endsWith("/events:tail"));
}

/** Tells what is wrong with a value by a schema of the document; undefined when nothing is. */
export type Validate = (value: unknown) => string | undefined;

/** Makes validators; see {@link createValidators}. */
export interface Validators {
  /** For a schema as it stands anywhere in the document. */
  of(schema: AnyObject): Validate;
  /** For the component of this name. */
  component(name: string): Validate;
  /** For errors. */
  readonly error: Validate;
}

/**
 * Makes validators of a document. Schemas of messages are closed: a property that the document does
 * not speak of is wrong here, though it is not for the readers of the document.
 */
export function createValidators(document: ApiDocument): Validators {
  // Validators run a few times each, so that making their code shorter takes longer than it saves.
  const code = { optimize: false };
  const ajv = new Ajv2020({ allErrors: false, strict: true, strictTypes: false, allowUnionTypes: true, code });
  // The package has two shapes, one for each module system.
  (addFormats as unknown as { default: (ajv: Ajv2020) => void }).default(ajv);
  // Times are written in UTC with milliseconds. The document does not say so, because generated clients fail on a pattern.
  ajv.addFormat("date-time", /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}(?:[0-9]{3}){0,2}Z$/);
  ajv.addFormat("uint64", /^[0-9]{1,20}$/);
  ajv.addFormat("int64", {
    type: "string",
    validate: (text: string) => BigInt.asIntN(64, BigInt(text)) === BigInt(text),
  });
  for (const [name, schema] of Object.entries(document.components.schemas))
    ajv.addSchema(resolveReferences(schema), name);

  const validatorOf = (validate: ValidateFunction): Validate => {
    return (value) => (validate(value) ? undefined : (validate.errors ?? []).map(explain).join("; "));
  };
  const component = (name: string): Validate => {
    const found = ajv.getSchema(name);
    if (found === undefined) throw new TypeError(`no schema ${name}`);
    return validatorOf(found);
  };
  const known = new WeakMap<AnyObject, Validate>();
  const of = (schema: AnyObject): Validate => {
    const { $ref, ...beside } = schema;
    const isComponent = typeof $ref === "string" && Object.keys(beside).length === 0;
    const validate =
      known.get(schema) ??
      (isComponent ? component($ref.replace(REF, "")) : validatorOf(ajv.compile(resolveReferences(schema))));
    known.set(schema, validate);
    return validate;
  };
  return {
    of,
    component,
    error: component("google.rpc.Status"),
  };
}

const REF = "#/components/schemas/";

// References to components become references to the schemas of those names.
function resolveReferences(schema: AnyObject): AnyObject {
  const visit = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(visit);
    if (typeof value !== "object" || value === null) return value;
    const copy: Record<string, unknown> = {};
    for (const [key, member] of Object.entries(value)) {
      copy[key] =
        key === "$ref" ? String(member).replace(REF, "") : key === "enum" || key === "const" ? member : visit(member);
    }
    const isMessage = copy.type === "object" && "properties" in copy && !("additionalProperties" in copy);
    return isMessage ? { ...copy, additionalProperties: false } : copy;
  };
  return visit(schema) as AnyObject;
}

function explain({ instancePath, message = "", params, schemaPath }: ErrorObject): string {
  return `${instancePath || "/"} ${message} ${JSON.stringify(params)} (${schemaPath})`;
}

/** All values of `$ref` in a document. */
export function refsIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(refsIn);
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) =>
    key === "$ref" && typeof member === "string" ? [member] : refsIn(member),
  );
}

/** What a reference of a document leads to; undefined when to nothing. */
export function atRef(document: object, ref: string): unknown {
  if (!ref.startsWith("#/")) return undefined;
  const keys = ref
    .slice(2)
    .split("/")
    .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
  return keys.reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], document);
}
