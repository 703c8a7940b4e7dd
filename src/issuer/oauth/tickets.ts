// Tickets store the state of logins. A ticket is encrypted, and found by the hash of a secret that only the browser,
// program or device has.
import { randomBytes } from "node:crypto";
import { sha256 } from "../../kernel/digest.js";
import type { TicketKind, TicketOrigin } from "../../store/tables/tokens.js";
import type { Tx } from "../../store/transaction.js";
import { type MasterKey, sealForStore } from "../keys/master-key.js";
import type { Start } from "./start-limit.js";
import type { Authorization, DeviceRequest, IdTokenLogin, IssuedCode, WaitingTerminal } from "./state.js";

/** The value of each kind of ticket. */
export interface TicketValues {
  readonly authorization: Authorization;
  readonly code: IssuedCode;
  readonly device: DeviceRequest;
  readonly "user-code": { readonly deviceCode: string };
  readonly "id-token": IdTokenLogin;
  readonly terminal: WaitingTerminal;
}

type Kind = keyof TicketValues & TicketKind;

/** Creates a secret of 256 bits. */
export function createSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** Hashes a secret as it is stored. */
export function hashTicket(secret: string): string {
  return sha256(secret).toString("hex");
}

/** The context in which a ticket is sealed. */
export function formatTicketContext(kind: string, hash: string): string {
  return `login ${kind} ${hash}`;
}

export type Tickets = ReturnType<typeof createTickets>;

export function createTickets(masterKey: MasterKey) {
  return {
    /** Finds the value of a ticket; undefined when there is none or it has expired. */
    async find<K extends Kind>(tx: Tx, kind: K, secret: string, nowMs: number): Promise<TicketValues[K] | undefined> {
      const hash = hashTicket(secret);
      const row = await tx.tickets.find(kind, hash);
      if (row === undefined || row.expireTimeMs <= nowMs) return undefined;
      const { sealed } = row.data as { readonly sealed: string };
      return JSON.parse(masterKey.unseal(sealed, formatTicketContext(kind, hash)).toString()) as TicketValues[K];
    },

    /**
     * Stores a ticket, in place of the one with the same secret.
     *
     * @param origin what a limit counts it for; without it, a ticket that is replaced keeps its origin
     */
    async put<K extends Kind>(
      tx: Tx,
      kind: K,
      secret: string,
      value: TicketValues[K],
      expireTimeMs: number,
      origin?: TicketOrigin,
    ): Promise<void> {
      const hash = hashTicket(secret);
      const context = formatTicketContext(kind, hash);
      const sealed = await sealForStore(tx, masterKey, Buffer.from(JSON.stringify(value)), context);
      await tx.tickets.put({ hash, kind, data: { sealed }, expireTimeMs }, origin);
    },

    /** Stores a ticket in place of those that it replaces at the limit of its origin. */
    async start<K extends Kind>(
      tx: Tx,
      kind: K,
      secret: string,
      value: TicketValues[K],
      expireTimeMs: number,
      { origin, replaced }: Start,
    ): Promise<void> {
      for (const hash of replaced) await tx.tickets.delete(hash);
      await this.put(tx, kind, secret, value, expireTimeMs, origin);
    },

    async delete(tx: Tx, secret: string): Promise<void> {
      await tx.tickets.delete(hashTicket(secret));
    },
  };
}
