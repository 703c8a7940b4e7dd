// The store of logins under way. What is remembered is sealed, and found by the
// hash of a secret that only who may go on with it has.
import { createHash, randomBytes } from "node:crypto";
import type { TicketKind, Tx } from "../../store/port.js";
import type { MasterKey } from "../keys/master-key.js";
import type { Authorization, DeviceRequest, IssuedCode } from "./state.js";

/** What tickets of each kind hold. */
export interface TicketValues {
  readonly authorization: Authorization;
  readonly code: IssuedCode;
  readonly device: DeviceRequest;
  readonly "user-code": { readonly deviceCode: string };
}

type Kind = keyof TicketValues & TicketKind;

/** Logins under way. */
export interface Tickets {
  /** Undefined where there is none, or none any more. */
  get<K extends Kind>(tx: Tx, kind: K, secret: string, nowMs: number): Promise<TicketValues[K] | undefined>;
  /** Stores it, in place of what `secret` found before. */
  put<K extends Kind>(tx: Tx, kind: K, secret: string, value: TicketValues[K], expireTimeMs: number): Promise<void>;
  delete(tx: Tx, secret: string): Promise<void>;
}

/** A new secret of 256 bits. */
export function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** What a secret is stored as. */
export function ticketHash(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** Creates the store. */
export function createTickets(masterKey: MasterKey): Tickets {
  const contextOf = (kind: Kind, hash: string) => `login ${kind} ${hash}`;

  return {
    async get<K extends Kind>(tx: Tx, kind: K, secret: string, nowMs: number) {
      const hash = ticketHash(secret);
      const row = await tx.tickets.get(kind, hash);
      if (row === undefined || row.expireTimeMs <= nowMs) return undefined;
      const { sealed } = row.data as { readonly sealed: string };
      return JSON.parse(masterKey.unseal(sealed, contextOf(kind, hash)).toString()) as TicketValues[K];
    },

    async put(tx, kind, secret, value, expireTimeMs) {
      const hash = ticketHash(secret);
      const sealed = masterKey.seal(Buffer.from(JSON.stringify(value)), contextOf(kind, hash));
      await tx.tickets.put({ hash, kind, data: { sealed }, expireTimeMs });
    },

    async delete(tx, secret) {
      await tx.tickets.delete(ticketHash(secret));
    },
  };
}
