// A service whose HTTP rules match every path, on the whole stack: RPC methods, the paths of operators and more exact
// routes come first, and everything else is its own.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Handler } from "../../src/pipeline/handlers.js";
import { methodWithRule } from "../support/feature/feature.js";
import { type FeatureStack, startFeatureStack } from "../support/feature/feature-service.js";
import { requestH1, requestH2, type Sent } from "../support/requests.js";

const everything = methodWithRule({
  pattern: { case: "get", value: "/{string_value=**}" },
  additionalBindings: [
    { pattern: { case: "get", value: "/" } },
    { pattern: { case: "post", value: "/**" }, body: "*" },
    { pattern: { case: "post", value: "/{string_value}/{optional_string}" }, body: "*" },
    { pattern: { case: "post", value: "/v1.0/{string_value}" }, body: "detail" },
  ],
});
const response = ({ stringValue, optionalString, detail, strings }: Record<string, unknown>) => ({
  uid: stringValue || "-",
  displayName: optionalString ?? "",
  ...(detail !== undefined && { detail }),
  count: (strings as unknown[]).length,
});

let stack: FeatureStack;
before(async () => {
  const handlers = { do: response as unknown as Handler };
  stack = await startFeatureStack([{ desc: everything.parent, handlers }]);
});
after(() => stack.stop());

const json = { "content-type": "application/json" };
const thing = /^\{"uid":"([^"]*)","displayName":"([^"]*)","count":(\d+)/;
const rpc = "/arbor.test.feature.FeatureService/GetThing";

const rows: readonly (Sent & { readonly status?: number; readonly is: string | RegExp; readonly reason: string })[] = [
  { path: "/", is: "- ", reason: "the root" },
  { path: "/anything", is: "anything ", reason: "one segment" },
  { path: "/a/b/c", is: "a/b/c ", reason: "many" },
  { path: "/bad.Service/Do", is: /Do takes POST/, status: 405, reason: "an RPC path that is served" },
  { path: "/other.Service/Do", is: "other.Service/Do ", reason: "one that is not" },
  { path: "/feature/v1/things/x", is: /"displayName":"thing x"/, reason: "a more exact route" },
  { path: "/healthz", is: /^(?!.*"uid")/, reason: "a path of operators" },
  {
    method: "POST",
    path: rpc,
    headers: json,
    body: '{"uid":"r"}',
    is: /"displayName":"thing r"/,
    reason: "an RPC call",
  },
  { method: "POST", path: "/a.b/c", headers: json, body: "{}", is: "a.b c", reason: "two segments that look like RPC" },
  {
    method: "POST",
    path: "/pkg.Service/No",
    headers: json,
    body: "{}",
    is: "pkg.Service No",
    reason: "no such method",
  },
  { method: "POST", path: "/v1.0/x", headers: json, body: "{}", is: "x ", reason: "a version with a dot" },
  { method: "POST", path: "/a/b/c", headers: json, body: '{"stringValue":"s"}', is: "s ", reason: "POST of any path" },
  {
    method: "POST",
    path: "/pkg.Service/No",
    headers: { "content-type": "application/grpc-web+proto" },
    is: "",
    reason: "gRPC of an unknown method",
  },
  {
    path: `/many?${Array.from({ length: 1024 }, (_, i) => `strings=${i}`).join("&")}`,
    is: "many  1024",
    reason: "1,024 query values",
  },
  {
    path: `/many?${Array.from({ length: 1025 }, () => "strings=a").join("&")}`,
    status: 400,
    is: /at most 1024 parameters are allowed/,
    reason: "and one more",
  },
];

for (const { is, status = 200, reason, ...sent } of rows) {
  for (const [protocol, request] of [["h1", requestH1] as const, ["h2", requestH2] as const]) {
    test(`${protocol}: ${sent.method ?? "GET"} ${sent.path.slice(0, 40)}: ${reason}`, async () => {
      const { status: got, text } = await request(stack.port, sent);
      assert.equal(got, status, text);
      if (is instanceof RegExp) assert.match(text, is);
      else if (is === "") assert.equal(text, "");
      else {
        const [, uid, name, count] = thing.exec(text) ?? [];
        assert.equal(is.split(" ").length > 2 ? `${uid} ${name} ${count}` : `${uid} ${name}`, is, text);
      }
    });
  }
}
