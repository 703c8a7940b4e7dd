// The trace of a request from its arrival to the commit, over each protocol, in a collector of its own.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import type { BootstrapResult } from "../../src/iam/operator/bootstrap.js";
import { createLogger } from "../../src/telemetry/logger.js";
import { ask, queryOf } from "../issuer/sts/ask.js";
import { type Harness, startHarness } from "../support/harness.js";
import { type OidcProvider, startOidcProvider } from "../support/oidc-provider.js";
import { type CollectedSpan, formatTraces, type OtlpCollector, startOtlpCollector } from "../support/otlp-collector.js";
import { withVariables } from "../support/variables.js";

const SERVICE = "chainguard.platform.iam.v2beta1.GroupsService";
const UPDATE = `${SERVICE}/UpdateGroup`;
const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN_ID = "00f067aa0ba902b7";

let collector: OtlpCollector;
let provider: OidcProvider;
let harness: Harness;
let owner: BootstrapResult & { readonly token: string };
before(async () => {
  collector = await startOtlpCollector();
  provider = await startOidcProvider();
  const variables = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint, OTEL_BSP_SCHEDULE_DELAY: "50" };
  harness = await withVariables(variables, () => startHarness({ trustedIssuers: provider.issuer }));
  owner = await harness.organisation("acme.example");
});
after(async () => {
  await harness.stop();
  await provider.stop();
  await collector.stop();
});

function spanOf(trace: readonly CollectedSpan[], name: string): CollectedSpan {
  const found = trace.find((span) => span.name === name);
  assert.ok(found !== undefined, `there is no span ${name} in\n${formatTraces(trace)}`);
  return found;
}

/** The names of the spans with those of their parents. */
function edgesOf(trace: readonly CollectedSpan[]): string[] {
  const nameOf = (id: string) => trace.find(({ spanId }) => spanId === id)?.name ?? "";
  return trace.map(({ name, parentSpanId }) => `${nameOf(parentSpanId)} > ${name}`).sort();
}

const WRITE = (rpc: string) => [
  ` > ${rpc}`,
  `${rpc} > authenticate`,
  `${rpc} > write transaction`,
  "group commit > COMMIT",
  "write transaction > group commit",
];

const patch = (uid: string, description: string, headers: Readonly<Record<string, string>> = {}) =>
  ask(harness.url, `/iam/v2beta1/groups/${uid}`, {
    method: "PATCH",
    json: { description },
    bearer: owner.token,
    headers,
  });

/** The spans of the last trace whose first span has this id of a request. */
async function traceOf(requestId: string): Promise<readonly CollectedSpan[]> {
  for (let tries = 0; tries < 100; tries++) {
    const root = collector.spans.find(({ attributes }) => attributes["arbor.request_id"] === requestId);
    if (root !== undefined) return collector.spans.filter(({ traceId }) => traceId === root.traceId);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`no span of ${requestId} among\n${formatTraces(collector.spans)}`);
}

test("REST: a PATCH from its arrival to the commit", async (t) => {
  const response = await patch(owner.group, "by REST", { "x-request-id": "rest-1" });
  assert.equal(response.status, 200);
  const trace = await traceOf("rest-1");
  t.diagnostic(`\n${formatTraces(trace)}`);
  assert.deepEqual(edgesOf(trace), WRITE(UPDATE).sort());
  const { kind, failed, attributes } = spanOf(trace, UPDATE);
  const { "http.route": route, "client.address": address, ...rest } = attributes;
  assert.deepEqual([kind, failed, route, address], [2, false, "/iam/v2beta1/groups/{group.uid=**}", "127.0.0.1"]);
  assert.deepEqual(rest, {
    "arbor.protocol": "rest",
    "arbor.request_id": "rest-1",
    "rpc.service": SERVICE,
    "rpc.method": "UpdateGroup",
    "http.request.method": "PATCH",
    "http.response.status_code": 200,
    "network.protocol.version": "1.1",
  });
  const exported = formatTraces(trace);
  for (const secret of [owner.group, owner.token, "by REST"]) assert.ok(!exported.includes(secret), exported);
});

test("the span of a rejected call has the reason of the access log", async () => {
  const response = await fetch(`${harness.url}/iam/v2beta1/groups`, { headers: { "x-request-id": "rejected-1" } });
  assert.equal(response.status, 401);
  const { attributes } = spanOf(await traceOf("rejected-1"), `${SERVICE}/ListGroups`);
  assert.equal(attributes["arbor.reason"], "token_missing");
});

const protocols = [
  ["gRPC", "grpc", (baseUrl: string) => createGrpcTransport({ baseUrl })],
  ["gRPC-Web", "grpc", (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
  ["Connect", "connect_rpc", (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
] as const;

for (const [name, system, transport] of protocols) {
  const id = name.toLowerCase();

  test(`${name}: the same spans, for success and failure`, async (t) => {
    const client = createClient(GroupsService, transport(harness.url));
    const headers = (requestId: string) => ({
      authorization: `Bearer ${owner.token}`,
      "x-request-id": requestId,
    });
    await client.updateGroup(
      { group: { uid: owner.group, description: `by ${name}` }, updateMask: { paths: ["description"] } },
      { headers: headers(`${id}-1`) },
    );
    const trace = await traceOf(`${id}-1`);
    t.diagnostic(`\n${formatTraces(trace)}`);
    assert.deepEqual(edgesOf(trace), WRITE(UPDATE).sort());
    const { attributes } = spanOf(trace, UPDATE);
    assert.deepEqual([attributes["rpc.system"], attributes["arbor.protocol"]], [system, id]);
    if (system === "grpc") assert.equal(attributes["rpc.grpc.status_code"], 0);

    const missing = `${owner.group}/${"0".repeat(16)}`;
    const failing = client.getGroup({ uid: missing }, { headers: headers(`${id}-2`) });
    await assert.rejects(failing, (error) => error instanceof ConnectError && error.code === Code.NotFound);
    const failed = await traceOf(`${id}-2`);
    assert.deepEqual(
      [`${SERVICE}/GetGroup`, "read transaction"].map((span) => spanOf(failed, span).attributes["error.type"]),
      ["NOT_FOUND", "NOT_FOUND"],
    );
    const { failed: isFault, attributes: result } = spanOf(failed, `${SERVICE}/GetGroup`);
    assert.equal(isFault, false);
    const code = system === "grpc" ? result["rpc.grpc.status_code"] : result["rpc.connect_rpc.error_code"];
    assert.equal(code, system === "grpc" ? Code.NotFound : "not_found");
    assert.equal(spanOf(failed, "authenticate").attributes["error.type"], undefined);
  });

  test(`${name}: a caller that is not authenticated`, async () => {
    const client = createClient(GroupsService, transport(harness.url));
    const headers = { authorization: "Bearer nothing", "x-request-id": `${id}-3` };
    await assert.rejects(client.getGroup({ uid: owner.group }, { headers }));
    const trace = await traceOf(`${id}-3`);
    assert.deepEqual(edgesOf(trace), [` > ${SERVICE}/GetGroup`, `${SERVICE}/GetGroup > authenticate`]);
    assert.deepEqual(
      trace.map(({ attributes }) => attributes["error.type"]),
      ["UNAUTHENTICATED", "UNAUTHENTICATED"],
    );
  });
}

test("a caller's trace continues, and stands in the audit log", async () => {
  const traceparent = `00-${TRACE_ID}-${SPAN_ID}-01`;
  assert.equal((await patch(owner.group, "traced", { traceparent, "x-request-id": "caller-1" })).status, 200);
  const trace = await traceOf("caller-1");
  const { traceId, parentSpanId } = spanOf(trace, UPDATE);
  assert.deepEqual([traceId, parentSpanId], [TRACE_ID, SPAN_ID]);
  const [row] = await harness.app.installation.store.read((tx) => tx.audit.listNewest(1));
  assert.deepEqual([row?.requestId, row?.traceId, row?.version], ["caller-1", TRACE_ID, 3]);
});

test("a traceparent that is malformed, or one of several, is ignored", async () => {
  const good = `00-${TRACE_ID}-${SPAN_ID}-01`;
  const fields = [
    good.toUpperCase(),
    `${good}-00`,
    `ff${good.slice(2)}`,
    `00-${"0".repeat(32)}-${SPAN_ID}-01`,
    `00-${TRACE_ID}-${"0".repeat(16)}-01`,
    `${good}, ${good}`,
    "",
  ];
  for (const [i, traceparent] of fields.entries()) {
    await patch(owner.group, `malformed ${i}`, { traceparent, "x-request-id": `malformed-${i}` });
    const { traceId, parentSpanId } = spanOf(await traceOf(`malformed-${i}`), UPDATE);
    assert.notEqual(traceId, TRACE_ID, traceparent);
    assert.equal(parentSpanId, "", traceparent);
  }
});

test("a request to an OpenID Provider continues the trace of its call", async (t) => {
  const { uid } = await harness.identity(
    { relation: 1, relationship: { claimMatch: { issuer: provider.issuer, subject: "ann" } } },
    owner.group,
  );
  const bearer = await provider.signIdToken({ sub: "ann", aud: harness.url });
  const query = queryOf({ aud: harness.url, identity: uid });
  const response = await ask(harness.url, `/sts/exchange?${query}`, { bearer, headers: { "x-request-id": "sts-1" } });
  assert.equal(response.status, 200, response.text);
  const trace = await traceOf("sts-1");
  t.diagnostic(`\n${formatTraces(trace)}`);
  const root = trace.find(({ parentSpanId }) => parentSpanId === "");
  const requests = trace.filter(({ name }) => name === "GET");
  assert.deepEqual(provider.requests, ["/.well-known/openid-configuration", "/jwks"]);
  assert.deepEqual(
    provider.traceparents,
    requests.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`),
  );
  for (const { parentSpanId } of requests) assert.equal(parentSpanId, root?.spanId);
});

test("a page is named by its route, and probes have no span", async () => {
  const before = collector.spans.length;
  for (const path of ["/healthz", "/readyz", "/nothing/here", "/docs"]) await fetch(harness.url + path);
  const page = await fetch(`${harness.url}/oauth/callback/secret-name?state=secret`, {
    headers: { "x-request-id": "page-1" },
  });
  assert.ok(page.status >= 400);
  const trace = await traceOf("page-1");
  assert.deepEqual(spanOf(trace, "GET /oauth/callback/*").attributes["http.route"], "/oauth/callback/*");
  assert.deepEqual(
    collector.spans.slice(before).map(({ name }) => name),
    ["GET /oauth/callback/*"],
  );
});

test("without traces the audit log has the caller's trace", async () => {
  const before = collector.spans.length;
  const off = await withVariables({}, () => startHarness());
  try {
    const { group, token } = await off.organisation("off.example");
    const rename = (description: string, headers: Readonly<Record<string, string>>) =>
      ask(off.url, `/iam/v2beta1/groups/${group}`, { method: "PATCH", json: { description }, bearer: token, headers });
    const traceOfLastRow = async () =>
      (await off.app.installation.store.read((tx) => tx.audit.listNewest(1)))[0]?.traceId;
    await rename("1", { traceparent: `00-${TRACE_ID}-${SPAN_ID}-00` });
    assert.equal(await traceOfLastRow(), TRACE_ID);
    await rename("2", { traceparent: `00-${TRACE_ID}-${SPAN_ID}` });
    assert.equal(await traceOfLastRow(), "");
    await rename("3", {});
    assert.equal(await traceOfLastRow(), "");
  } finally {
    await off.stop();
  }
  assert.equal(collector.spans.length, before);
});

test("the access log has the trace of a request", async () => {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger("info", { write: (line) => void lines.push(JSON.parse(line)) });
  const variables = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint };
  const logged = await withVariables(variables, () => startHarness({ accessLog: true }, { logger }));
  try {
    await fetch(`${logged.url}/iam/v2beta1/groups`, { headers: { "x-request-id": "logged-1" } });
  } finally {
    await logged.stop();
  }
  const trace = await traceOf("logged-1");
  assert.equal(trace.length, 2);
  const requests = lines.filter(({ msg }) => msg === "request");
  assert.deepEqual(
    requests.map(({ requestId, traceId, trace: span }) => [requestId, traceId, span]),
    [["logged-1", trace[0]?.traceId, undefined]],
  );
});
