import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { HttpBinding } from "../binding.js";
import { textReaderOf } from "../query-value.js";
import type { Comments } from "./proto-comments.js";
import { isRequired } from "./required.js";
import { described, type Schema, type Schemas } from "./schema.js";

const MAX_DEPTH = 3;

/**
 * The query parameters of a route: every field that neither path nor body sets and that text can
 * set, those of nested messages by their dotted path.
 */
export function queryParametersOf(route: HttpBinding, schemas: Schemas, comments: Comments): Schema[] {
  const { body, variables, entry } = route;
  if (body === "all") return [];
  const bound = new Set(variables.map(({ parents, field }) => [...parents, field].map(({ name }) => name).join(".")));
  const parameters: Schema[] = [];

  const visit = (desc: DescMessage, parents: readonly DescField[]): void => {
    for (const field of desc.fields) {
      const name = [...parents, field].map((one) => one.name).join(".");
      if (field === body || bound.has(name) || field.fieldKind === "map") continue;
      if (textReaderOf(field) !== undefined) {
        parameters.push({
          name,
          in: "query",
          ...(parents.length === 0 && isRequired(field) && { required: true }),
          ...described(comments(`${desc.typeName}.${field.name}`)),
          schema: schemas.ofField(field),
        });
      } else if (field.fieldKind === "message" && parents.length < MAX_DEPTH && !parents.includes(field)) {
        visit(field.message, [...parents, field]);
      }
    }
  };
  visit(entry.desc.input, []);
  return parameters;
}
