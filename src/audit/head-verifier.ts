import type { KeyObject } from "node:crypto";
import type { AuditHead } from "../store/port.js";
import { verifyHead } from "./chain.js";

/** Why a chain must not be continued. */
export type VerificationFailure =
  | "its chain has no signed head"
  | "its signed head is missing"
  | "its chain does not end at its signed head"
  | "its head was replaced by an older one"
  | "its head was replaced by another one"
  | "its head is signed with an unknown key"
  | "the signature of its head is wrong";

/** Verifies that the end of a chain is the signed one. */
export interface HeadVerifier {
  /** Verifies the end of a chain; undefined when the chain may be continued. */
  check(rootUid: string, head: AuditHead | undefined, lastSeq: number): Promise<VerificationFailure | undefined>;
  /** Remembers a head that this node signed. */
  remember(head: AuditHead): void;
}

/** The largest number of remembered heads; the signatures of others are verified again. */
const MAX_REMEMBERED = 10_000;

/**
 * Creates the verifier. Remembered heads save a verification per batch, and reveal heads that were replaced by older
 * ones.
 */
export function createHeadVerifier(keys: {
  auditVerifying(kid: string): KeyObject | undefined;
  refresh(): Promise<boolean>;
}): HeadVerifier {
  const remembered = new Map<string, AuditHead>();

  function remember(head: AuditHead): void {
    remembered.delete(head.rootUid);
    remembered.set(head.rootUid, head);
    const [oldest] = remembered.keys();
    if (remembered.size > MAX_REMEMBERED && oldest !== undefined) remembered.delete(oldest);
  }

  async function verifySignature(head: AuditHead): Promise<VerificationFailure | undefined> {
    let state = await verifyHead(head, keys.auditVerifying);
    if (state === "unknown key" && (await keys.refresh())) state = await verifyHead(head, keys.auditVerifying);
    if (state === "unknown key") return "its head is signed with an unknown key";
    return state === "forged" ? "the signature of its head is wrong" : undefined;
  }

  return {
    remember,
    async check(rootUid, head, lastSeq) {
      const known = remembered.get(rootUid);
      if (head === undefined) {
        if (lastSeq > 0) return "its chain has no signed head";
        return known === undefined ? undefined : "its signed head is missing";
      }
      if (head.seq !== lastSeq) return "its chain does not end at its signed head";
      if (known !== undefined && head.seq < known.seq) return "its head was replaced by an older one";
      if (known !== undefined && head.seq === known.seq) {
        return head.hash === known.hash ? undefined : "its head was replaced by another one";
      }
      const failure = await verifySignature(head);
      if (failure === undefined) remember(head);
      return failure;
    },
  };
}
