// An issuer on this machine that signs events as the service does, and everything else that a receiver must refuse.
import { createHash, type webcrypto } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";

/** The group of the subscription. */
export const GROUP = "0123456789abcdef0123456789abcdef01234567/0123456789abcdef";
/** The subscription. */
export const SUBSCRIPTION = `${GROUP}/fedcba9876543210`;
/** The data of an event. */
export const BODY = JSON.stringify({ actor: { subject: "someone" }, body: { id: "x", name: "überall" } });

export type Claims = Readonly<Record<string, unknown>>;
type Key = webcrypto.CryptoKey;

export interface EventIssuer {
  readonly url: string;
  /** Its keys by algorithm, and one that it does not publish. */
  readonly keys: { readonly rsa: Key; readonly ec: Key; readonly foreign: Key };
  readonly jwks: readonly JWK[];
  /** What its discovery document says, and the status of its answers. */
  discovery: Claims;
  status: number;
  /** How often its keys were read. */
  keyReads: number;
  close(): void;
}

/** Starts the issuer. */
export async function startEventIssuer(): Promise<EventIssuer> {
  const [one, two, three] = await Promise.all(["RS256", "ES256", "RS256"].map((alg) => generateKeyPair(alg)));
  if (!one || !two || !three) throw new TypeError("there are three keys");
  const jwks = [
    { ...(await exportJWK(one.publicKey)), kid: "rsa", alg: "RS256", use: "sig" },
    { ...(await exportJWK(two.publicKey)), kid: "ec", alg: "ES256", use: "sig" },
  ];
  const server = createServer(({ url }, response) => {
    if (url === "/keys") issuer.keyReads++;
    const shown = url === "/keys" ? { keys: jwks } : issuer.discovery;
    response.writeHead(issuer.status, { "content-type": "application/json" }).end(JSON.stringify(shown));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const issuer: EventIssuer = {
    url,
    keys: { rsa: one.privateKey, ec: two.privateKey, foreign: three.privateKey },
    jwks,
    discovery: { issuer: url, jwks_uri: `${url}/keys` },
    status: 200,
    keyReads: 0,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
  return issuer;
}

/** The digest of data as the token of its event has it. */
export function digestOf(body: string): string {
  return `sha256:${createHash("sha256").update(body).digest("hex")}`;
}

/** The digest of the attributes in header fields, as docs/events.md describes it. */
export function attributesDigestOf(headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers)
    .filter(([name, value]) => name.startsWith("ce-") && value !== "")
    .map(([name, value]) => [name.slice(3), decodeURIComponent(value)] as const)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => `${name}=${Buffer.from(value, "utf8").length}:${value}\n`);
  return digestOf(lines.join(""));
}

/** The claim about what is sent with these header fields. */
export function webhookOf(headers = headersOf(""), changed: Claims = {}): Claims {
  return {
    webhook: {
      digest: digestOf(BODY),
      attributes: attributesDigestOf(headers),
      subscription: SUBSCRIPTION,
      ...changed,
    },
  };
}

/** What somebody with a sink of their own could change of an event, by what each makes of its header fields. */
export const forgeries: Readonly<Record<string, (headers: Record<string, string>) => Record<string, string>>> = {
  ...Object.fromEntries(
    ["id", "type", "source", "subject", "time", "group", "actor", "audience", "bodytype"].map((name) => [
      `another ${name}`,
      (headers: Record<string, string>) => ({ ...headers, [`ce-${name}`]: `${headers[`ce-${name}`]}x` }),
    ]),
  ),
  "an attribute more": (headers) => ({ ...headers, "ce-identityprovider": GROUP }),
  "an attribute less": ({ "ce-actor": _, ...headers }) => headers,
  "an empty attribute": (headers) => ({ ...headers, "ce-subject": "" }),
  "a value that moves into the next attribute": ({ "ce-bodytype": bodytype, ...headers }) => ({
    ...headers,
    "ce-audience": `customer%0Abodytype=${bodytype?.length}:${bodytype}`,
  }),
  "values of two attributes exchanged": ({ "ce-actor": actor = "", "ce-subject": subject = "", ...headers }) => ({
    ...headers,
    ...{ "ce-actor": subject, "ce-subject": actor },
  }),
  "a value that is encoded once more": (headers) => ({ ...headers, "ce-actor": `${headers["ce-actor"]}%2520` }),
};

/** What changes nothing: how servers and proxies may write the same header fields. */
export const spellings: Readonly<Record<string, (headers: Record<string, string>) => Record<string, string>>> = {
  "names in capital letters": (headers) =>
    Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value])),
  "fields in another order": (headers) => Object.fromEntries(Object.entries(headers).reverse()),
  "values that are encoded without need": (headers) => ({
    ...headers,
    "ce-type": [...(headers["ce-type"] ?? "")].map((c) => `%${c.charCodeAt(0).toString(16)}`).join(""),
  }),
  "header fields that are no attributes": (headers) => ({
    ...headers,
    "x-forwarded-for": "192.0.2.1",
    traceparent: "x",
  }),
};

/** The claims of a token for {@link BODY} that a service before version 1.8 made: they prove nothing else. */
export function claimsOf({ url }: EventIssuer, changed: Claims = {}, nowMs = Date.now()): Claims {
  const iat = Math.floor(nowMs / 1_000);
  const sub = `webhook:${GROUP}`;
  const webhook = { digest: digestOf(BODY) };
  return { iss: url, aud: "customer", sub, iat, exp: iat + 300, jti: crypto.randomUUID(), webhook, ...changed };
}

/** Signs with a key of the issuer unless another is given. */
export function sign(issuer: EventIssuer, claims = claimsOf(issuer), header = RSA, key?: Key): Promise<string> {
  const own = header.kid === "ec" ? issuer.keys.ec : issuer.keys.rsa;
  return new SignJWT(claims).setProtectedHeader(header).sign(key ?? own);
}

/** Another token of ES256 that is valid as well: of the signature (r, s), the pair (r, n - s) is one too. */
export function twinOf(token: string): string {
  const at = token.lastIndexOf(".") + 1;
  const bytes = Buffer.from(token.slice(at), "base64url");
  const order = BigInt("0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551");
  const other = order - BigInt(`0x${bytes.subarray(32).toString("hex")}`);
  bytes.write(other.toString(16).padStart(64, "0"), 32, "hex");
  return token.slice(0, at) + bytes.toString("base64url");
}

/** The headers of tokens, by algorithm. */
export const RSA = { alg: "RS256", kid: "rsa" };
export const EC = { alg: "ES256", kid: "ec" };

/** The headers of an event. */
export function headersOf(token: string, changed: Readonly<Record<string, string>> = {}): Record<string, string> {
  return {
    authorization: `Bearer ${token}`,
    "ce-specversion": "1.0",
    "ce-id": "id-1",
    "ce-type": "dev.chainguard.api.iam.group.created.v1",
    "ce-source": "https://platform.example.com/iam/v1/groups",
    "ce-subject": GROUP,
    "ce-time": "2026-01-31T12:00:00.000Z",
    "ce-group": GROUP,
    "ce-actor": "89abcdef0123456789abcdef0123456789abcdef",
    "ce-audience": "customer",
    "ce-bodytype": "chainguard.platform.iam.v2.Group",
    "content-type": "application/json",
    ...changed,
  };
}
