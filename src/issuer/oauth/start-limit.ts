// Limits the rows that callers store before they have authenticated, by network address. A full limit rejects nobody,
// because many people may share an address: a new login takes the place of an unfinished one.
import { invalidArgument } from "../../kernel/errors.js";
import { addressKey } from "../../kernel/ip-address.js";
import type { Store } from "../../store/store.js";
import type { TicketKind, TicketOrigin } from "../../store/tables/tokens.js";
import type { Tx } from "../../store/transaction.js";

/** How many unfinished logins of one kind an address may have. */
const MAX_UNFINISHED = 300;

/** The largest row of an unfinished login, in characters of JSON. A request that names every capability fits. */
const MAX_ROW_CHARS = 8 * 1024;

/** What the row of an unfinished login is counted for, and the hashes of the rows whose place it takes. */
export interface Start {
  readonly origin: TicketOrigin;
  readonly replaced: readonly string[];
}

/**
 * Builds what an unfinished login is counted for.
 *
 * @param isKept whether others of the address are replaced first
 */
export function originOf(remoteAddress: string | undefined, isKept: boolean): TicketOrigin {
  return { origin: addressKey(remoteAddress), isKept };
}

/**
 * Builds what a login is counted for once the person has signed in at the provider: the person, so that no one else at
 * the same address can replace it.
 */
export function originOfPerson(personUid: string): TicketOrigin {
  return { origin: `person ${personUid}`, isKept: true };
}

/**
 * Prepares a login that an address starts. Of the unfinished logins beyond the limit it replaces those first that are
 * not kept, then the oldest. The rows are found before the transaction that stores the new one, so that concurrent
 * starts do not conflict; what they exceed the limit by, later ones replace.
 */
export async function prepareStart(
  store: Pick<Store, "read">,
  kind: TicketKind,
  origin: TicketOrigin,
  nowMs: number,
): Promise<Start> {
  return store.read((tx) => findStart(tx, kind, origin, nowMs));
}

/** Finds what {@link prepareStart} does, in a transaction. */
export async function findStart(tx: Tx, kind: TicketKind, origin: TicketOrigin, nowMs: number): Promise<Start> {
  return { origin, replaced: await tx.tickets.findExcess(kind, origin.origin, MAX_UNFINISHED - 1, nowMs) };
}

/**
 * Makes sure that the row of an unfinished login is small.
 *
 * @throws ApiError INVALID_ARGUMENT
 */
export function assertSmall(stored: object): void {
  if (JSON.stringify(stored).length <= MAX_ROW_CHARS) return;
  throw invalidArgument({
    field: "request",
    subject: "",
    rule: `the parameters of a login must be at most ${MAX_ROW_CHARS} characters together`,
  });
}
