// A mounted service and the same service served by connect-node alone answer alike, over every protocol that both
// speak: messages, headers, trailers, and errors with their codes, texts and details.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create, createRegistry, toBinary, toJson } from "@bufbuild/protobuf";
import { type Client, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { mount } from "../../../src/pipeline/mount.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { file_extra } from "../../support/library/extra_pb.js";
import { Library, startReference } from "../../support/library/library.js";
import { BookSchema, file_library, LibraryService } from "../../support/library/library_pb.js";

type LibraryClient = Client<typeof LibraryService>;

const registry = createRegistry(file_library, file_extra);

const transportsTo: Readonly<Record<string, (baseUrl: string) => Transport>> = {
  connect: (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: true }),
  "connect JSON": (baseUrl) =>
    createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: false, jsonOptions: { registry } }),
  "connect GET": (baseUrl) =>
    createConnectTransport({
      baseUrl,
      httpVersion: "2",
      useHttpGet: true,
      useBinaryFormat: false,
      jsonOptions: { registry },
    }),
  "grpc-web": (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2" }),
  "grpc-web JSON": (baseUrl) =>
    createGrpcWebTransport({ baseUrl, httpVersion: "2", useBinaryFormat: false, jsonOptions: { registry } }),
  grpc: (baseUrl) => createGrpcTransport({ baseUrl }),
  "grpc JSON": (baseUrl) => createGrpcTransport({ baseUrl, useBinaryFormat: false, jsonOptions: { registry } }),
};

type Call = (client: LibraryClient, options: object) => Promise<readonly object[]>;

const get =
  (name: string): Call =>
  async (client, options) => [await client.getBook({ name }, options)];
const list =
  (group: string, count: number): Call =>
  (client, options) =>
    all(client.listBooks({ group, count }, options));

const withUnknownField = create(BookSchema, { name: "books/new", title: "t" });
withUnknownField.$unknown = [{ no: 99, wireType: 0, data: new Uint8Array([7]) }];

const calls: Readonly<Record<string, Call>> = {
  "a book": get("books/a"),
  "a write": async (client, options) => [await client.createBook({ book: { name: "books/b", title: "B" } }, options)],
  "an unknown field": async (client, options) => [await client.createBook({ book: withUnknownField }, options)],
  "an empty answer": async (client, options) => [await client.deleteBook({ name: "books/b" }, options)],
  "a code, a text, details and metadata": get("books/none"),
  "an error without a text": get("books/plain-error"),
  "an unexpected error": get("books/bug"),
  "a thrown text": get("books/text"),
  "an INTERNAL text": get("books/internal"),
  "an error made of another": get("books/wrapped"),
  "an answer that cannot be written": get("books/invalid"),
  "headers and trailers": get("books/headers"),
  "headers and trailers of an error": get("books/failing-headers"),
  "the context": get("books/context"),
  "a type of the registry": get("books/reviewed"),
  "a rejected write": async (client, options) => [await client.createBook({}, options)],
  "a stream": list("g", 3),
  "an empty stream": list("g", 0),
  "a stream that fails": list("g", -2),
  "a stream that ends in an unexpected error": list("bug", 1),
  "a stream of requests": async (client, options) => [await client.returnBooks(books("a", "b", "c"), options)],
  "a stream of requests that is rejected": async (client, options) => [
    await client.returnBooks(books("", "b"), options),
  ],
  "both streams": (client, options) => all(client.ask(questions("a", "b"), options)),
  "both streams, and an unexpected error": (client, options) => all(client.ask(questions("a", "why?"), options)),
};

describe("a mounted service answers as connect-node does", () => {
  const clients: Record<string, readonly [reference: LibraryClient, mounted: LibraryClient]> = {};
  let reference: Awaited<ReturnType<typeof startReference>>;
  let service: Harness;

  before(async () => {
    reference = await startReference(new Library(), { jsonOptions: { registry } });
    const mounts = [mount(LibraryService, new Library(), { access: "public", registry: createRegistry(file_extra) })];
    service = await startHarness({}, { mounts });
    for (const [name, transportTo] of Object.entries(transportsTo)) {
      const clientOf = (url: string) => createClient(LibraryService, transportTo(url));
      clients[name] = [clientOf(reference.url), clientOf(service.url)];
    }
  });
  after(async () => {
    await service?.stop();
    await reference?.stop();
  });

  for (const protocol of Object.keys(transportsTo)) {
    for (const [what, call] of Object.entries(calls)) {
      test(`${protocol}: ${what}`, async () => {
        const [expected, got] = clients[protocol] ?? [];
        assert.ok(expected && got);
        const outcome = await outcomeOf(got, call);
        assert.deepEqual(outcome, await outcomeOf(expected, call));
        assert.doesNotMatch(JSON.stringify(outcome), /secret/);
      });
    }
  }
});

// All that a caller sees but for what names the server or the moment.
async function outcomeOf(client: LibraryClient, call: Call) {
  const seen: Record<string, unknown> = {};
  const options = {
    headers: { "x-ask": "why" },
    onHeader: (headers: Headers) => {
      seen.headers = ownFields(headers);
    },
    onTrailer: (trailers: Headers) => {
      seen.trailers = ownFields(trailers);
    },
  };
  try {
    const messages = await call(client, options);
    return { ...seen, messages: messages.map((message) => describeMessage(message as { $typeName: string })) };
  } catch (error) {
    const { code, rawMessage, details, metadata } = ConnectError.from(error);
    const binary = details.map((detail) => ("type" in detail ? [detail.type, [...detail.value]] : detail));
    return { ...seen, code, rawMessage, details: binary, metadata: ownFields(metadata) };
  }
}

function describeMessage(message: { readonly $typeName: string }) {
  const desc = registry.getMessage(message.$typeName);
  if (desc === undefined) return message;
  return [toJson(desc, message as never, { registry }), Buffer.from(toBinary(desc, message as never)).toString("hex")];
}

function ownFields(headers: Headers): string[] {
  return [...headers]
    .filter(([name]) => (name.startsWith("x-") && name !== "x-request-id") || name === "set-cookie")
    .map((field) => field.join(": "));
}

async function all(messages: AsyncIterable<object>): Promise<object[]> {
  const read: object[] = [];
  for await (const message of messages) read.push(message);
  return read;
}

async function* books(...names: string[]) {
  for (const name of names) yield { name };
}

async function* questions(...texts: string[]) {
  for (const text of texts) yield { text };
}
