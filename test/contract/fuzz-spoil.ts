// Ways to spoil a request: its path, query, body, headers, method and token.
import { METHODS } from "node:http";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import type { Random } from "../support/openapi/random.js";
import { withQuery } from "../support/openapi/request.js";
import type { FuzzRequest } from "./fuzz-request.js";
import type { FuzzWorld } from "./fuzz-world.js";

type Spoil = (request: FuzzRequest, world: FuzzWorld, random: Random) => void;

/** Spoils a request in one way or two. */
export function spoil(request: FuzzRequest, world: FuzzWorld, random: Random): void {
  for (let times = random.chance(0.2) ? 2 : 1; times > 0; times--) random.pick(SPOILS)(request, world, random);
  // Headers beyond the limit are refused before the method is known, so with a body that HEAD must not have.
  if (request.method === "HEAD") delete request.headers["x-large"];
}

const PIECES = [
  "..",
  ".",
  "%2e%2e",
  "%2E",
  "%00",
  "%ff",
  "%c3%28",
  "%",
  "%zz",
  "%25",
  "%2F",
  "%252F",
  "\u00e9",
  "a;b=c",
  "*",
  "{uid}",
  "-",
  "~",
  "a:b",
  ":lookupGroup",
  "0",
  "x".repeat(300),
];

const spoilPath: Spoil = (request, { foreign }, random) => {
  const [path = "", query] = request.path.split("?");
  const parts = path.split("/");
  const at = 1 + random.int(Math.max(1, parts.length - 1));
  switch (random.int(11)) {
    case 0:
      parts.splice(at, 1);
      break;
    case 1:
      parts.splice(at, 0, random.pick(PIECES));
      break;
    case 2:
      parts[at] = random.pick(PIECES);
      break;
    case 3:
      parts[at] = `${parts[at]}${random.pick(PIECES)}`;
      break;
    case 4:
      parts.push("");
      break;
    case 5:
      parts.splice(at, 0, "");
      break;
    case 6:
      parts[at] = (parts[at] ?? "").toUpperCase();
      break;
    case 7:
      parts.splice(4, parts.length, ...foreign.split("/"));
      break;
    case 8:
      // The same path, written another way.
      parts[at] = [...(parts[at] ?? "")].map((c) => `%${c.charCodeAt(0).toString(16).padStart(2, "0")}`).join("");
      break;
    case 9:
      parts.push(...Array.from({ length: random.pick([3, 70, 300]) }, () => "0123456789abcdef"));
      break;
    default:
      parts.splice(4, parts.length, random.text("0123456789abcdef", 40, 40));
  }
  request.path = parts.join("/").replace(/^\/*/, "/") + (query === undefined ? "" : `?${query}`);
};

const QUERIES = [
  "page_size=-1",
  "page_size=99999999999999999999",
  "page_size=1e3",
  "page_size=1&page_size=2",
  "pageSize=5",
  "page_size=",
  "skip=-1",
  "skip=2147483647",
  "order_by=name;drop",
  "order_by=uid+desc",
  "order_by=__proto__",
  "page_token=AAAA",
  "page_token=%00",
  "uidp=1",
  "uidp.ids=",
  "uidp.ids.x=1",
  "uidp.in_root=maybe",
  "uidp.descendants_of=..%2F..",
  "uidp[ids]=1",
  "name=%F0%9F%98%80",
  "name=%ff",
  "name=%",
  "name=a%00b",
  "name=%0a",
  "__proto__=1",
  "constructor.prototype=1",
  "updateMask=nothing.such",
  "updateMask=name,",
  "updateMask=*,name",
  "update_mask=__proto__",
  "=",
  "&&",
  "a[b]=c",
  `name=${"x".repeat(2000)}`,
  Array.from({ length: 70 }, (_, i) => `uidp.ids=${i}`).join("&"),
];

const spoilQuery: Spoil = (request, _, random) => {
  const [before, token] = request.path.split("page_token=");
  if (token !== undefined && random.chance(0.7)) {
    const at = random.int(token.length);
    request.path = `${before}page_token=${token.slice(0, at)}${random.pick(["A", "", "%20", "AA"])}${token.slice(at + 1)}`;
    return;
  }
  request.path = withQuery(request.path, [random.pick(QUERIES)]);
};

const BODIES: readonly (string | Buffer)[] = [
  "",
  "{",
  "[]",
  "null",
  '"text"',
  "1",
  "{}{}",
  "{} x",
  "\ufeff{}",
  '{"name":1}',
  '{"name":null}',
  '{"name":["a"]}',
  '{"name":"a","name":"b"}',
  '{"name":"\\u0000"}',
  '{"name":"\\ud800"}',
  '{"name":"A"}',
  '{"name":""}',
  '{"Name":"a"}',
  '{"__proto__":{"a":1}}',
  '{"constructor":{"prototype":{}}}',
  '{"uid":"0123","name":"a"}',
  '{"name":"a","createTime":"yesterday"}',
  '{"name":"a","kind":"NO_SUCH_KIND"}',
  '{"name":"a","kind":99}',
  '{"name":"a","resourceLimits":{"a":1e99}}',
  '{"name":"a","verified":"true"}',
  '{"name":"a","description":"\\u0007"}',
  "{'name':'a'}",
  '{"name":"a",}',
  '{"name":"a"/**/}',
  '{"name":NaN}',
  `{"name":"${"a".repeat(1001)}"}`,
  `{"name":"a","description":"${"d".repeat(100_000)}"}`,
  `${"[".repeat(200)}${"]".repeat(200)}`,
  `{"a":${'{"a":'.repeat(100)}1${"}".repeat(100)}}`,
  Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
  Buffer.from([0x1f, 0x8b, 0x08, 0x00]),
];

const spoilBody: Spoil = (request, _, random) => {
  request.headers["content-type"] ??= "application/json";
  const { body } = request;
  if (typeof body === "string" && body.length > 2 && random.chance(0.4)) {
    const at = random.int(body.length);
    const kept = body.slice(0, at);
    request.body = random.pick([
      kept,
      kept + body.slice(at + 1),
      kept + random.pick(['"', "}", ",", "\\", "9"]) + body.slice(at),
    ]);
  } else {
    request.body = random.pick(BODIES);
  }
};

// A body that announces an encoding, which may or may not be its own.
const spoilEncoding: Spoil = (request, _, random) => {
  const plain = Buffer.from(request.body ?? "{}");
  const name = random.pick(["gzip", "br", "deflate", "x-gzip", "identity", "gzip, gzip", "zstd", "GZIP", ""]);
  const encode = random.pick([gzipSync, brotliCompressSync, deflateSync, (bytes: Buffer) => bytes]);
  const bytes = random.chance(0.02) ? gzipSync(Buffer.alloc(5_000_000)) : encode(plain);
  request.body = random.chance(0.1) ? bytes.subarray(0, bytes.length - 3) : bytes;
  request.headers["content-encoding"] = name;
  request.headers["content-type"] ??= "application/json";
};

const HEADERS: readonly [name: string, values: readonly string[]][] = [
  [
    "content-type",
    [
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "application/json; charset=latin1",
    ],
  ],
  [
    "content-type",
    ["", "application/json;;", "application/merge-patch+json", "application/octet-stream", "APPLICATION/JSON", "*/*"],
  ],
  ["grpc-timeout", ["", "5", "5S", "99999999H", "-1S", "1x", "999999999S"]],
  ["accept", ["text/html", "application/xml", "*/*;q=0", "text/event-stream", "application/json;q=x", ""]],
  ["accept-encoding", ["gzip", "br", "gzip;q=0, *;q=1", "deflate", "br;q=2", "identity;q=0"]],
  ["x-request-id", ["a b", "x".repeat(5000), "<script>", ""]],
  ["x-http-method-override", ["DELETE", "PATCH"]],
  ["host", ["", "a b", "evil.example", "[::1", "a:99999999", "127.0.0.1:1"]],
  ["origin", ["https://evil.example", "null"]],
  ["if-none-match", ["*", '"abc"']],
  ["range", ["bytes=0-1"]],
  ["expect", ["100-continue", "something"]],
  ["te", ["trailers", "gzip"]],
  ["upgrade", ["h2c", "websocket"]],
  ["connection", ["close"]],
  ["x-forwarded-for", ["1.2.3.4", "x"]],
  ["cookie", ["a=b; token=c"]],
  ["x-large", ["x".repeat(20_000)]],
];

const spoilHeader: Spoil = (request, _, random) => {
  const [name, values] = random.pick(HEADERS);
  request.headers[name] = random.pick(values);
};

const METHODS_SENT = METHODS.filter((method) => method !== "CONNECT");

const spoilMethod: Spoil = (request, _, random) => {
  request.method = random.chance(0.5)
    ? random.pick(METHODS_SENT)
    : random.pick(["GET", "PUT", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS"]);
};

const spoilToken: Spoil = (request, { owner, others }, random) => {
  const at = random.int(owner.length);
  const flipped = `${owner.slice(0, at)}${owner[at] === "A" ? "B" : "A"}${owner.slice(at + 1)}`;
  const none = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${owner.split(".")[1]}.`;
  const value = random.pick([
    undefined,
    "",
    "Bearer",
    "Bearer ",
    owner,
    `Basic ${owner}`,
    `bearer ${owner}`,
    `Bearer ${flipped}`,
    `Bearer ${none}`,
    `Bearer ${owner.slice(0, -5)}`,
    `Bearer ${owner}, Bearer ${owner}`,
    `Bearer ${random.pick(others)}`,
    `Bearer ${"x".repeat(9000)}`,
    "Bearer \u00e9",
  ]);
  delete request.headers.authorization;
  if (value !== undefined) request.headers.authorization = value;
};

const SPOILS: readonly Spoil[] = [
  spoilPath,
  spoilPath,
  spoilQuery,
  spoilQuery,
  spoilBody,
  spoilBody,
  spoilEncoding,
  spoilHeader,
  spoilMethod,
  spoilToken,
];
