// Login with a browser on any machine: the person opens a page there, and the service encrypts the ID token for a key
// of this process. Anyone may fetch it, but only this process can decrypt it.
import { createPublicKey, diffieHellman, generateKeyPairSync, type KeyObject } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { isBearerToken } from "../../../client/token-source.js";
import { sha256 } from "../../../kernel/digest.js";
import { encodeBase32 } from "../../../kernel/ids.js";
import { unseal } from "../../../kernel/seal.js";
import { CLI_CLIENT_ID } from "../../../kernel/web.js";
import { Code, CommandError } from "../../errors.js";
import { parseJsonObject, type ServiceResponse, sendRequest } from "../service.js";
import type { StoredLogin } from "./credentials-file.js";
import { buildLoginParameters, exchangeIdToken, type IdToken, type LoginOptions } from "./grants.js";

/** The times of the login, in milliseconds. */
export interface HeadlessPace {
  /** Between two polls. */
  readonly pollMs: number;
  /** For the whole login. */
  readonly waitMs: number;
}

/** The codes of a login without a result yet, and of a service that is temporarily unavailable. */
const NOT_YET: ReadonlySet<CommandError["code"]> = new Set([
  Code.NotFound,
  Code.ResourceExhausted,
  Code.Unavailable,
  Code.DeadlineExceeded,
]);

/**
 * Logs in.
 *
 * @param show shows the person the page to open, and the code that the page asks for
 * @throws CommandError DEADLINE_EXCEEDED when the person takes too long, or the error of the service
 */
export async function logInHeadless(
  api: string,
  loginRequest: LoginOptions,
  show: (url: string, confirmation: string) => void,
  { pollMs, waitMs }: HeadlessPace,
): Promise<StoredLogin> {
  const key = createHeadlessKey();
  // The page asks for the confirmation code for this client only.
  const query = new URLSearchParams([
    ["headless_code", key.code],
    ["client_id", CLI_CLIENT_ID],
    ...buildLoginParameters(loginRequest),
  ]);
  show(`${api}/oauth?${query}`, key.confirmation);
  const endMs = performance.now() + waitMs;
  for (;;) {
    const session = await findSession(api, key.code);
    if (session) {
      const { idToken, provider = findProviderUid(loginRequest) } = key.open(
        session.ecdhPublicKey,
        session.encryptedIdtoken,
      );
      return exchangeIdToken(api, { idToken, ...(provider !== undefined && { provider }) }, loginRequest);
    }
    if (performance.now() > endMs) {
      throw new CommandError(Code.DeadlineExceeded, `the login was not done within ${waitMs / 60_000} minutes`);
    }
    await sleep(pollMs);
  }
}

async function findSession(api: string, code: string): Promise<ServiceResponse | undefined> {
  const query = new URLSearchParams({ code });
  try {
    return await sendRequest({ method: "GET", api, path: "/sts/headless_sessions", query });
  } catch (error) {
    if (error instanceof CommandError && NOT_YET.has(error.code)) return undefined;
    throw error;
  }
}

// The uid of a provider has a slash after that of its group; the name of an organisation has none.
function findProviderUid({ provider }: LoginOptions): string | undefined {
  return provider?.includes("/") ? provider : undefined;
}

/** A key pair (X25519, RFC 7748). */
export interface HeadlessKey {
  /** The raw public key in base64url: 43 characters, which identify the login. */
  readonly code: string;
  /** The code that the person types, as `ABCD-EFGH`: 40 bits of a hash of the public key. */
  readonly confirmation: string;
  /**
   * Decrypts the ID token.
   *
   * @param serviceKey base64 of the text that is the base64url of the service's raw public key
   * @param sealed base64 of nonce, ciphertext and tag (AES-256-GCM under the shared secret)
   * @throws CommandError INTERNAL when it was not encrypted for this key
   */
  open(serviceKey: unknown, sealed: unknown): IdToken;
}

export function createHeadlessKey(): HeadlessKey {
  const { publicKey, privateKey } = generateKeyPairSync("x25519");
  const { x: code = "" } = publicKey.export({ format: "jwk" });
  const digest = sha256(Buffer.from(code, "base64url"));
  return {
    code,
    confirmation: encodeBase32(digest.subarray(0, 5)).replace(/^.{4}/, "$&-"),
    open(serviceKey, sealed) {
      const secret = deriveSharedSecret(privateKey, decodeText(serviceKey));
      // The protocol has no additional data (AES-GCM).
      const plain = secret && unseal(secret, Buffer.from(typeof sealed === "string" ? sealed : "", "base64"), "");
      const result = plain && parseIdToken(plain.toString());
      if (!result) throw new CommandError(Code.Internal, "the response of the service cannot be decrypted");
      return result;
    },
  };
}

function decodeText(base64: unknown): string {
  return Buffer.from(typeof base64 === "string" ? base64 : "", "base64").toString("latin1");
}

function deriveSharedSecret(privateKey: KeyObject, x: string): Buffer | undefined {
  try {
    const publicKey = createPublicKey({ format: "jwk", key: { kty: "OKP", crv: "X25519", x } });
    return diffieHellman({ privateKey, publicKey });
  } catch {
    // An invalid key, or one of small order, with which every key agrees on the same secret (RFC 7748, section 6.1).
    return undefined;
  }
}

// The plain token, or a JSON object with its provider.
function parseIdToken(text: string): IdToken | undefined {
  if (isBearerToken(text)) return { idToken: text };
  const { id_token: idToken, identity_provider: provider } = parseJsonObject(text);
  if (!isBearerToken(idToken)) return undefined;
  return { idToken, ...(typeof provider === "string" && provider !== "" && { provider }) };
}
