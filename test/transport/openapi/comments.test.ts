import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { parseComments } from "../../../src/codec/proto-comments.js";

// Each comment names the path it is given for (descriptor.proto, SourceCodeInfo.Location).
const comments = parseComments(
  toBinary(
    FileDescriptorSetSchema,
    create(FileDescriptorSetSchema, {
      file: [
        {
          package: "p",
          messageType: [
            {
              name: "M",
              field: [{ name: "a" }, { name: "b" }],
              oneofDecl: [{ name: "o" }],
              nestedType: [{ name: "N", field: [{ name: "c" }] }],
              enumType: [{ name: "F", value: [{ name: "F_ZERO" }] }],
            },
          ],
          enumType: [{ name: "E", value: [{ name: "E_ZERO" }, { name: "E_ONE" }] }],
          service: [{ name: "S", method: [{ name: "Do" }] }],
          sourceCodeInfo: {
            location: [
              { path: [4, 0], leadingComments: " A message,\n on two lines.\n\n  And a paragraph. \n" },
              { path: [4, 0, 2, 1], leadingComments: " Field b.\n" },
              { path: [4, 0, 8, 0], leadingComments: " One of several.\n" },
              { path: [4, 0, 3, 0, 2, 0], leadingComments: " Nested field.\n" },
              { path: [4, 0, 4, 0, 2, 0], leadingComments: " Nested value.\n" },
              { path: [5, 0], leadingComments: " An enum.\n" },
              { path: [5, 0, 2, 1], leadingComments: " One.\n" },
              { path: [6, 0], leadingComments: " A service.\n" },
              { path: [6, 0, 2, 0], leadingComments: " A method.\n" },
              { path: [6, 0, 2, 0, 1], trailingComments: " Nobody's.\n" },
            ],
          },
        },
      ],
    }),
  ),
);

const rows: readonly [name: string, comment: string, reason: string][] = [
  ["p.M", "A message, on two lines.\n\nAnd a paragraph.", "lines are joined, paragraphs stay apart"],
  ["p.M.a", "", "no comment"],
  ["p.M.b", "Field b.", "a field"],
  ["p.M.o", "One of several.", "a oneof"],
  ["p.M.N.c", "Nested field.", "a field of a nested message"],
  ["p.M.F.F_ZERO", "Nested value.", "a value of a nested enum"],
  ["p.E", "An enum.", "an enum"],
  ["p.E.E_ONE", "One.", "a value"],
  ["p.S", "A service.", "a service"],
  ["p.S.Do", "A method.", "a method"],
  ["p.X", "", "no such thing"],
];
for (const [name, comment, reason] of rows) {
  test(`the comment of ${name}: ${reason}`, () => assert.equal(comments(name), comment));
}
