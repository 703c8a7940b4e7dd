// The signed head of a chain. Hashes alone prove nothing: whoever can change a
// row can compute them anew.
import type { KeyObject } from "node:crypto";
import { CompactSign, compactVerify } from "jose";
import type { AuditHead } from "../store/port.js";

/** A key that signs heads. */
export interface HeadKey {
  readonly kid: string;
  readonly key: KeyObject;
}

/** The state of a head's signature. */
export type HeadState = "signed" | "forged" | "unknown key";

/** Keeps a signature over something else from being taken for one over a head. */
const TYPE = "arbor-audit-head";

/** Signs a head with ES256; the signature is a JWS whose payload is left out (RFC 7515, appendix F). */
export async function signHead(head: Omit<AuditHead, "signature">, { kid, key }: HeadKey): Promise<AuditHead> {
  const jws = new CompactSign(payloadOf(head)).setProtectedHeader({ alg: "ES256", kid, typ: TYPE });
  const [header, , signature] = (await jws.sign(key)).split(".");
  return { ...head, signature: `${header}..${signature}` };
}

/**
 * Checks the signature of a head.
 *
 * @param keyOf gives the public key of that name, or undefined
 */
export async function stateOfHead(head: AuditHead, keyOf: (kid: string) => KeyObject | undefined): Promise<HeadState> {
  const [header, nothing, signature, ...rest] = head.signature.split(".");
  if (nothing !== "" || rest.length > 0) return "forged";
  const jws = `${header}.${Buffer.from(payloadOf(head)).toString("base64url")}.${signature}`;
  let known = true;
  try {
    const { protectedHeader } = await compactVerify(
      jws,
      ({ kid = "" }) => {
        const key = keyOf(kid);
        known = key !== undefined;
        if (key === undefined) throw new TypeError(`no key is called ${kid}`);
        return key;
      },
      { algorithms: ["ES256"] },
    );
    return protectedHeader.typ === TYPE ? "signed" : "forged";
  } catch {
    return known ? "forged" : "unknown key";
  }
}

function payloadOf({ hash, rootUid, seq, timeMs }: Omit<AuditHead, "signature">): Uint8Array {
  return Buffer.from(JSON.stringify({ hash, rootUid, seq, timeMs }));
}
