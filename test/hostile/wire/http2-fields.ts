// Header blocks of HTTP/2 requests, right and wrong.
import type { Random } from "../../support/openapi/random.js";
import { mutateBytes, randomBytes } from "./bytes.js";
import { encodeIndexed, type Field, integer, literal, type Representation, tableSize } from "./hpack.js";
import type { Target } from "./target.js";

const REPRESENTATIONS: readonly Representation[] = ["indexed", "without-indexing", "never-indexed"];

/** RPC methods of every kind there is. */
export const RPC_PATHS = [
  "/chainguard.platform.iam.v2beta1.GroupsService/GetGroup",
  "/chainguard.platform.iam.v2beta1.GroupsService/ListGroups",
  "/chainguard.platform.iam.Groups/List",
  "/grpc.health.v1.Health/Check",
  "/grpc.health.v1.Health/Watch",
  "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
  "/no.such.Service/Method",
];
const PATHS = [
  "/",
  "/healthz",
  "/iam/v2beta1/groups",
  "/iam/v1/groups?uidp.in_root=true",
  "/iam/v2beta1/roles?page_size=1",
  "/token",
  "/oauth/token",
  "/sts/exchange?aud=a",
  "/.well-known/openid-configuration",
  "/registry/notifications",
  "/%",
  "/..",
  "*",
  "",
  "a",
  `/${"a".repeat(5_000)}`,
  "http://127.0.0.1/healthz",
  "/\u00ff",
];
const METHODS = [
  "GET",
  "POST",
  "POST",
  "PATCH",
  "PUT",
  "DELETE",
  "HEAD",
  "OPTIONS",
  "CONNECT",
  "TRACE",
  "get",
  "",
  "\u00ff",
];
const TYPES = [
  "application/grpc",
  "application/grpc+proto",
  "application/grpc+json",
  "application/grpc-web",
  "a/b",
  "",
];

const OTHERS: readonly Field[] = [
  ["te", "trailers"],
  ["te", "gzip"],
  ["accept", "*/*"],
  ["accept-encoding", "gzip, br"],
  ["grpc-timeout", "1n"],
  ["grpc-timeout", "99999999H"],
  ["grpc-timeout", "-1x"],
  ["grpc-encoding", "gzip"],
  ["grpc-accept-encoding", "br"],
  ["content-length", "5"],
  ["content-length", "99999999999"],
  ["content-length", "a"],
  ["content-encoding", "gzip"],
  ["x-forwarded-for", "1.2.3.4,,127.0.0.1"],
  ["cookie", "a=b"],
  ["cookie", "c=d"],
  ["expect", "100-continue"],
  ["origin", "null"],
  ["authorization", "Bearer a.b.c"],
  ["host", "b"],
  ["x-bin", "%%"],
  ["x-empty", ""],
  ["priority", "u=0, i"],
  ["constructor", "a"],
  ["__proto__", "a"],
  ["x-large", "a".repeat(4_000)],
];

// What RFC 9113, section 8, calls malformed: a stream ends with it, a session need not.
const MALFORMED: readonly Field[] = [
  ["connection", "close"],
  ["transfer-encoding", "chunked"],
  ["upgrade", "h2c"],
  ["keep-alive", "a"],
  ["proxy-connection", "a"],
  ["X-Upper", "a"],
  ["", "a"],
  ["x y", "a"],
  ["x-null", "a\x00b"],
  ["x-newline", "a\r\nb: c"],
  ["x-space", " a "],
  [":status", "200"],
  [":protocol", "websocket"],
  [":unknown", "a"],
  [":path", "/other"],
  [":authority", "a b"],
];

/** The fields of a request that may be odd, and are malformed only with `isWrong`. */
export function fieldsFor(
  { token, organisation }: Pick<Target, "organisation" | "token">,
  random: Random,
  isWrong: boolean,
): Field[] {
  const isRpc = random.chance(0.5);
  const group = `/iam/v2beta1/groups/${organisation}`;
  const method = isRpc ? "POST" : random.pick(METHODS);
  const fields: Field[] = [
    [":method", method],
    [":scheme", random.chance(0.95) ? "http" : random.pick(["https", "", "ftp"])],
    [":path", isRpc ? random.pick(RPC_PATHS) : random.chance(0.3) ? group : random.pick(PATHS)],
    [":authority", random.chance(0.95) ? "127.0.0.1" : random.pick(["", "a:99999", "[::1", "u@h"])],
  ];
  if (isRpc || random.chance(0.1)) fields.push(["content-type", random.pick(TYPES)]);
  // What is deleted cannot be requested any more.
  if (method !== "DELETE" && random.chance(0.3)) fields.push(["authorization", `Bearer ${token}`]);
  for (let more = random.int(4); more > 0; more--) fields.push(random.pick(OTHERS));
  if (!isWrong) return fields;
  switch (random.int(5)) {
    case 0:
      fields.splice(random.int(4), 1);
      break;
    case 1:
      fields.push(...fields.splice(random.int(4), 1));
      break;
    case 2:
      while (fields.length < 130) fields.push(["a", "b"]);
      break;
    default:
      fields.splice(random.int(fields.length + 1), 0, random.pick(MALFORMED));
  }
  return fields;
}

/** A block of these fields that a reader takes, written in any of the ways there are. */
export function encodeBlock(fields: readonly Field[], random: Random): Buffer {
  const parts = fields.map((field) => {
    if (field[0] === ":method" && field[1] === "POST" && random.chance(0.5)) return encodeIndexed(3);
    return literal(field, random.pick(REPRESENTATIONS));
  });
  // Allowed at the beginning alone.
  if (random.chance(0.1)) parts.unshift(tableSize(random.pick([0, 1, 100, 4_096])));
  return Buffer.concat(parts);
}

/** A block that no reader takes, or that says something else than it should: it ends the session. */
export function breakBlock(fields: readonly Field[], random: Random): Buffer {
  const good = encodeBlock(fields, random);
  return random.pick<() => Buffer>([
    () => mutateBytes(good, random),
    () => mutateBytes(good, random),
    () => good.subarray(0, random.int(good.length)),
    () => Buffer.concat([good, encodeIndexed(0)]),
    () => Buffer.concat([good, encodeIndexed(62 + random.int(1_000))]),
    () => Buffer.concat([good, encodeIndexed(2 ** 31)]),
    () => Buffer.concat([good, tableSize(4_096)]),
    () => Buffer.concat([tableSize(2 ** 30), good]),
    () => Buffer.concat([good, Buffer.alloc(1 + random.int(20), 0xff)]),
    // A text longer than the block, and a Huffman code that has no symbol or too much padding.
    () => Buffer.concat([good, Buffer.from([0x00, 0x01, 0x61]), integer(100_000, 7)]),
    () => Buffer.concat([good, Buffer.from([0x00, 0x01, 0x61, 0x84, 0xff, 0xff, 0xff, 0xff])]),
    () => Buffer.concat([good, Buffer.from([0x00, 0x01, 0x61, 0x82, 0x1f, 0xff])]),
    () => Buffer.concat([good, literal(["x-large", "a".repeat(random.pick([15_000, 60_000]))])]),
    () => randomBytes(random, 200),
  ])();
}
