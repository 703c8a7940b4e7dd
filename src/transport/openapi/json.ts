/** A JSON value of a document. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** A JSON object of a document, such as a schema (JSON Schema 2020-12, as OpenAPI 3.1 uses it). */
export type Schema = { [key: string]: Json };

/** A `description`, if there is anything to say. */
export function buildDescription(description: string): Schema {
  return description === "" ? {} : { description };
}
