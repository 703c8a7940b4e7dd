// Limits the rows that callers store before they have authenticated, by network address. A full limit rejects nobody,
// because many people may share an address: a new login takes the place of an unfinished one.
import { invalidArgument } from "../../kernel/errors.js";
import { addressKey } from "../../kernel/ip-address.js";
import type { Store, TicketKind, TicketOrigin } from "../../store/port.js";

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
  const replaced = await store.read((tx) => tx.tickets.findExcess(kind, origin.origin, MAX_UNFINISHED - 1, nowMs));
  return { origin, replaced };
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
    description: `the parameters of a login must be at most ${MAX_ROW_CHARS} characters together`,
  });
}
