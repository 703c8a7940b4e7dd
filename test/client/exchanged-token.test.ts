import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, describe, it } from "node:test";
import { Code, type ExchangedTokenOptions, exchangedToken } from "../../src/client/index.js";
import { failureOf, jwt, print } from "./failure.js";

const SUBJECT = jwt("se-cret");
const IDENTITY = "0123456789abcdef0123456789abcdef01234567/0123456789abcdef";
const TOKEN = jwt("api", Date.now() + 3_600_000);

/** How the issuer answers: status, body, headers; nothing breaks the connection. */
type Reply = readonly [status: number, body: string, headers?: Readonly<Record<string, string>>] | undefined;

describe("exchanged tokens", () => {
  const requests: Pick<IncomingMessage, "method" | "url" | "headers">[] = [];
  let replies: Reply[];
  let issuer: string;
  const good: Reply = [200, JSON.stringify({ token: TOKEN })];
  const server = createServer((request, response) => {
    const { method, url, headers } = request;
    requests.push({ method, url, headers });
    const reply = replies.length > 1 ? replies.shift() : replies[0];
    if (reply === undefined) response.destroy();
    else response.writeHead(reply[0], reply[2]).end(reply[1]);
  });

  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  beforeEach(() => {
    requests.length = 0;
    replies = [good];
  });

  const source = (options: Partial<ExchangedTokenOptions> = {}) =>
    exchangedToken({
      issuer,
      identity: IDENTITY,
      audience: "https://platform.example.com",
      upstream: () => SUBJECT,
      backoffMs: 1,
      ...options,
    });
  const tokenOf = async (options: Partial<ExchangedTokenOptions> = {}) => source(options).token();

  it("asks as published", async () => {
    assert.equal(await tokenOf(), TOKEN);
    const [{ method, url, headers } = assert.fail("no request"), ...more] = requests;
    assert.deepEqual(more, []);
    assert.equal(method, "GET");
    const { pathname, searchParams } = new URL(url ?? "", issuer);
    assert.equal(pathname, "/sts/exchange");
    assert.deepEqual(
      [...searchParams],
      [
        ["aud", "https://platform.example.com"],
        ["identity", IDENTITY],
      ],
    );
    assert.equal(headers.authorization, `Bearer ${SUBJECT}`);
    assert.equal(headers.accept, "application/json");
  });

  it("asks for several audiences", async () => {
    await tokenOf({ audience: ["https://platform.example.com", "registry.example"] });
    const { searchParams } = new URL(requests[0]?.url ?? "", issuer);
    assert.deepEqual(searchParams.getAll("aud"), ["https://platform.example.com", "registry.example"]);
  });

  it("keeps the path of the issuer", async () => {
    await tokenOf({ issuer: `${issuer}/auth/` });
    assert.match(requests[0]?.url ?? "", /^\/auth\/sts\/exchange\?/);
  });

  it("exchanges once for many calls, and takes the OIDC token anew each time", async () => {
    const subjects = ["s1", "s2"];
    const tokens = source({ upstream: async () => subjects.shift() ?? "s3" });
    await Promise.all([tokens.token(), tokens.token(), tokens.token()]);
    await tokens.renew?.(TOKEN);
    assert.deepEqual(
      requests.map(({ headers }) => headers.authorization),
      ["Bearer s1", "Bearer s2"],
    );
  });

  const status = (code: number, message: string) => JSON.stringify({ code, message, details: [] });
  const failures: readonly {
    reason: string;
    replies: readonly Reply[];
    requests: number;
    code?: Code;
    message?: string;
  }[] = [
    { reason: "UNAVAILABLE is tried again", replies: [[503, status(14, "busy")], good], requests: 2 },
    { reason: "so is a gateway without JSON", replies: [[502, "<html>"], [504, ""], good], requests: 3 },
    { reason: "so is a broken connection", replies: [undefined, good], requests: 2 },
    {
      reason: "not for ever",
      replies: [[503, status(14, "busy")]],
      requests: 4,
      code: Code.Unavailable,
      message: "token exchange: busy",
    },
    {
      reason: "the issuer's code and text are kept",
      replies: [[401, status(16, "Unauthenticated: the token has expired")]],
      requests: 1,
      code: Code.Unauthenticated,
      message: "token exchange: Unauthenticated: the token has expired",
    },
    {
      reason: "without a body the status decides",
      replies: [[403, ""]],
      requests: 1,
      code: Code.PermissionDenied,
      message: "token exchange: the issuer answered 403",
    },
    {
      reason: "a code that is none is not believed",
      replies: [[400, status(99, "odd")]],
      requests: 1,
      code: Code.InvalidArgument,
      message: "token exchange: odd",
    },
    {
      reason: "a redirect is not followed",
      replies: [[302, "", { location: "https://elsewhere.example.com/" }]],
      requests: 1,
      code: Code.Unknown,
      message: "token exchange: the issuer answered 302",
    },
    {
      reason: "an answer without a token",
      replies: [[200, "{}"]],
      requests: 1,
      code: Code.Internal,
      message: "token exchange: the response has no token",
    },
    {
      reason: "an answer that is a token and no JSON",
      replies: [[200, "se-cret"]],
      requests: 1,
      code: Code.Internal,
      message: "token exchange: the response has no token",
    },
    {
      reason: "a token that would break a header",
      replies: [[200, JSON.stringify({ token: "se-cret\r\nx: y" })]],
      requests: 1,
      code: Code.Internal,
      message: "token exchange: the response has no token",
    },
    {
      reason: "an issuer that repeats the OIDC token",
      replies: [[401, status(16, `bad token ${SUBJECT}!`)]],
      requests: 1,
      code: Code.Unauthenticated,
      message: "token exchange: bad token [token]!",
    },
  ];
  for (const { reason, replies: given, requests: expected, code, message } of failures) {
    it(reason, async () => {
      replies = [...given];
      if (code === undefined) assert.equal(await tokenOf(), TOKEN);
      else {
        const failure = await failureOf(tokenOf());
        assert.equal(failure.code, code);
        assert.equal(failure.rawMessage, message);
        assert.doesNotMatch(print(failure), /se-cret/);
        assert.ok(!print(failure).includes(SUBJECT));
      }
      assert.equal(requests.length, expected);
    });
  }

  it("sends nothing that is no token", async () => {
    const failure = await failureOf(tokenOf({ upstream: () => "se-cret\r\nx: y" }));
    assert.equal(failure.rawMessage, "token exchange: upstream gave no valid bearer token");
    assert.doesNotMatch(print(failure), /se-cret/);
    assert.equal(requests.length, 0);
  });

  it("uses the fetch it is given", async () => {
    const seen: unknown[] = [];
    const fetch: typeof globalThis.fetch = async (url) => {
      seen.push(url);
      return new Response(JSON.stringify({ token: "t1" }));
    };
    assert.equal(await tokenOf({ issuer: "https://issuer.example.com", audience: "a", identity: "b/c", fetch }), "t1");
    assert.deepEqual(seen, ["https://issuer.example.com/sts/exchange?aud=a&identity=b%2Fc"]);
  });

  it("printing a source shows no token", async () => {
    const tokens = source();
    await tokens.token();
    assert.ok(!print(tokens).includes(TOKEN));
  });
});
