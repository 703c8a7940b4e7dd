import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { Metadata } from "@grpc/grpc-js";
import { GetGroupRequestSchema } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { BadRequestSchema, ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.js";
import { createLogger } from "../../src/telemetry/logger.js";
import { Gateway } from "../../src/transport/rest/gateway.js";
import { sample } from "../support/scale.js";
import {
  createMethods,
  DOMAIN,
  frame,
  GrpcJs,
  groupsClient,
  openHttp2,
  type Running,
  rawHttp2,
  SERVICE,
  startServer,
  TLS,
  TRICKY_TEXT,
  transports,
} from "./harness.js";

const MIB = 1024 * 1024;
const TRICKY_MESSAGE = `Invalid argument: uid: ${TRICKY_TEXT}`;

const PORTS = [
  ["cleartext", {}],
  ["TLS", { tls: TLS }],
] as const;

for (const [name, options] of PORTS) {
  describe(`one ${name} port`, () => {
    let server: Running;
    before(async () => {
      // Nobody knows these callers, and some bodies are larger than what such callers have together.
      server = await startServer({ ...options, limits: { unknownBytes: 256 * MIB, requestBufferBytes: 256 * MIB } });
    });
    after(() => server.stop());

    for (const [index, [protocol]] of transports("http://unused").entries()) {
      const client = () => {
        const transport = transports(server.url)[index];
        assert.ok(transport);
        return groupsClient(transport[1]);
      };

      it(`${protocol}: answers`, async () => {
        const group = await client().getGroup({ uid: "u1" });
        assert.equal(group.uid, "u1");
        assert.equal(group.name, "core");
      });

      it(`${protocol}: errors keep text and details`, async () => {
        const error = await rejection(client().getGroup({ uid: "tricky" }));
        assert.equal(error.code, Code.InvalidArgument);
        assert.equal(error.rawMessage, TRICKY_MESSAGE);
        assert.deepEqual(
          error.findDetails(ErrorInfoSchema).map(({ reason, domain }) => ({ reason, domain })),
          [{ reason: "INVALID_ARGUMENT", domain: DOMAIN }],
        );
        assert.deepEqual(
          error.findDetails(BadRequestSchema).flatMap((d) => d.fieldViolations.map((v) => [v.field, v.description])),
          [["uid", TRICKY_TEXT]],
        );
      });

      it(`${protocol}: bugs say nothing`, async () => {
        const error = await rejection(client().getGroup({ uid: "bug" }));
        assert.equal(error.code, Code.Internal);
        assert.equal(error.rawMessage, "Internal: the service failed to handle the call");
      });

      it(`${protocol}: headers and trailers of a handler arrive, protocol fields stay`, async () => {
        let header = new Headers();
        let trailer = new Headers();
        const options = {
          onHeader(fields: Headers) {
            header = fields;
          },
          onTrailer(fields: Headers) {
            trailer = fields;
          },
        };
        const { eligible } = await client().checkEligibility({}, options);
        assert.equal(eligible, true);
        assert.equal(header.get("x-header"), "h");
        assert.equal(trailer.get("x-trailer"), "t");
      });

      it(`${protocol}: headers and trailers of a failing handler arrive`, async () => {
        for (const uid of ["fails", "fails without headers"]) {
          const error = await rejection(client().getGroup({ uid }));
          assert.equal(error.code, Code.NotFound);
          assert.equal(error.metadata.get("x-header"), uid === "fails" ? "h" : null);
          assert.equal(error.metadata.get("x-trailer"), "t");
          assert.equal(error.findDetails(ErrorInfoSchema)[0]?.reason, "NOT_FOUND");
        }
      });

      it(`${protocol}: says which protocol and how long the caller waits`, async () => {
        server.probe.calls = [];
        await client().getGroup({ uid: "u1" }, { timeoutMs: 25_000 });
        const [call] = server.probe.calls;
        assert.ok(call);
        assert.equal(call.protocolName, protocol.split(" ")[0]);
        assert.equal(call.inbound.remoteAddress, "127.0.0.1");
        assert.ok(call.deadlineMs - call.startMs <= 25_000, String(call.deadlineMs - call.startMs));
        assert.ok(call.deadlineMs - call.startMs > 0, String(call.deadlineMs - call.startMs));
      });

      it(`${protocol}: the longest deadline is no deadline of a millisecond`, async () => {
        const headers = protocol.startsWith("connect")
          ? { "connect-timeout-ms": "9999999999" }
          : { "grpc-timeout": "99999999H" };
        const group = await client().getGroup({ uid: "u1" }, { headers });
        assert.equal(group.uid, "u1");
      });

      // How large a body may be does not depend on the port, so each protocol is tried on one of them in turn.
      if (protocol.endsWith("GET") || !sample(PORTS, index).some(([one]) => one === name)) continue;

      it(`${protocol}: a body above 4 MiB is RESOURCE_EXHAUSTED`, async () => {
        const description = "x".repeat(4 * 1024 * 1024);
        const error = await rejection(client().createGroup({ group: { name: "n", description } }));
        assert.equal(error.code, Code.ResourceExhausted, error.message);
        assert.equal(error.findDetails(ErrorInfoSchema)[0]?.reason, "RESOURCE_EXHAUSTED");
      });

      it(`${protocol}: a body just below 4 MiB is taken`, async () => {
        const description = "x".repeat(4 * 1024 * 1024 - 100);
        const group = await client().createGroup({ group: { name: "n", description } });
        assert.equal(group.description, String(4 * 1024 * 1024 - 100));
      });
    }

    it("grpc-js: answers, and errors keep text and details", async () => {
      const client = new GrpcJs(server.url);
      const ok = await client.call("GetGroup", { uid: "u1" });
      assert.equal(ok.response?.name, "core");
      const error = await client.call("GetGroup", { uid: "tricky" });
      assert.equal(error.code, 3);
      assert.equal(error.details, TRICKY_MESSAGE);
      assert.ok(error.metadata.get("grpc-status-details-bin")[0]);
      client.close();
    });

    it("grpc: headers of a failing handler come before its status, and none comes twice", async () => {
      const session = openHttp2(server.url);
      const call = (uid: string) =>
        rawHttp2(session, { ":path": `${SERVICE}/GetGroup`, "content-type": "application/grpc" }, getRequest(uid));
      const both = await call("fails");
      assert.equal(both.headers["x-header"], "h");
      assert.equal(both.headers["grpc-status"], undefined);
      assert.deepEqual([both.trailers["grpc-status"], both.trailers["x-trailer"]], ["5", "t"]);
      assert.equal(both.rstCode, 0);
      const one = await call("fails without headers");
      assert.deepEqual([one.headers["grpc-status"], one.headers["x-trailer"]], ["5", "t"]);
      assert.deepEqual(one.trailers, {});
      session.destroy();
    });

    it("grpc-js: headers and trailers of a failing handler arrive", async () => {
      const client = new GrpcJs(server.url);
      const error = await client.call("GetGroup", { uid: "fails" });
      assert.equal(error.code, 5);
      assert.deepEqual(error.metadata.get("x-trailer"), ["t"]);
      assert.deepEqual(error.header.get("x-header"), ["h"]);
      client.close();
    });

    it("grpc-js with gzip goes through connect and keeps the text", async () => {
      const client = new GrpcJs(server.url, { "grpc.default_compression_algorithm": 2 });
      const ok = await client.call("ListGroups", { page_size: 200 });
      const groups = ok.response?.groups;
      assert.equal(Array.isArray(groups) && groups.length, 200);
      const error = await client.call("GetGroup", { uid: "tricky" });
      assert.equal(error.details, TRICKY_MESSAGE);
      client.close();
    });

    it("grpc-js: 300 calls at once on a fresh channel all succeed", async () => {
      const client = new GrpcJs(server.url);
      const codes = await Promise.all(Array.from({ length: 300 }, () => client.call("GetGroup", { uid: "u1" })));
      assert.deepEqual([...new Set(codes.map(({ code }) => code))], [0]);
      client.close();
    });

    it("grpc-js: ten answers of 4 MiB at once are no attack", async () => {
      const client = new GrpcJs(server.url, { "grpc.max_receive_message_length": 8 * 1024 * 1024 });
      const group = { uid: "u", name: "n", description: "x".repeat(4 * 1024 * 1024 - 100) };
      const all = await Promise.all(Array.from({ length: 10 }, () => client.call("UpdateGroup", { group })));
      assert.deepEqual([...new Set(all.map(({ code, details }) => `${code} ${details}`))], ["0 "]);
      client.close();
    });

    it("grpc-js: metadata reaches the handler", async () => {
      const client = new GrpcJs(server.url);
      const metadata = new Metadata();
      metadata.set("authorization", "Bearer abc");
      const { response } = await client.call("GetGroup", { uid: "u1" }, metadata);
      assert.equal(response?.description, "Bearer abc");
      client.close();
    });

    it("a body does not replace the request of a Connect GET", async () => {
      const session = openHttp2(server.url);
      const path = `${SERVICE}/GetGroup?connect=v1&encoding=json&message=${encodeURIComponent('{"uid":"u1"}')}`;
      const headers = { ":method": "GET", ":path": path, "content-type": "application/json" };
      const answer = await rawHttp2(session, headers, Buffer.from('{"uid":"u2"}'));
      assert.equal(JSON.parse(answer.body.toString()).uid, "u1");
      session.destroy();
    });

    it("REST goes to the gateway", async () => {
      const session = openHttp2(server.url);
      const answer = await rawHttp2(session, { ":method": "GET", ":path": "/iam/v2beta1/groups?name=a" });
      assert.deepEqual(JSON.parse(answer.body.toString()), { method: "GET", url: "/iam/v2beta1/groups?name=a" });
      session.destroy();
    });
  });
}

describe("a failure of the store while a caller is authenticated", () => {
  for (const [name, authenticateCaller] of [
    [
      "at once",
      () => {
        throw new Error("secret: the disk is gone");
      },
    ],
    ["later", () => Promise.reject(new Error("secret: the disk is gone"))],
  ] as const) {
    it(`${name} is INTERNAL over every protocol, and reported`, async () => {
      const lines: string[] = [];
      const logger = createLogger("info", { write: (line) => lines.push(line) });
      const shared = { authenticateCaller, clock: Date.now, errorDomain: DOMAIN };
      const failOnCall = async () => assert.fail("nothing is called");
      const table = createMethods({ calls: [], gate: Promise.resolve() });
      const server = await startServer({
        ...{ ...shared, invoke: failOnCall, logger },
        gateway: (serve) => new Gateway({ methods: table.values(), serve }),
      });
      const message = "Internal: the service failed to handle the call";
      for (const [protocol, transport] of transports(server.url)) {
        const error = await rejection(groupsClient(transport).getGroup({ uid: "u1" }));
        assert.deepEqual([error.code, error.rawMessage], [Code.Internal, message], protocol);
        assert.equal(error.findDetails(ErrorInfoSchema)[0]?.reason, "INTERNAL");
        assert.equal(lines.splice(0).filter((line) => line.includes("the disk is gone")).length, 1, protocol);
      }
      const rest = await fetch(`${server.url}/iam/v2beta1/groups/u1`);
      assert.deepEqual([rest.status, ((await rest.json()) as { message: string }).message], [500, message]);
      const text = await fetch(`${server.url}${SERVICE}/GetGroup`, {
        method: "POST",
        headers: { "content-type": "application/grpc-web-text" },
        body: "AAAAAAA=",
      });
      assert.deepEqual(
        [text.status, text.headers.get("grpc-status"), text.headers.get("grpc-message")],
        [200, "13", message],
      );
      await server.stop();
    });
  }
});

function getRequest(uid: string): Buffer {
  return frame(toBinary(GetGroupRequestSchema, create(GetGroupRequestSchema, { uid })));
}

async function rejection(promise: Promise<unknown>): Promise<ConnectError> {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof ConnectError);
    return error;
  }
  throw new assert.AssertionError({ message: "the call succeeded" });
}
