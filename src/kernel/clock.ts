/** Tells the time in epoch milliseconds; injected everywhere so that tests can move it. */
export type Clock = () => number;

/** The time of the machine. */
export const systemClock: Clock = () => Date.now();
