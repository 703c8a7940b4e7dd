// Simulated time for `setTimeout` that leaves the timeouts of others alone.
import type { TestContext } from "node:test";

/**
 * Replaces `setTimeout` until the test ends; `t.mock.timers.tick` moves the time.
 *
 * While it is replaced, Node's own `clearTimeout` does nothing with a timeout that was set before. Sockets that `fetch` of an
 * earlier test keeps open have such timeouts, and undici of Node 20 throws when one of them fires for a closed socket.
 */
export function mockTimeouts(t: TestContext): void {
  const clearReal = globalThis.clearTimeout;
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const clearMocked = globalThis.clearTimeout;
  const isReal = (timeout: unknown) => timeout instanceof realTimeout;
  // The mock restores the property at its end, and this function with it.
  globalThis.clearTimeout = (timeout) => (isReal(timeout) ? clearReal(timeout) : clearMocked(timeout));
}

const example = setTimeout(() => {}, 0);
clearTimeout(example);
const realTimeout = example.constructor as new () => unknown;
