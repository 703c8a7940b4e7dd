import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { Metadata } from "@grpc/grpc-js";
import { BadRequestSchema, ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.js";
import {
  DOMAIN,
  GrpcJs,
  groupsClient,
  openHttp2,
  type Running,
  rawHttp2,
  startServer,
  TLS,
  TRICKY_TEXT,
  transports,
} from "./harness.js";

const TRICKY_MESSAGE = `Invalid argument: uid: ${TRICKY_TEXT}`;

for (const [name, options] of [
  ["cleartext", {}],
  ["TLS", { tls: TLS }],
] as const) {
  describe(`one ${name} port`, () => {
    let server: Running;
    before(async () => {
      server = await startServer(options);
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

      it(`${protocol}: says which protocol and how long the caller waits`, async () => {
        server.probe.calls = [];
        await client().getGroup({ uid: "u1" }, { timeoutMs: 5_000 });
        const [call] = server.probe.calls;
        assert.ok(call);
        assert.equal(call.protocolName, protocol.split(" ")[0]);
        assert.equal(call.inbound.remoteAddress, "127.0.0.1");
        assert.ok(call.deadlineMs - call.startMs <= 5_000, String(call.deadlineMs - call.startMs));
        assert.ok(call.deadlineMs - call.startMs > 3_000, String(call.deadlineMs - call.startMs));
      });

      it(`${protocol}: the longest deadline is no deadline of a millisecond`, async () => {
        const headers = protocol.startsWith("connect")
          ? { "connect-timeout-ms": "9999999999" }
          : { "grpc-timeout": "99999999H" };
        const group = await client().getGroup({ uid: "u1" }, { headers });
        assert.equal(group.uid, "u1");
      });

      it(`${protocol}: a body above 4 MiB is RESOURCE_EXHAUSTED`, async () => {
        if (protocol.endsWith("GET")) return;
        const description = "x".repeat(4 * 1024 * 1024);
        const error = await rejection(client().createGroup({ group: { name: "n", description } }));
        assert.equal(error.code, Code.ResourceExhausted, error.message);
        assert.equal(error.findDetails(ErrorInfoSchema)[0]?.reason, "RESOURCE_EXHAUSTED");
      });

      it(`${protocol}: a body just below 4 MiB is taken`, async () => {
        if (protocol.endsWith("GET")) return;
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

    it("REST goes to the gateway", async () => {
      const session = openHttp2(server.url);
      const answer = await rawHttp2(session, { ":method": "GET", ":path": "/iam/v2beta1/groups?name=a" });
      assert.deepEqual(JSON.parse(answer.body.toString()), { method: "GET", url: "/iam/v2beta1/groups?name=a" });
      session.destroy();
    });
  });
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
