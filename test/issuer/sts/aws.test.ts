import assert from "node:assert/strict";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import { AwsRequestError, defaultStsOrigins, parseAwsRequest } from "../../../src/issuer/sts/aws.js";
import { bearerOf, type Signing, signRequest, usualHeaders } from "./sts.js";
import { catchError, ownUrls, UNAUTHENTICATED, uid } from "./tokens.js";

const origin = "https://sts.amazonaws.com";
const signedMs = Date.UTC(2026, 0, 15, 12, 0, 0);
const headers = {
  accept: "application/json",
  "chainguard-audience": ownUrls[0],
  "chainguard-identity": uid,
  "x-amz-date": "20260115T120000Z",
};
const target = "/?Action=GetCallerIdentity&Version=2011-06-15";

const text = (changes: Partial<Signing> = {}) =>
  signRequest({ origin, ...changes, headers: { ...headers, ...changes.headers } });
const parse = (bearer: string, nowMs = signedMs) =>
  parseAwsRequest(bearer, { stsHosts: defaultStsOrigins, audiences: ownUrls, identity: uid, nowMs });

function outcomeOf(made: string, nowMs: number): unknown {
  const { cause } = catchError(() => parse(bearerOf(made), nowMs)) ?? {};
  return cause instanceof AwsRequestError ? cause.outcome : cause;
}

/** A usual request with one piece of its text replaced. */
function editText(from: string | RegExp, to: string): string {
  const made = text().replace(from, to);
  assert.notEqual(made, text());
  return made;
}

test("the request to AWS is built anew: GetCallerIdentity, the signed headers, nothing else", () => {
  const made = text({ headers: { "user-agent": "Go-http-client/1.1", "x-forwarded-for": "10.0.0.1" } });
  const { url, headers: sent } = parse(bearerOf(made));
  assert.equal(url, "https://sts.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15");
  assert.deepEqual(Object.keys(sent).sort(), [
    "accept",
    "authorization",
    "chainguard-audience",
    "chainguard-identity",
    "x-amz-date",
  ]);
  assert.equal(sent.accept, "application/json");
});

const accepted: readonly (readonly [what: string, text: string])[] = [
  ["as the Go client writes it", text()],
  ["with a session token", text({ headers: { "x-amz-security-token": "FwoGZXIvYXdzEXAMPLE==" } })],
  ["as the shell clients write it, lines ending with LF", text().replaceAll("\r\n", "\n")],
  [
    "as the Python client writes it, with an absolute target and a line too many",
    `${text({ target: `${origin}${target}` })}\r\n`,
  ],
  ["to the host of a region", text({ origin: "https://sts.eu-central-1.amazonaws.com" })],
  ["with its query in the other order", text({ target: "/?Version=2011-06-15&Action=GetCallerIdentity" })],
  ["with header names in any case", editText("x-amz-date", "X-Amz-Date")],
  ["with blanks around a value", editText(`audience: ${ownUrls[0]}`, `audience:   ${ownUrls[0]}  `)],
  ["for our other name", text({ headers: { "chainguard-audience": "arbor.example.com" } })],
  ["without Accept", text({ headers: { accept: undefined }, signed: usualHeaders.slice(1) })],
  ["with commas alone in the Authorization header", text().replaceAll(", ", ",")],
];

for (const [what, made] of accepted) {
  test(`a signed request is accepted ${what}`, () => {
    const { url, headers: sent } = parse(bearerOf(made));
    assert.match(url, /^https:\/\/sts\.([a-z0-9-]+\.)?amazonaws\.com\/\?Action=GetCallerIdentity&Version=2011-06-15$/);
    assert.equal(sent["x-amz-security-token"] !== undefined, made.includes("x-amz-security-token"));
  });
}

const questions = text({ headers: { x: "????????" } });
const rejected: readonly (readonly [what: string, bearer: string, outcome: string])[] = [
  ["nothing", "", "invalid encoding"],
  ["a JSON Web Token", "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln", "invalid encoding"],
  ["no base64", "!!!!", "invalid encoding"],
  ["no padding", bearerOf(text()).replace(/=+$/, ""), "invalid encoding"],
  ["a blank in it", `${bearerOf(text())} `, "invalid encoding"],
  ["the other alphabet", Buffer.from(questions).toString("base64"), "invalid encoding"],
  ["too long", bearerOf(text({ headers: { padding: "x".repeat(12_000) } })), "invalid encoding"],
  ["no request", bearerOf("hello"), "invalid encoding"],
  ["no end of the header", bearerOf(text().slice(0, -2)), "invalid encoding"],
  ["a body", bearerOf(`${text()}Action=AssumeRole`), "invalid encoding"],
  ["HTTP/2", bearerOf(editText("HTTP/1.1", "HTTP/2")), "invalid encoding"],
  ["a folded line", bearerOf(editText("\r\nhost", "\r\n host")), "invalid encoding"],
  ["a blank before a colon", bearerOf(editText("host:", "host :")), "invalid encoding"],
  ["a header without a colon", bearerOf(editText("host:", "host")), "invalid encoding"],
  ["a lone CR in a value", bearerOf(editText(uid, `${uid}\rx: y`)), "invalid encoding"],
  ["a NUL in a value", bearerOf(editText(uid, `${uid}\0`)), "invalid encoding"],
  ["a tab in a value", bearerOf(editText(uid, `\t${uid}`)), "invalid encoding"],
  ["a no-break space in a value", bearerOf(editText(uid, `\u00a0${uid}`)), "invalid encoding"],
  ...["authorization", "x-amz-date", "chainguard-audience", "chainguard-identity", "host", "accept"].map(
    (name): [string, string, string] => {
      const [line = ""] = new RegExp(`\r\n${name}: .*`).exec(text()) ?? [];
      return [`${name} twice`, bearerOf(editText(line, line + line.toUpperCase())), "invalid request"];
    },
  ),
  ["GET", bearerOf(text({ method: "GET" })), "invalid request"],
  ["another host", bearerOf(text({ origin: "https://sts.amazonaws.com.evil.example" })), "invalid request"],
  [
    "a region of another partition",
    bearerOf(text({ origin: "https://sts.cn-north-1.amazonaws.com.cn" })),
    "invalid request",
  ],
  ["the host in capitals", bearerOf(editText("sts.amazonaws.com", "STS.amazonaws.com")), "invalid request"],
  ["a port", bearerOf(editText("sts.amazonaws.com", "sts.amazonaws.com:8443")), "invalid request"],
  ["no host", bearerOf(editText(/host: .*\r\n/, "")), "invalid request"],
  [
    "an absolute target elsewhere",
    bearerOf(editText(" /?", " https://sts.us-east-1.amazonaws.com/?")),
    "invalid request",
  ],
  ["a target that names a host", bearerOf(editText(" /?", " //evil.example/?")), "invalid request"],
  ["a target that names a user", bearerOf(editText(" /?", " https://user@sts.amazonaws.com/?")), "invalid request"],
  [
    "another question",
    bearerOf(text({ target: target.replace("GetCallerIdentity", "AssumeRole") })),
    "invalid request",
  ],
  ["a question more", bearerOf(text({ target: `${target}&Action=AssumeRole` })), "invalid request"],
  ["another path", bearerOf(text({ target: target.replace("/", "/x") })), "invalid request"],
  ["no question", bearerOf(text({ target: "/" })), "invalid request"],
  ["a signature in the query", bearerOf(text({ target: `${target}&X-Amz-Signature=00` })), "invalid request"],
  ["no Authorization", bearerOf(editText(/authorization: .*\r\n/, "")), "invalid request"],
  ["another scheme", bearerOf(editText("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA512")), "invalid request"],
  ["another service", bearerOf(editText("/sts/aws4", "/iam/aws4")), "invalid request"],
  ["a part of the signature twice", bearerOf(editText(", Sig", ", SignedHeaders=host, Sig")), "invalid request"],
  ["a part of the signature missing", bearerOf(editText(/, Signature=\w+/, "")), "invalid request"],
  ["a blank among the signed names", bearerOf(editText(";host;", "; host;")), "invalid request"],
  ["signed names in capitals", bearerOf(editText(";host;", ";Host;")), "invalid request"],
  ["a signed header that is missing", bearerOf(editText(/accept: .*\r\n/, "")), "invalid request"],
  [
    "a signed header nobody needs",
    bearerOf(text({ headers: { "x-amz-target": "y" }, signed: [...usualHeaders, "x-amz-target"] })),
    "invalid request",
  ],
  ["an answer other than JSON", bearerOf(text({ headers: { accept: "text/xml" } })), "invalid request"],
  ["a date that is none", bearerOf(text({ headers: { "x-amz-date": "20261315T120000Z" } })), "invalid request"],
  ["a date in another form", bearerOf(text({ headers: { "x-amz-date": "2026-01-15T12:00:00Z" } })), "invalid request"],
  ...["host", "x-amz-date", "chainguard-audience", "chainguard-identity"].map((name): [string, string, string] => [
    `${name} not signed`,
    bearerOf(text({ signed: usualHeaders.filter((one) => one !== name) })),
    "unsigned binding headers",
  ]),
  [
    "binding headers added to a request signed for another",
    bearerOf(text({ signed: ["accept", "host", "x-amz-date"] })),
    "unsigned binding headers",
  ],
  [
    "another audience",
    bearerOf(text({ headers: { "chainguard-audience": "https://issuer.example" } })),
    "audience mismatch",
  ],
  ["an empty audience", bearerOf(text({ headers: { "chainguard-audience": "" } })), "audience mismatch"],
  ["another identity", bearerOf(text({ headers: { "chainguard-identity": `${uid}0` } })), "identity mismatch"],
  [
    "the identity in capitals",
    bearerOf(text({ headers: { "chainguard-identity": uid.toUpperCase() } })),
    "identity mismatch",
  ],
];

for (const [what, bearer, outcome] of rejected) {
  test(`a signed request is rejected with ${what}: ${outcome}`, () => {
    const found = catchError(() => parse(bearer));
    assert.ok(found?.cause instanceof AwsRequestError, "it was accepted");
    assert.deepEqual(
      [found.code, found.message, found.cause.outcome],
      [Code.Unauthenticated, UNAUTHENTICATED, outcome],
    );
    assert.ok(!found.cause.message.includes("Signature="), "the log gets no credential");
  });
}

const minute = 60_000;
for (const [offsetMs, outcome] of [
  [-5 * minute, undefined],
  [-5 * minute - 1, "future-dated"],
  [0, undefined],
  [15 * minute, undefined],
  [15 * minute + 1, "expired"],
] as const) {
  test(`a request read ${offsetMs} ms after it was signed is ${outcome ?? "accepted"}`, () => {
    assert.equal(outcomeOf(text(), signedMs + offsetMs), outcome);
  });
}

test("the first check that fails names the outcome", () => {
  const all = { headers: { "chainguard-audience": "x", "chainguard-identity": "x" } };
  assert.equal(outcomeOf(text({ ...all, signed: ["host"] }), 0), "unsigned binding headers");
  assert.equal(outcomeOf(text(all), 0), "audience mismatch");
  assert.equal(outcomeOf(text({ headers: { "chainguard-identity": "x" } }), 0), "identity mismatch");
  assert.equal(outcomeOf(text(), 0), "future-dated");
});

test("base64 in the other alphabet or without padding would have been another text", () => {
  assert.match(bearerOf(text()), /=$/);
  assert.match(Buffer.from(questions).toString("base64"), /\//);
  parse(bearerOf(questions));
});

test("the hosts of AWS are those of one partition, each https", () => {
  assert.ok(defaultStsOrigins.includes("https://sts.amazonaws.com"));
  assert.equal(new Set(defaultStsOrigins).size, defaultStsOrigins.length);
  for (const one of defaultStsOrigins) assert.equal(new URL(one).origin, one);
});
