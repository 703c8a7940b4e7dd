// What stands in for AWS: signers of requests, and a server that answers as AWS
// STS does, to those alone whose signature it has checked.
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { authorizationOf, signatureOf } from "./sigv4.js";

/** An AWS role in use, as AWS knows it. */
export const role = {
  accessKeyId: "ASIAEXAMPLEEXAMPLE77",
  secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  account: "123456789012",
  arn: "arn:aws:sts::123456789012:assumed-role/deployer/i-05a6373",
  userId: "AROAEXAMPLEC2UL7LUB:i-05a6373",
} as const;

/** The signed headers of the clients there are. */
export const usualHeaders = ["accept", "chainguard-audience", "chainguard-identity", "host", "x-amz-date"];

/** How a signed request differs from the usual one. */
export interface Signing {
  readonly origin: string;
  /** By lower-case name; undefined leaves one out. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly method?: string;
  readonly target?: string;
  readonly signed?: readonly string[];
  readonly secret?: string;
}

/** The text of a signed `GetCallerIdentity` request, in the form of the Go client. */
export function signRequest({ origin, headers, method = "POST", target, signed, secret }: Signing): string {
  const path = target ?? "/?Action=GetCallerIdentity&Version=2011-06-15";
  const given: Record<string, string> = { host: new URL(origin).host, "content-length": "0" };
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) given[name] = value;
  const date = given["x-amz-date"] ?? "";
  const { accessKeyId } = role;
  const scope = { accessKeyId, secret: secret ?? role.secret, region: "us-east-1", service: "sts", date };
  const names = signed ?? usualHeaders;
  given.authorization ??= authorizationOf({ method, url: new URL(path, origin), headers: given }, names, scope);
  const lines = Object.entries(given).map(([name, value]) => `${name}: ${value}`);
  return [`${method} ${path} HTTP/1.1`, ...lines, "", ""].join("\r\n");
}

/** A text as clients send it: base64url with padding. */
export function bearerOf(text: string): string {
  return Buffer.from(text, "latin1").toString("base64").replaceAll("+", "-").replaceAll("/", "_");
}

/** A running server. */
export interface Served {
  readonly origin: string;
  /** The requests it got. */
  readonly requests: readonly IncomingMessage[];
}

/** Starts a server of fixed answers; `answer` is called with each request. */
export async function serve(
  context: TestContext,
  answer: (request: IncomingMessage) => { readonly status: number; readonly body: string },
): Promise<Served> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    const { status, body } = answer(request);
    response.writeHead(status).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => server.close());
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

/** Starts an AWS STS that knows {@link role} alone. */
export function serveSts(context: TestContext): Promise<Served> {
  return serve(context, (request) => {
    const { authorization = "", accept, host } = request.headers;
    const [, accessKeyId, region = "", signed = "", signature] =
      /^AWS4-HMAC-SHA256 Credential=(\w+)\/\d{8}\/([\w-]+)\/sts\/aws4_request, SignedHeaders=(.+), Signature=(\w+)$/.exec(
        authorization,
      ) ?? [];
    const headers = Object.fromEntries(Object.entries(request.headersDistinct).map(([name, all]) => [name, `${all}`]));
    const date = headers["x-amz-date"] ?? "";
    const url = new URL(request.url ?? "", `http://${host}`);
    const scope = { accessKeyId: role.accessKeyId, secret: role.secret, region, service: "sts", date };
    const expected = signatureOf({ method: request.method ?? "", url, headers }, signed.split(";"), scope);
    if (accessKeyId !== role.accessKeyId) return { status: 403, body: failure("InvalidClientTokenId") };
    if (signature !== expected) return { status: 403, body: failure("SignatureDoesNotMatch") };
    if (url.searchParams.get("Action") !== "GetCallerIdentity") return { status: 400, body: failure("InvalidAction") };
    if (accept !== "application/json") return { status: 200, body: "<GetCallerIdentityResponse/>" };
    return { status: 200, body: responseOf({ Account: role.account, Arn: role.arn, UserId: role.userId }) };
  });
}

/** The response that names a caller. */
export function responseOf(result: unknown): string {
  const ResponseMetadata = { RequestId: "01234567-89ab-cdef-0123-456789abcdef" };
  return JSON.stringify({ GetCallerIdentityResponse: { GetCallerIdentityResult: result, ResponseMetadata } });
}

/** The response that names an error. */
export function failure(code: string): string {
  return JSON.stringify({ Error: { Code: code, Message: "no", Type: "Sender" }, RequestId: "0" });
}
