// The judge of the fuzz test finds what it is there to find.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ApiDocument, createValidators, operationsOf } from "../support/openapi/document.js";
import { groupsDocument, signInDocument } from "../support/openapi/documents.js";
import type { FuzzRequest } from "./fuzz-request.js";
import { createJudge, type FuzzResponse } from "./fuzz-response.js";

const judge = judgeOf(groupsDocument());

function judgeOf(document: ApiDocument) {
  return createJudge({ operations: operationsOf(document), validators: createValidators(document) });
}

const GET: FuzzRequest = { method: "GET", path: "/iam/v2beta1/groups/0a", headers: {}, body: undefined };
const GROUP = { uid: "0a".repeat(20), name: "a", description: "", resourceLimits: {}, verified: false };
const INFO = { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "NOT_FOUND", domain: "iam.127.0.0.1" };
const error = (code: number, ...details: object[]) => ({ code, message: "Not found: group: a", details });

const invalid = (field: string) =>
  error(
    3,
    { ...INFO, reason: "INVALID_ARGUMENT" },
    {
      "@type": "type.googleapis.com/google.rpc.BadRequest",
      fieldViolations: [{ field, description: `${field} must be better` }],
    },
  );

function answer(status: number, body: unknown, headers: FuzzResponse["headers"] = {}): FuzzResponse {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return { status, headers: { "x-content-type-options": "nosniff", ...headers }, bytes: Buffer.from(text) };
}

const rows: readonly {
  request?: Partial<FuzzRequest>;
  answer: FuzzResponse;
  fault: RegExp | undefined;
  reason: string;
}[] = [
  { answer: answer(200, GROUP), fault: undefined, reason: "a group" },
  { answer: answer(404, error(5, INFO)), fault: undefined, reason: "an error" },
  { answer: answer(200, { ...GROUP, secret: "x" }), fault: /additional/, reason: "a property nobody knows of" },
  { answer: answer(200, { ...GROUP, verified: undefined }), fault: /required/, reason: "a property that is missing" },
  {
    answer: answer(200, { ...GROUP, createTime: "2026-01-31T12:00:00Z" }),
    fault: /date-time/,
    reason: "no milliseconds",
  },
  { answer: answer(200, "<html>"), fault: /no JSON/, reason: "something else" },
  { answer: answer(500, error(13, INFO)), fault: /status 500/, reason: "the service's own fault" },
  { answer: answer(501, error(12, INFO)), fault: /status 501/, reason: "something that should be done" },
  { answer: answer(404, error(5)), fault: /contain/, reason: "an error without ErrorInfo" },
  { answer: answer(404, ""), fault: /object/, reason: "an error without a body" },
  { answer: answer(400, error(5, INFO)), fault: /status 400 for code 5/, reason: "the status of another code" },
  { answer: answer(404, error(5, { ...INFO, domain: "x" })), fault: /another domain/, reason: "another domain" },
  {
    answer: answer(
      404,
      error(5, INFO, { "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations: [{}], x: 1 }),
    ),
    fault: /anyOf/,
    reason: "a detail that is not as its type says",
  },
  { answer: answer(400, invalid("uid")), fault: undefined, reason: "an error about a field of the request" },
  { answer: answer(400, invalid("body")), fault: undefined, reason: "an error about the body" },
  { answer: answer(400, invalid("groupUid")), fault: /no field of the request/, reason: "about a field it has not" },
  {
    request: { path: "/iam/v2beta1/groups" },
    answer: answer(400, invalid("page_size")),
    fault: /no field of the request/,
    reason: "about a field by its name in the proto",
  },
  { answer: answer(200, { ...GROUP, name: "at /home/arbor/src/a.ts:3" }), fault: /inside/, reason: "a path of a file" },
  { answer: answer(404, "SQLITE_BUSY: database is locked"), fault: /inside/, reason: "words of the database" },
  {
    request: { headers: { authorization: `Bearer ${"0a".repeat(20)}` } },
    answer: answer(200, { ...GROUP, description: `not ${"0a".repeat(20)}` }),
    fault: /echoes/,
    reason: "the token of the caller",
  },
  { answer: answer(200, GROUP, { "x-content-type-options": undefined }), fault: /x-content/, reason: "no nosniff" },
  { request: { path: "/iam/v2beta1/groups/0a/" }, answer: answer(200, GROUP), fault: undefined, reason: "any uid" },
  { request: { path: "/iam/v9/x" }, answer: answer(200, GROUP), fault: /does not speak of/, reason: "no such path" },
  { request: { path: "/v9.Groups/Get" }, answer: answer(404, { code: "x" }), fault: undefined, reason: "RPC" },
  { request: { path: "/v9.Groups/Get" }, answer: answer(500, {}), fault: /status 500/, reason: "RPC that fails" },
  { request: { path: "/v9/Groups" }, answer: answer(404, { code: "x" }), fault: /required/, reason: "no RPC" },
  { request: { method: "PUT" }, answer: answer(200, GROUP), fault: /does not speak of/, reason: "no such method" },
  { request: { method: "DELETE" }, answer: answer(200, ""), fault: undefined, reason: "an answer without a body" },
  { request: { method: "DELETE" }, answer: answer(200, {}), fault: /a body/, reason: "a body where there is none" },
  { request: { method: "HEAD" }, answer: answer(200, ""), fault: undefined, reason: "HEAD of what can be read" },
  { request: { method: "HEAD" }, answer: answer(200, GROUP), fault: /HEAD/, reason: "HEAD with a body" },
  { request: { method: "OPTIONS" }, answer: answer(204, ""), fault: undefined, reason: "nothing to say" },
  { answer: answer(204, ""), fault: /204/, reason: "nothing to say where there should be" },
];
for (const { request, answer: given, fault, reason } of rows) {
  test(`${request?.method ?? "GET"} ${given.status}: ${reason}`, () => {
    const verdict = judge({ ...GET, ...request }, given);
    if (fault === undefined) assert.equal(verdict.fault, undefined);
    else assert.match(verdict.fault ?? "none", fault);
  });
}

const reached: readonly { code: number; status: number; details: object[]; is: boolean; reason: string }[] = [
  { code: 9, status: 400, details: [], is: true, reason: "the state of things" },
  { code: 10, status: 409, details: [], is: true, reason: "a conflict" },
  { code: 3, status: 400, details: [], is: false, reason: "perhaps only read" },
  { code: 7, status: 403, details: [], is: false, reason: "not allowed" },
  { code: 5, status: 404, details: [], is: false, reason: "no such path" },
  {
    code: 5,
    status: 404,
    details: [{ "@type": "type.googleapis.com/google.rpc.ResourceInfo", resourceType: "t" }],
    is: true,
    reason: "no such thing",
  },
];
for (const { code, status, details, is, reason } of reached) {
  test(`code ${code} ${is ? "comes" : "does not come"} from a handler: ${reason}`, () => {
    assert.deepEqual(judge(GET, answer(status, error(code, INFO, ...details))).reached, is);
  });
}

const TOKEN = { token: "t", refreshToken: "", expiry: "2026-01-31T12:00:00.000Z" };
const credentials: readonly { headers: FuzzResponse["headers"]; body: object; fault: RegExp | undefined }[] = [
  { headers: { "cache-control": "no-store" }, body: TOKEN, fault: undefined },
  { headers: {}, body: TOKEN, fault: /may be kept/ },
  { headers: { "cache-control": "no-store" }, body: { ...TOKEN, secret: "s" }, fault: /additional/ },
];
for (const { headers, body, fault } of credentials) {
  test(`an exchange, ${JSON.stringify(headers)}: ${fault ?? "as it should be"}`, () => {
    const request: FuzzRequest = { method: "POST", path: "/sts/exchange?aud=a", headers: {}, body: "scopes=0a" };
    const verdict = judgeOf(signInDocument())(request, answer(200, body, headers));
    if (fault === undefined) assert.deepEqual([verdict.fault, verdict.reached], [undefined, true]);
    else assert.match(verdict.fault ?? "none", fault);
  });
}
