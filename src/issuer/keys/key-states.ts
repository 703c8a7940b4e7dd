// The states of a key that signs API tokens: pending, active, verify, removed.
// Every change of them is one transaction that reads where the keys stand, so
// nodes and commands that act at once come out as if they had taken turns.

import { failedPrecondition, notFound, type ResourceKind } from "../../kernel/errors.js";
import { LEEWAY_S, MAX_TOKEN_LIFE_S } from "../../pipeline/auth/api-token.js";
import type { KeyRow, KeyState, Tx } from "../../store/port.js";

/** How long a key stays in each state, in milliseconds. */
export interface KeySchedule {
  /** Published, but not used: until nobody keeps a set of public keys without it. */
  readonly pending: number;
  /** Used for new tokens. */
  readonly active: number;
  /** Trusted, but not used: until no token that it signed is valid. */
  readonly verify: number;
}

/** A key that came into a state. */
export interface KeyMove {
  readonly kid: string;
  readonly state: KeyState | "removed";
}

const keyKind: ResourceKind = { noun: "key", type: "Key" };
/** A plan this much longer than its step was made by a clock that was wrong, in milliseconds. */
const WRONG_CLOCK_MS = 24 * 60 * 60 * 1000;

/** The schedule that follows from the settings of these names, in seconds. */
export function keyScheduleOf(settings: { readonly keyRotation: number; readonly jwksMaxAge: number }): KeySchedule {
  const { keyRotation, jwksMaxAge } = settings;
  return {
    // The leeway covers clocks that differ, and the moments until every node has seen the key.
    pending: (jwksMaxAge + Math.min(LEEWAY_S, jwksMaxAge)) * 1000,
    active: keyRotation * 1000,
    verify: (MAX_TOKEN_LIFE_S + LEEWAY_S) * 1000,
  };
}

/** Whether {@link moveKeys} would change anything. */
export function isMoveDue(rows: readonly KeyRow[], schedule: KeySchedule, nowMs: number): boolean {
  return changesDue(rows, schedule, nowMs).length > 0 || isSuccessorDue(rows, schedule, nowMs);
}

/**
 * Does what is due: has a successor wait in time for the end of the key in use, puts it to use when
 * it was published for long enough, and removes what no valid token needs. However late this comes,
 * the key in use stays so until another takes its place.
 *
 * @param spare a new key, the successor if one is due
 */
export async function moveKeys(
  tx: Tx,
  schedule: KeySchedule,
  nowMs: number,
  spare: KeyRow,
): Promise<readonly KeyMove[]> {
  const rows = await tx.keys.list();
  const moves: KeyMove[] = [];
  for (const { kid, from, to, nextTimeMs } of changesDue(rows, schedule, nowMs)) {
    if (to === "removed") await tx.keys.delete(kid);
    else await tx.keys.setState(kid, to, nextTimeMs);
    if (to !== from) moves.push({ kid, state: to });
  }
  if (isSuccessorDue(rows, schedule, nowMs)) {
    await tx.keys.insert({ ...spare, state: "pending", nextTimeMs: nowMs + schedule.pending });
    moves.push({ kid: spare.kid, state: "pending" });
  }
  return moves;
}

interface Change {
  readonly kid: string;
  readonly from: KeyState;
  readonly to: KeyState | "removed";
  readonly nextTimeMs: number;
}

function changesDue(rows: readonly KeyRow[], schedule: KeySchedule, nowMs: number): Change[] {
  const keys = rows.filter(signsTokens);
  const successor = keys.find((row) => row.state === "pending" && isOver(row, nowMs));
  return keys.flatMap((row): Change | [] => {
    const { kid, state: from } = row;
    const into = (to: KeyState): Change => ({ kid, from, to, nextTimeMs: nowMs + schedule[to] });
    if (row === successor) return into("active");
    if (from === "active" && successor !== undefined) return into("verify");
    if (!isPlanned(row, schedule, nowMs)) return into(from);
    if (from === "verify" && isOver(row, nowMs)) return { kid, from, to: "removed", nextTimeMs: nowMs };
    return [];
  });
}

function isSuccessorDue(rows: readonly KeyRow[], schedule: KeySchedule, nowMs: number): boolean {
  const keys = rows.filter(signsTokens);
  if (keys.some(({ state }) => state === "pending")) return false;
  return keys.some((row) => row.state === "active" && isOver(row, nowMs + schedule.pending));
}

function signsTokens({ purpose }: KeyRow): boolean {
  return purpose === "api-token";
}

function isOver({ nextTimeMs }: KeyRow, nowMs: number): boolean {
  return nextTimeMs !== null && nextTimeMs <= nowMs;
}

// Commands leave the plan to servers, which know their schedule.
function isPlanned({ state, nextTimeMs }: KeyRow, schedule: KeySchedule, nowMs: number): boolean {
  return nextTimeMs !== null && nextTimeMs <= nowMs + schedule[state] + WRONG_CLOCK_MS;
}

/** The key that waits to be used. */
export interface Successor {
  readonly kid: string;
  /** False where it waited before. */
  readonly isNew: boolean;
}

/**
 * Has `row` wait to take the place of the key that signs API tokens, unless one waits already;
 * {@link moveKeys} puts it to use when it was published for long enough.
 */
export async function addSuccessor(tx: Tx, row: KeyRow): Promise<Successor> {
  const waiting = (await tx.keys.list()).find((one) => signsTokens(one) && one.state === "pending");
  if (waiting !== undefined) return { kid: waiting.kid, isNew: false };
  await tx.keys.insert({ ...row, state: "pending" });
  return { kid: row.kid, isNew: true };
}

/**
 * Makes `row` the key of its purpose at once; the one before only verifies from now on. For keys
 * that nobody outside trusts; those of API tokens have to be published first.
 */
export async function rotateKey(tx: Tx, row: KeyRow): Promise<void> {
  for (const { kid, purpose, state } of await tx.keys.list()) {
    if (purpose === row.purpose && state === "active") await tx.keys.setState(kid, "verify", null);
  }
  await tx.keys.insert(row);
}

/**
 * Puts the key of the registry that waited to use at once: whoever trusts the one before trusts it
 * too, as both were handed out together. The one before is trusted no more where what is handed out
 * now is read, and `spare` waits in turn.
 */
export async function rotateRegistryKey(tx: Tx, spare: KeyRow): Promise<Successor> {
  const keys = (await tx.keys.list()).filter(({ purpose }) => purpose === "registry");
  const waiting = keys.find(({ state }) => state === "pending");
  for (const { kid, state } of keys) {
    if (state === "verify") await tx.keys.delete(kid);
    if (state === "active") await tx.keys.setState(kid, "verify", null);
  }
  await tx.keys.insert({ ...spare, state: waiting === undefined ? "active" : "pending" });
  if (waiting === undefined) return { kid: spare.kid, isNew: true };
  await tx.keys.setState(waiting.kid, "active", null);
  return { kid: waiting.kid, isNew: true };
}

/** What became of a key that was revoked. */
export interface Revocation {
  /** The state it was in. */
  readonly state: KeyState;
  /** Whether the spare key signs in its place. */
  readonly replaced: boolean;
}

/**
 * Removes a key of API tokens at once, with all that it signed. Where it was the one in use, another
 * is at once: to wait until that is published would be to sign nothing, or to go on with this one.
 *
 * @param spare a new key, used if `kid` is
 * @throws ApiError NOT_FOUND; FAILED_PRECONDITION for a key that is for something else.
 */
export async function revokeKey(tx: Tx, kid: string, spare: KeyRow): Promise<Revocation> {
  const row = (await tx.keys.list()).find((one) => one.kid === kid);
  if (row === undefined) throw notFound(keyKind, kid);
  if (!signsTokens(row)) {
    throw failedPrecondition("KEY_PURPOSE", `key ${kid} is for ${row.purpose}; only keys for api-token can be revoked`);
  }
  await tx.keys.delete(kid);
  const replaced = row.state === "active";
  if (replaced) await tx.keys.insert(spare);
  return { state: row.state, replaced };
}
