// A mounted service as JSON over HTTP, by rules that are given where it is mounted, and where it is described.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.js";
import { Health, HealthCheckResponse_ServingStatus } from "#gen/health/v1/health_pb.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { Library } from "../../support/library/library.js";
import { LibraryService } from "../../support/library/library_pb.js";
import { mountLibrary } from "../../support/library/mounted.js";
import { operationsOf } from "../../support/openapi/document.js";
import { readDocument } from "../../support/openapi/request.js";
import { requestH1, requestH2, type Sent } from "../../support/requests.js";

const TIME = "2023-11-14T22:13:20.123456789Z";

interface Row extends Sent {
  readonly reason: string;
  readonly status?: number;
  readonly text: string;
  /** Headers of the response. */
  readonly fields?: Readonly<Record<string, string | string[]>>;
}

const json = { "content-type": "application/json" };
const buildError = (code: number, message: string, details = "") =>
  `{"code":${code},"message":"${message}","details":[${details}]}`;
const reviewed = '{"@type":"type.googleapis.com/example.library.extra.v1.Review","stars":"9007199254740993"}';

const rows: readonly Row[] = [
  {
    reason: "a book",
    path: "/library/v1/books/a",
    text: `{"name":"books/a","title":"The books/a","publishTime":"${TIME}","extra":{"@type":"type.googleapis.com/example.library.v1.Binding","material":"linen"},"pages":0}`,
  },
  { reason: "an additional binding, and response_body", path: "/library/v1/books/a:title", text: '"The books/a"' },
  {
    reason: "a body, with a type of the registry and one of the service's own",
    method: "POST",
    path: "/library/v1/books",
    headers: json,
    body: `{"name":"books/b","extra":${reviewed},"shelf":{"group":"g"}}`,
    text: `{"name":"books/b","title":"","extra":${reviewed},"shelf":{"group":"g"}}`,
  },
  { reason: "nothing to say", method: "DELETE", path: "/library/v1/books/b", text: "" },
  {
    reason: "a stream",
    path: "/library/v1/groups/g/h/books?count=2",
    text: [1, 2]
      .map(
        (n) =>
          `{"result":{"name":"books/${n}","title":"","publishTime":"1970-01-01T00:00:00.00${n}Z","group":"g/h"}}\n`,
      )
      .join(""),
    fields: { "content-type": "application/x-ndjson", "x-header": "h" },
  },
  {
    reason: "headers and trailers",
    path: "/library/v1/books/headers",
    headers: { "x-ask": "why" },
    text: '{"name":"books/headers","title":""}',
    fields: { "x-asked": "why", "x-many": "1, 2", "set-cookie": ["a=1", "b=2"], "trailer-x-trailer": "t" },
  },
  {
    reason: "an error with a text, details and metadata",
    path: "/library/v1/books/none",
    status: 404,
    text: buildError(
      5,
      "no such book: 50% of ü",
      '{"@type":"type.googleapis.com/example.library.v1.Binding","material":"dust"}',
    ),
    fields: { "x-why": "lost" },
  },
  { reason: "an unexpected error", path: "/library/v1/books/bug", status: 500, text: buildError(13, "internal error") },
  {
    reason: "an INTERNAL text",
    path: "/library/v1/books/internal",
    status: 500,
    text: buildError(13, "the shelf fell"),
  },
  { reason: "an error alone", path: "/library/v1/books/plain-error", status: 429, text: buildError(8, "") },
  {
    reason: "the context",
    path: "/library/v1/books/context",
    text: '{"name":"books/context","title":"example.library.v1.LibraryService GetBook GET rest /library/v1/books/context false number"}',
  },
];

describe("a mounted service as JSON over HTTP", () => {
  let service: Harness;
  const port = () => Number(new URL(service.url).port);
  before(async () => {
    service = await startHarness({}, { mounts: [mountLibrary(new Library())] });
  });
  after(() => service?.stop());

  for (const [version, send] of Object.entries({ "http/1.1": requestH1, h2: requestH2 })) {
    for (const { reason, status = 200, text, fields = {}, ...sent } of rows) {
      test(`${version}: ${reason}`, async () => {
        const got = await send(port(), sent);
        assert.deepEqual([got.status, got.text], [status, text]);
        for (const [name, value] of Object.entries(fields)) assert.deepEqual(got.headers[name], value, name);
      });
    }
  }

  test("a stream that fails ends with its error and without its end", async () => {
    const response = await fetch(`${service.url}/library/v1/groups/g/books?count=-1`);
    let text = "";
    const read = async () => {
      for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString();
    };
    await assert.rejects(read);
    const error = buildError(15, "torn", '{"@type":"type.googleapis.com/example.library.v1.Binding"}');
    assert.ok(text.endsWith(`{"error":${error}}\n`), text);
  });

  test("requests that its rules do not allow are answered as for any service", async () => {
    const wrong = { method: "POST", path: "/library/v1/books", headers: json, body: '{"pages":"many"}' };
    const { status, text } = await requestH1(port(), wrong);
    assert.equal(status, 400);
    assert.match(text, /"field":"pages"/);
    assert.match(text, /google\.rpc\.ErrorInfo/);
    assert.equal((await requestH1(port(), { method: "PUT", path: "/library/v1/books" })).status, 405);
  });

  test("health, reflection and the OpenAPI document name it", async () => {
    const transport = createGrpcTransport({ baseUrl: service.url });
    const { status } = await createClient(Health, transport).check({ service: LibraryService.typeName });
    assert.equal(status, HealthCheckResponse_ServingStatus.SERVING);
    async function* ask() {
      yield { messageRequest: { case: "fileContainingSymbol", value: `${LibraryService.typeName}.Ask` } } as const;
    }
    for await (const { messageResponse } of createClient(ServerReflection, transport).serverReflectionInfo(ask())) {
      assert.equal(messageResponse.case, "fileDescriptorResponse");
    }
    const operations = operationsOf(await readDocument(service.url));
    const own = operations.filter(({ tags }) => tags.includes(LibraryService.typeName));
    assert.deepEqual(
      own.map(({ method, path, security }) => [method, path, security]),
      [
        ["GET", "/library/v1/books/{name}", []],
        ["DELETE", "/library/v1/books/{name}", []],
        ["GET", "/library/v1/books/{name}:title", []],
        ["POST", "/library/v1/books", []],
        ["GET", "/library/v1/groups/{group}/books", []],
      ],
    );
  });
});
