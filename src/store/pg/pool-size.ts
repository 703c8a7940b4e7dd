// How many connections to PostgreSQL a process opens.

/**
 * How many connections a process opens at most. It runs JavaScript on one core, and more transactions at once than the
 * server has cores for conflict more often; what its machine has is taken as a sign of what the server has.
 */
export function choosePoolSize(cores: number): number {
  return Math.min(Math.max(2 * cores, 10), 20);
}
