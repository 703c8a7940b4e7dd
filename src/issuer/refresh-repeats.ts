// A client whose connection breaks while it renews its login sends the same refresh token again. Such a repeat gets a
// sibling of the token that was lost, once. Any other second use of a refresh token means that it was stolen.
import type { RefreshTokenRow } from "../store/tables/tokens.js";
import type { Tx } from "../store/transaction.js";

/** How long after its use a refresh token may come again, in milliseconds. */
const REPEAT_MS = 10_000;

/** A refresh token that was exchanged a moment ago. */
interface Exchanged {
  /** The network address of the client. Clients are public, so nothing else tells them apart. */
  readonly client: string;
  /** The hash of the refresh token that replaced it. */
  readonly successor: string;
}

/** One of two refresh tokens that replaced the same one. */
interface Sibling {
  /** The hash of the other. */
  readonly other: string;
}

/** Notes that a refresh token was exchanged for another. */
export async function noteExchange(tx: Tx, hash: string, exchanged: Exchanged, nowMs: number): Promise<void> {
  const expireTimeMs = nowMs + REPEAT_MS;
  await tx.tickets.put({ hash: exchangeKey(hash), kind: "refresh", data: exchanged, expireTimeMs });
}

/**
 * Takes the permission for a repeat: the token was exchanged less than ten seconds ago by the same client, its successor
 * was not used since, and no repeat was permitted before.
 *
 * @returns the hash of the successor; undefined where the repeat is not permitted
 */
export async function takeRepeat(tx: Tx, hash: string, client: string, nowMs: number): Promise<string | undefined> {
  const key = exchangeKey(hash);
  const ticket = await tx.tickets.find("refresh", key);
  if (ticket === undefined || ticket.expireTimeMs <= nowMs) return undefined;
  const exchanged = ticket.data as Exchanged;
  const successor = await tx.refreshTokens.find(exchanged.successor);
  if (exchanged.client !== client || successor === undefined || successor.used) return undefined;
  await tx.tickets.delete(key);
  return exchanged.successor;
}

/** Notes that two refresh tokens replaced the same one. */
export async function noteSiblings(tx: Tx, one: string, other: string, expireTimeMs: number): Promise<void> {
  for (const [hash, data] of [
    [one, { other }],
    [other, { other: one }],
  ] as const) {
    await tx.tickets.put({ hash: siblingKey(hash), kind: "refresh", data, expireTimeMs });
  }
}

/**
 * Uses up the sibling of a refresh token that is used. If a thief has one of the two, the second use ends the login of
 * both.
 */
export async function useUpSibling(tx: Tx, { hash }: Pick<RefreshTokenRow, "hash">): Promise<void> {
  const ticket = await tx.tickets.find("refresh", siblingKey(hash));
  if (ticket !== undefined) await tx.refreshTokens.markUsed((ticket.data as Sibling).other);
}

function exchangeKey(hash: string): string {
  return `exchanged ${hash}`;
}

function siblingKey(hash: string): string {
  return `sibling ${hash}`;
}
