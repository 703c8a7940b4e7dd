// Writers that change groups, identities and role bindings through several nodes and protocols until they are stopped,
// and read each change on another node.
import { setTimeout as sleep } from "node:timers/promises";
import { type Api, CallError, type Kind } from "./api.js";
import { bindingKey, type Recorder, type State } from "./recorder.js";

/** What the writers experienced. */
export interface Experience {
  /** Reads that contradict what was acknowledged before they began. */
  readonly wrong: string[];
  /** Errors other than those that calls may get while there is no database. */
  readonly unexpected: string[];
  /** All errors. */
  readonly failed: string[];
  /** The longest time without an acknowledged write since the last reset, in milliseconds. */
  longestWriteGapMs(): number;
  /** The same for reads. */
  longestReadGapMs(): number;
  resetGaps(): void;
  stop(): Promise<void>;
}

export interface WritersOptions {
  readonly recorder: Recorder;
  /** One writer for each. What one writes is read through the next. */
  readonly apis: readonly Api[];
  /** The group to write in, and a role to bind. */
  readonly group: string;
  readonly role: string;
  /** The pause between the writes of a writer, in milliseconds; none unless set. */
  readonly pauseMs?: number;
  /** A failed call ends its writer, because the service is gone. */
  readonly endOnError?: boolean;
}

let count = 0;

/** Starts one writer per API. */
export function startWriters(options: WritersOptions): Experience & { readonly ended: Promise<void> } {
  const { recorder, apis, group, role, pauseMs = 0 } = options;
  const wrong: string[] = [];
  const unexpected: string[] = [];
  const failed: string[] = [];
  const [writes, reads] = [new Gap(), new Gap()];
  let stopped = false;

  async function runWriter(api: Api, reader: Api): Promise<void> {
    while (!stopped) {
      try {
        await writeOnce(api, reader);
      } catch (error) {
        if (!(error instanceof CallError)) throw error;
        failed.push(error.message);
        if (options.endOnError) return;
        if (!error.allowed) unexpected.push(error.message);
        await sleep(50);
      }
    }
  }

  // What follows a failed write is not tried: nobody knows whether the resource exists.
  async function writeOnce(api: Api, reader: Api): Promise<void> {
    const name = `recorded ${process.pid} ${count++}`;
    const write = async (key: string, state: State, calling: () => Promise<string>) => {
      const uid = await recorder.record(key, state, calling);
      writes.end();
      if (pauseMs > 0) await sleep(pauseMs);
      return uid;
    };
    const expect = async (kind: Kind, uid: string, expected: string | undefined) => {
      const actual = await reader.read(kind, uid);
      reads.end();
      if (actual !== expected) wrong.push(`${kind} ${uid} is ${actual} and not ${expected}`);
    };
    const top = await write(name, "1", () => api.create("groups", group, name));
    await expect("groups", top, "1");
    await write(name, "2", () => api.update("groups", top));
    await expect("groups", top, "2");
    const person = `${name} person`;
    const identity = await write(person, "1", () => api.create("identities", top, person));
    const key = bindingKey(person);
    const binding = await write(key, "1", () => api.bind(top, identity, role));
    await write(person, "2", () => api.update("identities", identity));
    await expect("identities", identity, "2");
    if (count % 2 === 0) await write(key, "absent", () => api.remove("roleBindings", binding));
    const child = await write(`${name} child`, "1", () => api.create("groups", top, `${name} child`));
    await write(`${name} child`, "absent", () => api.remove("groups", child));
    await expect("groups", child, undefined);
  }

  const ended = Promise.all(apis.map((api, n) => runWriter(api, apis[(n + 1) % apis.length] as Api))).then(() => {});
  ended.catch(() => {});
  return {
    wrong,
    unexpected,
    failed,
    longestWriteGapMs: () => writes.longestMs(),
    longestReadGapMs: () => reads.longestMs(),
    resetGaps() {
      writes.reset();
      reads.reset();
    },
    ended,
    async stop() {
      stopped = true;
      await ended;
    },
  };
}

/** The longest time between two successes of any writer. */
class Gap {
  #lastMs = performance.now();
  #longestMs = 0;

  end(): void {
    this.#longestMs = this.longestMs();
    this.#lastMs = performance.now();
  }

  longestMs(): number {
    return Math.max(this.#longestMs, performance.now() - this.#lastMs);
  }

  reset(): void {
    this.#lastMs = performance.now();
    this.#longestMs = 0;
  }
}
