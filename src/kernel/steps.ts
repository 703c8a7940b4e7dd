// Long work in steps, so that others have their turn between them.

/** How long steps may keep the event loop before it turns, in milliseconds. */
const TURN_MS = 5;

/** A short call needs about so many turns of the event loop from its first byte to its answer. */
const TURNS_BETWEEN = 6;

let lastTurn = Promise.resolve();

/**
 * Resolves in a turn of the event loop that nobody else was given, some turns after the one before: of several whose
 * next step takes some milliseconds each, one has its step, and short calls are answered between two.
 */
export function ownTurn(): Promise<void> {
  lastTurn = lastTurn.then(async () => {
    for (let i = 0; i < TURNS_BETWEEN; i++) await new Promise((resolve) => setImmediate(resolve));
  });
  return lastTurn;
}

/** Does the work without a turn of the event loop, where nobody waits. */
export function atOnce<T>(steps: Generator<void, T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Does the work in steps that each wait for their own turn. @throws whatever a step throws */
export async function inTurns<T>(steps: Generator<void, T>): Promise<T> {
  for (let startMs = performance.now(); ; ) {
    const { done, value } = steps.next();
    if (done) return value;
    if (performance.now() - startMs < TURN_MS) continue;
    await ownTurn();
    startMs = performance.now();
  }
}
