// One rule has one code and one text over gRPC, gRPC-Web and Connect, whatever the form of the messages.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { CreateGroupRequestSchema, GetGroupRequestSchema } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { StatusSchema } from "#gen/google/rpc/status_pb.js";
import { frame, openHttp2, type Running, rawHttp2, SERVICE, startServer } from "../harness.js";

/** A form of unary calls. */
interface Form {
  readonly type: string;
  readonly isJson: boolean;
  /** Whether a message has an envelope. */
  readonly isFramed: boolean;
  readonly isText?: boolean;
}

const forms: Readonly<Record<string, Form>> = {
  gRPC: { type: "application/grpc", isJson: false, isFramed: true },
  "gRPC JSON": { type: "application/grpc+json", isJson: true, isFramed: true },
  "gRPC in capitals": { type: "Application/gRPC+JSON", isJson: true, isFramed: true },
  "gRPC-Web": { type: "application/grpc-web+proto", isJson: false, isFramed: true },
  "gRPC-Web JSON": { type: "application/grpc-web+json", isJson: true, isFramed: true },
  "gRPC-Web text": { type: "application/grpc-web-text", isJson: false, isFramed: true, isText: true },
  Connect: { type: "application/proto", isJson: false, isFramed: false },
  "Connect JSON": { type: "application/json", isJson: true, isFramed: false },
};

let server: Running;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

interface Outcome {
  readonly code: Code;
  readonly message: string;
  readonly accepted: string | undefined;
}

/** Sends a body and reads code and text, which stand in headers, trailers, the last frame, or a body in JSON. */
async function send(form: Form, method: string, body: Buffer, headers: Record<string, string> = {}): Promise<Outcome> {
  const session = openHttp2(server.url);
  try {
    const sent = form.isText ? Buffer.from(body.toString("base64")) : body;
    const fields = { ":path": `${SERVICE}/${method}`, "content-type": form.type, ...headers };
    const response = await rawHttp2(session, fields, sent);
    const accepted = response.headers["grpc-accept-encoding"] ?? response.headers["accept-encoding"];
    const common = { accepted: accepted as string | undefined };
    if (!form.isFramed) {
      if (Number(response.headers[":status"]) === 200) return { code: 0 as Code, message: "", ...common };
      const { code, message } = JSON.parse(response.body.toString()) as { code: string; message: string };
      const number = Object.entries(Code).find(([name]) => name.replace(/(?<=.)[A-Z]/g, "_$&").toLowerCase() === code);
      return { code: Number(number?.[1]), message, ...common };
    }
    const status = statusOf({ ...response.headers, ...response.trailers }) ?? statusOf(lastFrame(response.body, form));
    assert.ok(status !== undefined, "there is no status");
    return { ...status, ...common };
  } finally {
    session.destroy();
  }
}

function lastFrame(body: Buffer, { isText }: Form): Record<string, string> {
  const pieces = body.toString("latin1").match(/[\w+/]+=*/g) ?? [];
  let rest = isText ? Buffer.concat(pieces.map((piece) => Buffer.from(piece, "base64"))) : body;
  while (rest.length > 0 && rest[0] !== 0x80) rest = rest.subarray(5 + rest.readUInt32BE(1));
  const lines = rest.subarray(5).toString("latin1").split("\r\n");
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(": ")), line.slice(line.indexOf(": ") + 2)]),
  );
}

function statusOf(fields: Record<string, unknown>): { code: Code; message: string } | undefined {
  if (fields["grpc-status"] === undefined) return undefined;
  const details = fields["grpc-status-details-bin"];
  const message = decodeURIComponent(String(fields["grpc-message"] ?? ""));
  if (details !== undefined)
    assert.equal(fromBinary(StatusSchema, Buffer.from(String(details), "base64")).message, message);
  return { code: Number(fields["grpc-status"]), message };
}

const nameOf = (form: Form) => (form.isFramed ? "grpc-encoding" : "content-encoding");
const INPUT = "chainguard.platform.iam.v2beta1.GetGroupRequest";
const getGroup = ({ isJson }: Form, uid = "u1") =>
  isJson
    ? Buffer.from(JSON.stringify({ uid }))
    : Buffer.from(toBinary(GetGroupRequestSchema, create(GetGroupRequestSchema, { uid })));
const createGroup = ({ isJson }: Form, description: string) =>
  isJson
    ? Buffer.from(JSON.stringify({ group: { name: "n", description } }))
    : Buffer.from(
        toBinary(CreateGroupRequestSchema, create(CreateGroupRequestSchema, { group: { name: "n", description } })),
      );
const wrap = ({ isFramed }: Form, message: Buffer, flag = 0) => (isFramed ? frame(message, flag) : message);

interface Fault {
  readonly code: Code | 0;
  readonly text: string | ((form: Form) => string);
  readonly method?: string;
  readonly headers?: (form: Form) => Record<string, string>;
  readonly body: (form: Form) => Buffer;
  /** The forms that can have the fault. */
  readonly of?: (form: Form) => boolean;
}

const gzipped = (form: Form) => ({ [nameOf(form)]: "gzip" });
const isFramed = ({ isFramed: framed }: Form) => framed;
const KIB = 1024;
/** Expands to about a thousand times its size. */
const zeros = (bytes: number) => "a".repeat(bytes);
/** Expands to some fifty times its size. */
const sparse = (bytes: number) =>
  Array.from({ length: bytes / KIB }, (_, i) => `${i}`.padEnd(24, String(i * 7919)).padEnd(KIB, "a")).join("");

const faults: Readonly<Record<string, Fault>> = {
  nothing: { code: 0, text: "", body: (form) => wrap(form, getGroup(form)) },
  "no message of the type": {
    code: Code.InvalidArgument,
    text: (form) =>
      form.isJson ? "Invalid argument: body: body must be UTF-8" : `Invalid argument: the message is no ${INPUT}`,
    body: (form) => wrap(form, Buffer.alloc(11, 0xff)),
  },
  "a field of another type": {
    code: Code.InvalidArgument,
    text: "Invalid argument: uid: uid must be a string",
    body: (form) => wrap(form, Buffer.from('{"uid":1}')),
    of: ({ isJson }) => isJson,
  },
  "no message": {
    code: Code.Unimplemented,
    text: "Unimplemented: message: this method takes exactly one",
    body: () => Buffer.alloc(0),
    of: isFramed,
  },
  "two messages": {
    code: Code.Unimplemented,
    text: "Unimplemented: message: this method takes exactly one",
    body: (form) => Buffer.concat([wrap(form, getGroup(form)), wrap(form, getGroup(form))]),
    of: isFramed,
  },
  "a part of a message": {
    code: Code.InvalidArgument,
    text: "Invalid argument: the message is incomplete",
    body: (form) => wrap(form, getGroup(form)).subarray(0, 7),
    of: isFramed,
  },
  "a part of a prefix": {
    code: Code.InvalidArgument,
    text: "Invalid argument: the message is incomplete",
    body: () => Buffer.alloc(3),
    of: isFramed,
  },
  "a message that announces too much": {
    code: Code.ResourceExhausted,
    text: "Resource exhausted: message: 4194305 bytes are more than 4194304",
    body: () => Buffer.from([0, 0, 0x40, 0, 1, 0]),
    of: isFramed,
  },
  "an unknown flag": {
    code: Code.InvalidArgument,
    text: "Invalid argument: a message has an unknown flag",
    body: (form) => wrap(form, getGroup(form), 2),
    of: isFramed,
  },
  "a compressed message without an encoding": {
    code: Code.Internal,
    text: "Internal: a message is marked as compressed, but the request names no encoding",
    body: (form) => wrap(form, gzipSync(getGroup(form)), 1),
    of: isFramed,
  },
  "an unknown encoding": {
    code: Code.Unimplemented,
    text: (form) => `Unimplemented: ${nameOf(form)}: must be gzip`,
    headers: (form) => ({ [nameOf(form)]: "zstd" }),
    body: (form) => wrap(form, getGroup(form)),
  },
  "broken gzip": {
    code: Code.InvalidArgument,
    text: "Invalid argument: the message is not valid gzip",
    headers: gzipped,
    body: (form) => wrap(form, Buffer.from("this is no gzip"), 1),
  },
  "cut gzip": {
    code: Code.InvalidArgument,
    text: "Invalid argument: the message is not valid gzip",
    headers: gzipped,
    body: (form) => wrap(form, gzipSync(getGroup(form)).subarray(0, 15), 1),
  },
  gzip: { code: 0, text: "", headers: gzipped, body: (form) => wrap(form, gzipSync(getGroup(form)), 1) },
  "a message without gzip where it may have it": {
    code: 0,
    text: "",
    headers: gzipped,
    body: (form) => wrap(form, getGroup(form)),
    of: isFramed,
  },
  "gzip that expands to less than 256 KiB": {
    code: 0,
    text: "",
    method: "CreateGroup",
    headers: gzipped,
    body: (form) => wrap(form, gzipSync(createGroup(form, zeros(255 * KIB))), 1),
  },
  "gzip that expands a thousandfold to more": {
    code: Code.ResourceExhausted,
    text: "Resource exhausted: message: must not expand to more than 100 times its size",
    method: "CreateGroup",
    headers: gzipped,
    body: (form) => wrap(form, gzipSync(createGroup(form, zeros(257 * KIB))), 1),
  },
  "gzip that expands fiftyfold to what the method takes": {
    code: 0,
    text: "",
    method: "CreateGroup",
    headers: gzipped,
    body: (form) => wrap(form, gzipSync(createGroup(form, sparse(4095 * KIB))), 1),
  },
  "gzip that expands fiftyfold to more than the method takes": {
    code: Code.ResourceExhausted,
    text: "Resource exhausted: message: must be at most 4194304 bytes",
    method: "CreateGroup",
    headers: gzipped,
    body: (form) => wrap(form, gzipSync(createGroup(form, sparse(4097 * KIB))), 1),
  },
  "a malformed timeout": {
    code: Code.InvalidArgument,
    text: ({ isFramed: framed }) =>
      framed
        ? "Invalid argument: grpc-timeout must be one to eight digits and one of H, M, S, m, u, n"
        : "Invalid argument: connect-timeout-ms must be a whole number of at most ten digits",
    headers: ({ isFramed: framed }) => (framed ? { "grpc-timeout": "1x" } : { "connect-timeout-ms": "1x" }),
    body: (form) => wrap(form, getGroup(form)),
  },
  "no time": {
    code: Code.DeadlineExceeded,
    text: "Deadline exceeded: the call took longer than allowed",
    headers: ({ isFramed: framed }) => (framed ? { "grpc-timeout": "0n" } : { "connect-timeout-ms": "0" }),
    body: (form) => wrap(form, getGroup(form)),
  },
  "an error of the handler": {
    code: Code.NotFound,
    text: "Not found: group: there is no group gone",
    body: (form) => wrap(form, getGroup(form, "gone")),
  },
  "a bug of the handler": {
    code: Code.Internal,
    text: "Internal: the service failed to handle the call",
    body: (form) => wrap(form, getGroup(form, "bug")),
  },
};

for (const [what, fault] of Object.entries(faults)) {
  describe(`${what} in a unary call`, () => {
    for (const [name, form] of Object.entries(forms)) {
      if (fault.of?.(form) === false) continue;
      test(name, async () => {
        const outcome = await send(form, fault.method ?? "GetGroup", fault.body(form), fault.headers?.(form));
        const text = typeof fault.text === "string" ? fault.text : fault.text(form);
        assert.deepEqual([outcome.code, outcome.message], [fault.code, text]);
        if (what === "an unknown encoding") assert.equal(outcome.accepted, "gzip");
      });
    }
  });
}

describe("a Connect GET", () => {
  const get = async (query: Record<string, string>) => {
    const response = await fetch(
      `${server.url}${SERVICE}/GetGroup?${new URLSearchParams({ connect: "v1", ...query })}`,
    );
    return [response.status, ((await response.json()) as { message?: string }).message];
  };
  const json = Buffer.from('{"uid":"u1"}');

  test("may have its message as text, in base64, and compressed", async () => {
    assert.deepEqual(await get({ encoding: "json", message: json.toString() }), [200, undefined]);
    const base64 = { encoding: "json", base64: "1" };
    assert.deepEqual(await get({ ...base64, message: json.toString("base64url") }), [200, undefined]);
    assert.deepEqual(await get({ ...base64, message: json.toString("base64") }), [200, undefined]);
    const compressed = { ...base64, compression: "gzip", message: gzipSync(json).toString("base64url") };
    assert.deepEqual(await get(compressed), [200, undefined]);
  });

  test("is read as strictly as any other request", async () => {
    const twice = await get({ encoding: "json", message: '{"uid":"a","uid":"b"}' });
    assert.deepEqual(twice, [400, "Invalid argument: uid: uid is given twice"]);
    const garbled = await get({ encoding: "json", base64: "1", message: "*" });
    assert.deepEqual(garbled, [400, "Invalid argument: message must be base64"]);
    const cut = await get({ encoding: "json", message: "{" });
    assert.deepEqual(cut, [400, "Invalid argument: body: body is not valid JSON at its end"]);
    const encoding = await get({ encoding: "xml", message: "" });
    assert.deepEqual(encoding, [415, "Unimplemented: content-type: not one this method takes"]);
    const compression = await get({ encoding: "json", compression: "br", message: "" });
    assert.deepEqual(compression, [501, "Unimplemented: content-encoding: must be gzip"]);
  });
});
