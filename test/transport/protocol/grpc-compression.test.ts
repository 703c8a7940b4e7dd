// Large responses of the lean gRPC path are compressed for those who accept it.
import assert from "node:assert/strict";
import type { ClientHttp2Session } from "node:http2";
import { afterEach, describe, it } from "node:test";
import { gunzipSync } from "node:zlib";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  GroupSchema,
  ListGroupsRequestSchema,
  ListGroupsResponseSchema,
  UpdateGroupRequestSchema,
} from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import type { Limits } from "../../../src/transport/http/limits/limits.js";
import { frame, GrpcJs, openHttp2, type Running, rawHttp2, SERVICE, startServer } from "../harness.js";

let server: Running;
let session: ClientHttp2Session;

async function start(limits: Partial<Limits> = {}): Promise<void> {
  server = await startServer({ limits });
  session = openHttp2(server.url);
}

afterEach(async () => {
  session.destroy();
  await server.stop();
});

const fields = { "content-type": "application/grpc", te: "trailers" };

async function list(pageSize: number, acceptEncoding: string | undefined) {
  const request = toBinary(ListGroupsRequestSchema, create(ListGroupsRequestSchema, { pageSize }));
  const accepts = acceptEncoding === undefined ? {} : { "grpc-accept-encoding": acceptEncoding };
  const answer = await rawHttp2(session, { ":path": `${SERVICE}/ListGroups`, ...fields, ...accepts }, frame(request));
  assert.equal(answer.trailers["grpc-status"], "0");
  const { body, headers } = answer;
  assert.equal(body.readUInt32BE(1), body.length - 5);
  const isCompressed = body[0] === 1;
  assert.equal(headers["grpc-encoding"], isCompressed ? "gzip" : undefined);
  const message = isCompressed ? gunzipSync(body.subarray(5)) : body.subarray(5);
  assert.equal(fromBinary(ListGroupsResponseSchema, message).groups.length, pageSize);
  return { isCompressed, bytes: body.length };
}

describe("an answer over gRPC", () => {
  for (const [name, groups, acceptEncoding, isCompressed] of [
    ["above 16 KiB", 2_000, "gzip", true],
    ["above 16 KiB for whom gzip is one of several", 2_000, "identity, deflate,gzip", true],
    ["above 64 KiB once compressed", 60_000, "identity,gzip", true],
    ["above 16 KiB for whom no gzip does", 2_000, "identity,deflate,br,gzipped", false],
    ["above 16 KiB for one who accepts nothing", 2_000, undefined, false],
    ["of less", 500, "identity,gzip", false],
  ] as const) {
    it(`${name} is ${isCompressed ? "compressed" : "sent as it is"}`, async () => {
      await start();
      const answer = await list(groups, acceptEncoding);
      assert.equal(answer.isCompressed, isCompressed);
    });
  }

  it("is read by grpc-js, which accepts gzip unless told otherwise", async () => {
    await start();
    const client = new GrpcJs(server.url);
    const { response } = await client.call("ListGroups", { page_size: 2_000 });
    const groups = response?.groups;
    assert.equal(Array.isArray(groups) && groups.length, 2_000);
    client.close();
  });

  it("is compressed where one field alone is large", async () => {
    await start();
    const group = create(GroupSchema, { uid: "u", description: "x".repeat(20_000) });
    const request = toBinary(UpdateGroupRequestSchema, create(UpdateGroupRequestSchema, { group }));
    const { body, trailers } = await rawHttp2(
      session,
      { ":path": `${SERVICE}/UpdateGroup`, ...fields, "grpc-accept-encoding": "gzip" },
      frame(request),
    );
    assert.ok(body.length < 1_000);
    assert.equal(fromBinary(GroupSchema, gunzipSync(body.subarray(5))).description.length, 20_000);
    assert.equal(trailers["grpc-status"], "0");
  });

  it("is sent as it is while as much is compressed as may be", async () => {
    await start({ compressingBytes: 1 });
    const responses = await Promise.all(Array.from({ length: 8 }, () => list(2_000, "gzip")));
    const compressed = responses.filter(({ isCompressed }) => isCompressed).length;
    assert.ok(compressed >= 1 && compressed < 8, String(compressed));
    assert.equal((await list(2_000, "gzip")).isCompressed, true);
  });

  it("that is cut off while it is compressed ends that call alone", async () => {
    await start();
    const calls = Array.from({ length: 5 }, () => {
      const stream = session.request({
        ":method": "POST",
        ":path": `${SERVICE}/ListGroups`,
        ...fields,
        "grpc-accept-encoding": "gzip",
      });
      stream.on("error", () => {});
      const request = create(ListGroupsRequestSchema, { pageSize: 60_000 });
      stream.end(frame(toBinary(ListGroupsRequestSchema, request)));
      return new Promise<void>((resolve) => {
        stream.on("close", resolve);
        setTimeout(() => stream.close(8), 20);
      });
    });
    await Promise.all(calls);
    assert.equal((await list(2_000, "gzip")).isCompressed, true);
  });
});
