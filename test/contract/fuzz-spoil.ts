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

/** Segments that paths should not have. */
export const PIECES = [
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

/** Parameters, most of which no operation takes as they are. */
export const QUERIES = [
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
  "id=%2F",
  "id=__proto__",
  "id=..%2F..",
  "uidp.descendantsOf=",
  "exclude_dates=2",
  "repo_id=%00",
  "registry_id=-",
  "start=yesterday&end=9999-12-31T23:59:60Z",
  "arch=..%2F..",
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
  "aud=",
  "aud=https://elsewhere.example",
  "aud=a,,b",
  "identity=..%2F..",
  "identity=%00&identity_provider=1",
  "identityProvider=0a&identity_provider=0b",
  "cap=__proto__",
  "cap=groups.list&cap=groups.list",
  "scopes=%2F&scope=-",
  `scopes=${"0a%2F".repeat(60)}`,
  "code=%ff",
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
  const [path = "", query = ""] = request.path.split("?");
  const parts = query.split("&").filter((part) => part !== "");
  const added = random.pick(QUERIES);
  // In place of what is there, or as one too many.
  const kept = random.chance(0.5) ? parts.filter((part) => nameOf(part) !== nameOf(added)) : parts;
  request.path = withQuery(path, [...kept, added]);
};

function nameOf(part: string): string {
  return part.split("=")[0] ?? "";
}

/** Bodies that are no JSON, or none that an operation takes. */
export const BODIES: readonly (string | Buffer)[] = [
  "",
  "{",
  "[]",
  "[{}]",
  "[null]",
  '[{"id":"a"},1]',
  "[[]]",
  `[${"{},".repeat(2_000)}{}]`,
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
  '{"id":"0123","name":"a"}',
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

const FORMS: readonly (string | Buffer)[] = [
  "aud",
  "aud=%",
  "aud=%ff",
  "aud=%00&identity=%0a",
  "aud=a&aud=b",
  "identity=a&identity=b",
  "aud+x=1",
  "aud[0]=1",
  "__proto__=1&constructor=2",
  "cap=a&".repeat(600),
  "scopes=0a&".repeat(200),
  "&".repeat(5_000),
  "=".repeat(5_000),
  '{"aud":["a"]}',
  "--x\r\ncontent-disposition: form-data; name=aud\r\n\r\na\r\n--x--",
  `aud=${"a".repeat(100_000)}`,
  Buffer.from([0x61, 0x75, 0x64, 0x3d, 0xff, 0x00]),
];

const inviteCode = (content: unknown) => Buffer.from(JSON.stringify(content)).toString("base64url");
const SIGN_IN_BODIES: readonly string[] = [
  null,
  [],
  "text",
  { grp: 1, kid: 2, sec: 3 },
  { grp: "0a", kid: "0123456789abcdef", sec: "" },
  { grp: "0".repeat(40), kid: "0123456789abcdef", sec: "s", __proto__: {} },
  { grp: "..", kid: "x", sec: "y".repeat(2_000) },
]
  .map((content) => JSON.stringify({ code: inviteCode(content) }))
  .concat('{"code":"%%%"}', '{"code":{"a":1}}', '{"identityId":"x"}', '{"identity_id":"/","code":"\u0000"}');

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
    const isForm = request.headers["content-type"]?.includes("form") === true;
    request.body = random.pick(isForm ? FORMS : random.chance(0.2) ? SIGN_IN_BODIES : BODIES);
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

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const jwt = (header: unknown, claims: unknown) => `${part(header)}.${part(claims)}.${part("signature")}`;
const ES256 = { alg: "ES256", kid: "key-0", typ: "JWT" };
// Tokens of nobody, and signed requests of AWS that are none.
const TOKENS = [
  "a.b.c",
  "...",
  jwt(null, null),
  jwt([], []),
  jwt({ ...ES256, kid: {} }, { iss: "https://issuer.example" }),
  jwt({ ...ES256, crit: ["exp"], b64: false }, { iss: "https://issuer.example", sub: "s", aud: "a", exp: 9e9 }),
  jwt({ ...ES256, jku: "http://127.0.0.1:1/", jwk: {} }, { iss: "http://127.0.0.1:1", sub: "s", aud: "a", exp: 9e9 }),
  jwt(ES256, { iss: "http://127.0.0.1:1", sub: "s", aud: [], exp: "1", nbf: [], iat: {} }),
  jwt(ES256, JSON.parse(`${'{"a":'.repeat(200)}1${"}".repeat(200)}`)),
  part({ exp: 9e9, sec: "x" }),
  part({ exp: 9e9, sec: { a: 1 } }),
  Buffer.from("POST /?Action=GetCallerIdentity HTTP/1.1\r\nhost: sts.amazonaws.com\r\n\r\n").toString("base64url"),
  Buffer.from("GET http://127.0.0.1:1/ HTTP/1.1\r\n\r\n").toString("base64url"),
];

const spoilToken: Spoil = (request, { owner, others }, random) => {
  const own = request.headers.authorization?.slice("Bearer ".length) ?? owner;
  const at = random.int(own.length);
  const flipped = `${own.slice(0, at)}${own[at] === "A" ? "B" : "A"}${own.slice(at + 1)}`;
  const none = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${own.split(".")[1]}.`;
  const value = random.pick([
    undefined,
    "",
    "Bearer",
    "Bearer ",
    own,
    `Basic ${own}`,
    `bearer ${own}`,
    `Bearer ${flipped}`,
    `Bearer ${none}`,
    `Bearer ${own.slice(0, -5)}`,
    `Bearer ${own}, Bearer ${own}`,
    `Bearer ${random.pick([owner, ...others])}`,
    `Bearer ${random.pick(TOKENS)}`,
    `Bearer ${random.pick(TOKENS)}`,
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
