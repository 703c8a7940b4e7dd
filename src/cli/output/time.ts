/** Formats an instant, in epoch milliseconds. A tampered database may have some that a Date cannot represent. */
export function formatTime(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : `${ms} ms`;
}
