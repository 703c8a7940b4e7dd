// Runs attacks, named on the command line, all at once, in a process of its own:
// prepares them, waits for the word to begin, and for the word to stop.
import { setMaxListeners } from "node:events";
import type { Attack, Outcome } from "./attack.js";
import type { Target } from "./world.js";

/** What the parent says. */
export type AttackOrder =
  | { readonly do: "prepare"; readonly target: Target }
  | { readonly do: "begin" }
  | { readonly do: "stop" };

/** What is event to the parent. */
export type AttackReport =
  | { readonly event: "started" | "prepared" }
  | { readonly event: "over"; readonly outcomes: Readonly<Record<string, Outcome>> }
  | { readonly event: "failed"; readonly reason: string };

const names = process.argv.slice(2);
const stop = new AbortController();
setMaxListeners(0, stop.signal);
const say = (report: AttackReport) => process.send?.(report);
const attacks = await Promise.all(
  names.map(async (name) => {
    const loaded = (await import(`../attacks/${name}.js`)) as { readonly attack: Attack };
    return [name, loaded.attack] as const;
  }),
);
let states: readonly unknown[] = [];
let target: Target | undefined;

async function obey(order: AttackOrder): Promise<void> {
  if (order.do === "stop") stop.abort();
  else if (order.do === "prepare") {
    const given = order.target;
    target = given;
    states = await Promise.all(attacks.map(([, attack]) => attack.prepare?.(given)));
    say({ event: "prepared" });
  } else if (target !== undefined) {
    const aimed = target;
    const outcomes = await Promise.all(
      attacks.map(async ([name, attack], i) => [name, await attack.run(aimed, stop.signal, states[i])] as const),
    );
    say({ event: "over", outcomes: Object.fromEntries(outcomes) });
  }
}

// What the service does to the sockets of an attack is no error of the attack.
process.on("uncaughtException", (error) => say({ event: "failed", reason: String(error.stack ?? error) }));
process.on("message", (order: AttackOrder) => {
  obey(order).catch((error: Error) => say({ event: "failed", reason: String(error.stack ?? error) }));
});
process.on("disconnect", () => process.exit(0));
say({ event: "started" });
