// Clients that move a failed call to another node, until it succeeds. A create without an answer may have happened: it is
// looked for by its name before it is sent again. The other writes are the same done twice.
import { setTimeout as sleep } from "node:timers/promises";
import { type Api, CallError } from "./api.js";

/** How long a call is tried again, in milliseconds. */
const RETRY_MS = 20_000;
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 1_000;

/** How many attempts failed, of all clients. */
export interface RetryCounts {
  retries: number;
  /** Creates that had happened although their answer was lost. */
  found: number;
}

/** Calls the first of `nodes` that answers; one alone stands for a proxy. */
export function retrying(nodes: readonly Api[], counts: RetryCounts): Api {
  let current = 0;

  /** @param run gets whether an attempt before may have been carried out */
  async function call<T>(run: (api: Api, isRepeated: boolean) => Promise<T>): Promise<T> {
    const endMs = performance.now() + RETRY_MS;
    for (let attempt = 0; ; attempt++) {
      try {
        return await run(nodes[current % nodes.length] as Api, attempt > 0);
      } catch (error) {
        if (!(error instanceof CallError && error.allowed) || performance.now() > endMs) throw error;
        counts.retries++;
        current++;
        await sleep(Math.min(FIRST_PAUSE_MS * 2 ** attempt, MAX_PAUSE_MS) * (0.5 + Math.random() / 2));
      }
    }
  }

  return {
    create: (kind, parent, name) =>
      call(async (api, isRepeated) => {
        const made = isRepeated ? await api.find(kind, parent, name) : undefined;
        if (made !== undefined) counts.found++;
        return made ?? api.create(kind, parent, name);
      }),
    update: (kind, uid) => call((api) => api.update(kind, uid)),
    bind: (parent, identity, role) => call((api) => api.bind(parent, identity, role)),
    remove: (kind, uid) =>
      call((api, isRepeated) =>
        api.remove(kind, uid).catch((error) => {
          // An attempt before has removed it.
          if (isRepeated && error instanceof CallError && error.isNotFound) return uid;
          throw error;
        }),
      ),
    read: (kind, uid) => call((api) => api.read(kind, uid)),
    find: (kind, parent, name) => call((api) => api.find(kind, parent, name)),
    close() {
      for (const api of nodes) api.close();
    },
  };
}
