/** Returns the time in epoch milliseconds; replaced in tests. */
export type Clock = () => number;

/** The clock of the system. */
export const systemClock: Clock = () => Date.now();
