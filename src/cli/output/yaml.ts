// YAML that means what the JSON means and that no terminal acts upon.
import type { JsonValue } from "@bufbuild/protobuf";
import { Document, isScalar, Scalar, visit } from "yaml";
import { printable } from "../printable.js";
import { printableLines } from "./lines.js";

/** `value` as YAML 1.2, with a line end behind it. */
export function yamlText(value: JsonValue): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  // Only in double quotes can a character be written as an escape.
  visit(document, {
    Scalar(_, node) {
      if (isScalar(node) && typeof node.value === "string" && printable(node.value) !== node.value) {
        node.type = Scalar.QUOTE_DOUBLE;
      }
    },
  });
  return printableLines(document.toString({ lineWidth: 0, doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER }));
}
