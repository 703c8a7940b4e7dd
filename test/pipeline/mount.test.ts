// What cannot be served is refused where it is mounted, with an error that names the method.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create, createFileRegistry, type DescService, setExtension } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, file_google_protobuf_empty, MethodOptionsSchema } from "@bufbuild/protobuf/wkt";
import { IAMSchema, iam } from "#gen/chainguard/annotations/annotations_pb.js";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { http } from "#gen/google/api/annotations_pb.js";
import { HttpRuleSchema } from "#gen/google/api/http_pb.js";
import { mount } from "../../src/pipeline/mount.js";
import type { MountOptions } from "../../src/pipeline/mount-options.js";
import { LibraryService } from "../support/library/library_pb.js";

type Options = MountOptions<typeof LibraryService>;

const one = { capabilities: [Capability.CAP_IAM_GROUPS_LIST], scope: "group" } as const;
const open = {
  getBook: "public",
  createBook: "public",
  deleteBook: "public",
  listBooks: "public",
  returnBooks: "public",
  ask: "public",
} as const;

const rejected: readonly { readonly options: object; readonly error: RegExp; readonly reason: string }[] = [
  { reason: "no access", options: {}, error: /LibraryService\.GetBook is given no access/ },
  {
    reason: "no access for one",
    options: { access: { ...open, ask: undefined } },
    error: /LibraryService\.Ask is given no access/,
  },
  {
    reason: "access that is no rule",
    options: { access: { ...open, getBook: "everybody" } },
    error: /GetBook: access must be "public", "authenticated" or capabilities at a scope/,
  },
  {
    reason: "no capabilities",
    options: { access: { ...open, listBooks: { capabilities: [], scope: "group" } } },
    error: /ListBooks: access must be/,
  },
  {
    reason: "a capability that there is not",
    options: { access: { ...open, listBooks: { capabilities: [99_999], scope: "group" } } },
    error: /ListBooks: capability 99999/,
  },
  {
    reason: "no scope",
    options: { access: { ...open, listBooks: { capabilities: one.capabilities } } },
    error: /ListBooks: the scope "undefined" is no field/,
  },
  {
    reason: "a scope that is no field",
    options: { access: { ...open, getBook: one } },
    error: /GetBook: the scope "group" is no field of example\.library\.v1\.GetBookRequest/,
  },
  {
    reason: "a scope below a text",
    options: { access: { ...open, listBooks: { ...one, scope: "group.uid" } } },
    error: /ListBooks: the scope "group\.uid" is no field/,
  },
  {
    reason: "a scope that is no text",
    options: { access: { ...open, listBooks: { ...one, scope: "count" } } },
    error: /ListBooks: the scope "count" is no single text/,
  },
  {
    reason: "a scope that is a message",
    options: { access: { ...open, createBook: { ...one, scope: "book.shelf" } } },
    error: /CreateBook: the scope "book\.shelf" is no single text/,
  },
  {
    reason: "a scope in a stream of requests",
    options: { access: { ...open, returnBooks: one } },
    error: /ReturnBooks takes a stream, which has no one field that names a group/,
  },
  {
    reason: "an HTTP rule for a stream of requests",
    options: { access: "public", http: { returnBooks: { post: "/v1/books:return", body: "*" } } },
    error: /ReturnBooks takes a stream, which JSON over HTTP cannot send/,
  },
  {
    reason: "an HTTP rule for both streams",
    options: { access: "public", http: { ask: { post: "/v1/books:ask", body: "*" } } },
    error: /Ask takes a stream, which JSON over HTTP cannot send/,
  },
  {
    reason: "an HTTP rule of no method",
    options: { access: "public", http: { getBooks: { get: "/v1/books" } } },
    error: /LibraryService has no method getBooks/,
  },
  {
    reason: "access to no method",
    options: { access: { ...open, getBooks: "public" } },
    error: /LibraryService has no method getBooks/,
  },
  {
    reason: "an HTTP rule with a field that it has not",
    options: { access: "public", http: { getBook: { get: "/v1/books", verb: "x" } } },
    error: /GetBook: the HTTP rule cannot be read: .*verb/,
  },
  {
    reason: "two HTTP methods in one rule",
    options: { access: "public", http: { getBook: { get: "/v1/books", post: "/v1/books" } } },
    error: /GetBook: the HTTP rule cannot be read/,
  },
  {
    reason: "too large requests",
    options: { access: "public", maxRequestBytes: 5e6 },
    error: /GetBook: 5000000 bytes/,
  },
];

describe("mount", () => {
  for (const { reason, options, error } of rejected) {
    test(`refuses ${reason}`, () => {
      assert.throws(() => mount(LibraryService, {}, options as Options), { name: "TypeError", message: error });
    });
  }

  test("reads a scope wherever it is", () => {
    const scopeOf = (scope: string, request: object) => {
      const access = { ...open, createBook: { ...one, scope } };
      const entry = mount(LibraryService, {}, { access }).entries.find(({ desc }) => desc.localName === "createBook");
      assert.ok(entry?.auth.mode === "guarded" && entry.auth.scope);
      return [entry.auth.scope.field, entry.auth.scope.of(create(LibraryService.method.createBook.input, request))];
    };
    const inOneof = { book: { location: { case: "group", value: "g" } } };
    const inMember = { book: { location: { case: "shelf", value: { group: "s" } } } };
    assert.deepEqual(scopeOf("book.group", inOneof), ["book.group", "g"]);
    assert.deepEqual(scopeOf("book.group", inMember), ["book.group", ""]);
    assert.deepEqual(scopeOf("book.shelf.group", inMember), ["book.shelf.group", "s"]);
    assert.deepEqual(scopeOf("book.shelf.group", inOneof), ["book.shelf.group", ""]);
    assert.deepEqual(scopeOf("book.name", {}), ["book.name", ""]);
  });

  test("takes what protos say where nothing is given", () => {
    const [entry] = mount(declareAnnotated({ capabilities: [], unscoped: true }, { path: "/v1/do" }), {}).entries;
    assert.deepEqual(entry?.auth, { mode: "guarded", capabilities: [] });
    const given = mount(declareAnnotated({ capabilities: [], unscoped: true }), {}, { access: "public" }).entries;
    assert.deepEqual(given[0]?.auth, { mode: "public" });
  });

  test("refuses options of protos that nothing would look at", () => {
    const capabilities = [Capability.CAP_IAM_GROUPS_LIST];
    const error = { name: "TypeError", message: /some\.Service\.Do: capabilities need a scope/ };
    assert.throws(() => mount(declareAnnotated({ capabilities, unscoped: true }), {}), error);
    const streaming = declareAnnotated({ capabilities: [], unscoped: true }, { path: "/v1/do", clientStreaming: true });
    const message = /some\.Service\.Do takes a stream, which JSON over HTTP cannot send/;
    assert.throws(() => mount(streaming, {}), { name: "TypeError", message });
    assert.equal(mount(streaming, {}, { http: { do: null } }).entries[0]?.http, null);
  });

  test("refuses a service without a package, whose paths are like those of HTTP rules", () => {
    const message = "Service has no package";
    assert.throws(() => mount(serviceIn(""), {}, { access: "public" }), { name: "TypeError", message });
  });
});

interface Rules {
  readonly capabilities: Capability[];
  readonly unscoped: boolean;
}

// A service whose one method has the options of Arbor's own protos.
function declareAnnotated(
  rules: Rules,
  { path, clientStreaming = false }: { path?: string; clientStreaming?: boolean } = {},
) {
  const options = create(MethodOptionsSchema);
  setExtension(options, iam, create(IAMSchema, { mode: { case: "enabled", value: rules } }));
  if (path) setExtension(options, http, create(HttpRuleSchema, { pattern: { case: "get", value: path } }));
  return serviceIn("some", { options, clientStreaming });
}

function serviceIn(packageName: string, method: object = {}): DescService {
  const empty = ".google.protobuf.Empty";
  const file = create(FileDescriptorProtoSchema, {
    name: "some.proto",
    package: packageName,
    syntax: "proto3",
    dependency: ["google/protobuf/empty.proto"],
    service: [{ name: "Service", method: [{ name: "Do", inputType: empty, outputType: empty, ...method }] }],
  });
  const registry = createFileRegistry(file, () => file_google_protobuf_empty);
  const service = registry.getService(packageName === "" ? "Service" : `${packageName}.Service`);
  assert.ok(service);
  return service;
}
