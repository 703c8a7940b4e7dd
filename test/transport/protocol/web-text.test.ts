// gRPC-Web as text: what browsers send that cannot read bytes while they arrive.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  CreateGroupRequestSchema,
  GetGroupRequestSchema,
  GroupSchema,
} from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { HealthCheckRequestSchema, HealthCheckResponseSchema } from "#gen/health/v1/health_pb.js";
import { unauthenticated } from "../../../src/kernel/errors.js";
import { encodeWebText } from "../../../src/transport/protocol/web-text.js";
import { createHealth } from "../../../src/transport/services/health.js";
import { createReflection } from "../../../src/transport/services/reflection.js";
import { DOMAIN, frame, openHttp2, type Running, rawHttp2, rawTcp, SERVICE, startServer } from "../harness.js";

const GET = `${SERVICE}/GetGroup`;
const CREATE = `${SERVICE}/CreateGroup`;
const WATCH = "/grpc.health.v1.Health/Watch";
const TEXT = "application/grpc-web-text";
const TRAILER = 0x80;

const stopping = new AbortController();
const health = createHealth({
  services: [],
  ready: async () => {},
  leaving: new AbortController().signal,
  stopping: stopping.signal,
  errorDomain: DOMAIN,
});

let server: Running;
before(async () => {
  server = await startServer({
    extraServices: [health, ...createReflection([])],
    // Nobody knows these callers, and some bodies are larger than what such callers have together.
    limits: { unknownBytes: 64 * 1024 * 1024 },
  });
});
after(async () => {
  stopping.abort();
  await server.stop();
});

const frameMessage = <D extends DescMessage>(desc: D, init: MessageInitShape<D>): Buffer =>
  frame(toBinary(desc, create(desc, init)));
const getU1 = frameMessage(GetGroupRequestSchema, { uid: "u1" });

interface Frame {
  readonly flag: number;
  readonly data: Buffer;
}

/** The frames of a text, every piece of which is padded. */
function framesOf(text: string): Frame[] {
  assert.match(text, /^(?:[\w+/]{4})*(?:[\w+/]{2}==|[\w+/]{3}=)?(?:[\w+/=]{4})*$/);
  const bytes = Buffer.concat((text.match(/[^=]+=*/g) ?? []).map((piece) => Buffer.from(piece, "base64")));
  const frames: Frame[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + 5 + bytes.readUInt32BE(at + 1);
    assert.ok(end <= bytes.length);
    frames.push({ flag: bytes[at] ?? -1, data: bytes.subarray(at + 5, end) });
    at = end;
  }
  return frames;
}

interface TextResponse {
  readonly status: number;
  readonly type: string | null;
  readonly messages: readonly Buffer[];
  /** The fields of the trailer frame, or of the headers where there is none. */
  readonly trailer: ReadonlyMap<string, string>;
}

async function call(path: string, body: string, headers: Record<string, string> = {}): Promise<TextResponse> {
  const response = await fetch(server.url + path, {
    method: "POST",
    headers: { "content-type": TEXT, ...headers },
    body,
  });
  const frames = framesOf(await response.text());
  const last = frames.at(-1)?.flag === TRAILER ? frames.pop() : undefined;
  const lines = last?.data.toString().trim().split("\r\n") ?? [...response.headers].map((pair) => pair.join(": "));
  return {
    status: response.status,
    type: response.headers.get("content-type"),
    messages: frames.map(({ data }) => data),
    trailer: new Map(lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()])),
  };
}

const inPieces = (bytes: Buffer, size: number): string => {
  let text = "";
  for (let at = 0; at < bytes.length; at += size) text += bytes.subarray(at, at + size).toString("base64");
  return text;
};
const padded = Array.from({ length: 256 }, (_, byte) => Buffer.of(byte).toString("base64"));
const inBytes = (bytes: Buffer): string => Array.from(bytes, (byte) => padded[byte]).join("");

describe("gRPC-Web as text", () => {
  for (const size of [1, 2, 3, 4, 5, 1_000]) {
    it(`takes a request in padded pieces of ${size} bytes`, async () => {
      const { status, type, messages, trailer } = await call(GET, inPieces(getU1, size));
      assert.equal(status, 200);
      assert.equal(type, "application/grpc-web-text+proto");
      assert.deepEqual(
        messages.map((data) => fromBinary(GroupSchema, data).uid),
        ["u1"],
      );
      assert.equal(trailer.get("grpc-status"), "0");
    });
  }

  for (const [type, accept, responseType] of [
    [`${TEXT}+proto`, undefined, "application/grpc-web-text+proto"],
    [`${TEXT}; charset=utf-8`, TEXT, "application/grpc-web-text+proto"],
    [TEXT, "*/*", "application/grpc-web-text+proto"],
    [TEXT, "application/grpc-web+proto", "application/grpc-web+proto"],
    ["application/grpc-web+proto", TEXT, "application/grpc-web-text+proto"],
    ["application/grpc-web+proto", "text/plain, application/grpc-web-text+proto", "application/grpc-web-text+proto"],
  ] as const) {
    it(`answers ${type} with ${responseType} for those who accept ${accept}`, async () => {
      const body = type.startsWith(TEXT) ? getU1.toString("base64") : new Uint8Array(getU1);
      const response = await fetch(server.url + GET, {
        method: "POST",
        headers: { "content-type": type, ...(accept && { accept }) },
        body,
      });
      assert.equal(response.headers.get("content-type"), responseType);
      const bytes = Buffer.from(await response.arrayBuffer());
      const text = responseType.startsWith(TEXT) ? bytes.toString("latin1") : bytes.toString("base64");
      const [message, trailer] = framesOf(text);
      assert.equal(message && fromBinary(GroupSchema, message.data).uid, "u1");
      assert.match(trailer?.data.toString() ?? "", /grpc-status: 0/);
    });
  }

  it("takes JSON", async () => {
    const { type, messages } = await call(GET, frame(Buffer.from('{"uid":"u1"}')).toString("base64"), {
      "content-type": `${TEXT}+json`,
    });
    assert.equal(type, "application/grpc-web-text+json");
    assert.equal(JSON.parse(String(messages[0])).uid, "u1");
  });

  it("says what protocol the call came by", async () => {
    server.probe.calls = [];
    await call(GET, getU1.toString("base64"));
    assert.equal(server.probe.calls[0]?.protocolName, "grpc-web");
  });

  it("has errors, their details and the trailers of the handler in its last frame", async () => {
    const { status, messages, trailer } = await call(
      GET,
      frameMessage(GetGroupRequestSchema, { uid: "fails" }).toString("base64"),
    );
    assert.equal(status, 200);
    assert.deepEqual(messages, []);
    assert.deepEqual([trailer.get("grpc-status"), trailer.get("x-trailer")], ["5", "t"]);
    assert.ok(trailer.get("grpc-status-details-bin"));
  });

  it("has each message of a stream in pieces that can be read alone", async () => {
    const controller = new AbortController();
    const response = await fetch(server.url + WATCH, {
      method: "POST",
      headers: { "content-type": TEXT },
      body: frameMessage(HealthCheckRequestSchema, { service: "" }).toString("base64"),
      signal: controller.signal,
    });
    const { value } = (await response.body?.getReader().read()) ?? {};
    const [first] = framesOf(Buffer.from(value ?? []).toString());
    assert.equal(first && fromBinary(HealthCheckResponseSchema, first.data).status, 1);
    controller.abort();
  });

  const MIB = 1024 * 1024;
  const create4 = (bytes: number) =>
    frameMessage(CreateGroupRequestSchema, { group: { description: "x".repeat(bytes) } });
  for (const [name, path, body, code, text] of [
    ["a message just below 4 MiB", CREATE, create4(4 * MIB - 100).toString("base64"), "0", undefined],
    [
      "a message above 4 MiB",
      CREATE,
      create4(4 * MIB).toString("base64"),
      "8",
      "Resource exhausted: message: must be at most 4194304 bytes",
    ],
    [
      "4 MiB in pieces of a byte",
      CREATE,
      inBytes(create4(4 * MIB - 100)),
      "8",
      "Resource exhausted: message: must be at most 4194304 bytes",
    ],
    ["1 MiB in pieces of a byte", CREATE, inBytes(create4(MIB)), "0", undefined],
    ["half of a message", GET, getU1.subarray(0, 7).toString("base64"), "3", undefined],
    ["bytes", GET, getU1.toString("latin1"), "3", "Invalid argument: body: body is not valid base64"],
    ["text of another alphabet", GET, "AAAA-_==", "3", "Invalid argument: body: body is not valid base64"],
    [
      "text that is cut",
      GET,
      getU1.toString("base64").slice(0, -1),
      "3",
      "Invalid argument: body: body is not valid base64",
    ],
    ["padding alone", GET, "====", "3", "Invalid argument: body: body is not valid base64"],
    ["padding within", GET, "A=AA", "3", "Invalid argument: body: body is not valid base64"],
    ["lines", GET, "AAAA\r\n\r\n", "3", "Invalid argument: body: body is not valid base64"],
    ["nothing", GET, "", "12", undefined],
    ["an unknown method", `${SERVICE}/Nope`, getU1.toString("base64"), "12", "Unimplemented: method: no such method"],
    [
      "a method that takes a stream",
      "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
      "",
      "12",
      "Unimplemented: protocol: this method needs HTTP/2",
    ],
  ] as const) {
    it(`${name} is ${code}`, async () => {
      const { status, trailer } = await call(path, body);
      assert.equal(status, 200);
      assert.equal(trailer.get("grpc-status"), code, trailer.get("grpc-message"));
      if (text) assert.ok(trailer.get("grpc-message")?.startsWith(text), trailer.get("grpc-message"));
    });
  }

  it("authenticates before it reads", async () => {
    const guarded = await startServer({
      authenticateCaller: () => {
        throw unauthenticated();
      },
    });
    const head = `POST ${GET} HTTP/1.1\r\nHost: a\r\nContent-Type: ${TEXT}\r\nContent-Length: 4000000\r\n\r\n`;
    const text = await rawTcp(guarded.port, head, (got) => got.includes("\r\n\r\n"));
    assert.match(text, /^grpc-status: 16\r$/im);
    await guarded.stop();
  });

  it("is served over HTTP/2", async () => {
    const session = openHttp2(server.url);
    const body = Buffer.from(getU1.toString("base64"));
    const response = await rawHttp2(session, { ":path": GET, "content-type": TEXT }, body);
    assert.equal(response.headers["content-type"], "application/grpc-web-text+proto");
    assert.equal(framesOf(response.body.toString()).length, 2);
    session.destroy();
  });
});

it("encodes a large frame in pieces of at most 64 KiB, and pads only its end", () => {
  const frame = randomBytes(150_002);
  const pieces = [...encodeWebText([frame])];
  assert.ok(pieces.every(({ length }) => length <= 64 * 1024));
  const text = Buffer.concat(pieces).toString("latin1");
  assert.ok(Buffer.from(text, "base64").equals(frame));
  assert.equal(text.indexOf("="), text.length - 1);
});
