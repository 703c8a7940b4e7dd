// What an attack is, and the helpers that most of them use.
import type { Target } from "./world.js";

/** What an attack reports when it is over. */
export interface Outcome {
  /** What it did and how often, for the record. */
  readonly done: Readonly<Record<string, number>>;
  /** What the service answered that it must not; empty when all is well. */
  readonly problems: readonly string[];
}

/** An attack: bounded in what it holds and sends, and over soon after it was told to stop. */
export interface Attack<State = unknown> {
  /** What it needs before it begins, such as identities; not part of the attack. */
  prepare?(target: Target): Promise<State>;
  run(target: Target, stop: AbortSignal, state: State): Promise<Outcome>;
}

/** Counts by name. */
export class Counts {
  readonly done: Record<string, number> = {};
  readonly problems: string[] = [];

  add(name: string, count = 1): void {
    this.done[name] = (this.done[name] ?? 0) + count;
  }

  /** Notes what must not be; the first few of each attack are kept. */
  problem(text: string): void {
    this.add("problems");
    if (this.problems.length < 5 && !this.problems.includes(text)) this.problems.push(text);
  }
}

/** Resolves after `ms`, or at once when told to stop. */
export function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (stop.aborted) return resolve();
    const finish = () => {
      clearTimeout(timer);
      stop.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    stop.addEventListener("abort", finish);
  });
}

/** Does `work` every `ms` at the most, `width` at a time, until told to stop; `limit` times at the most. */
export async function repeat(
  { ms, width, limit, stop }: { ms: number; width: number; limit: number; stop: AbortSignal },
  work: (n: number) => Promise<unknown>,
): Promise<void> {
  let n = 0;
  const lane = async () => {
    while (!stop.aborted && n < limit) {
      const next = pause(ms, stop);
      await work(n++).catch(() => {});
      await next;
    }
  };
  await Promise.all(Array.from({ length: width }, lane));
}

/** One of several, round robin. */
export function pick<T>(all: readonly T[], n: number): T {
  return all[n % all.length] as T;
}
