// AWS Signature Version 4 as its documentation describes it, for tests that need
// both sides: who signs a request and who checks the signature.
import { createHash, createHmac } from "node:crypto";

/** A request as signatures see it. */
export interface Signable {
  readonly method: string;
  readonly url: URL;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The key of a signature and where and when it is good. */
export interface SigningScope {
  readonly accessKeyId: string;
  readonly secret: string;
  readonly region: string;
  readonly service: string;
  /** Such as `20260115T000000Z`. */
  readonly date: string;
}

/** The signature of a request over the named headers, in hex. */
export function signatureOf(request: Signable, signedHeaders: readonly string[], scope: SigningScope): string {
  const { method, url, headers, body = "" } = request;
  const query = [...url.searchParams]
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .sort()
    .join("&");
  const canonical = [
    method,
    url.pathname,
    query,
    ...signedHeaders.map((name) => `${name}:${(headers[name] ?? "").trim().replace(/ +/g, " ")}`),
    "",
    signedHeaders.join(";"),
    sha256(body),
  ].join("\n");
  const day = scope.date.slice(0, 8);
  const toSign = ["AWS4-HMAC-SHA256", scope.date, credentialScope(scope), sha256(canonical)].join("\n");
  let key = hmac(`AWS4${scope.secret}`, day);
  for (const part of [scope.region, scope.service, "aws4_request"]) key = hmac(key, part);
  return hmac(key, toSign).toString("hex");
}

/** The Authorization header of a request signed over the named headers. */
export function authorizationOf(request: Signable, signedHeaders: readonly string[], scope: SigningScope): string {
  const credential = `${scope.accessKeyId}/${credentialScope(scope)}`;
  const signature = signatureOf(request, signedHeaders, scope);
  return `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${signedHeaders.join(";")}, Signature=${signature}`;
}

function credentialScope({ date, region, service }: SigningScope): string {
  return `${date.slice(0, 8)}/${region}/${service}/aws4_request`;
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
