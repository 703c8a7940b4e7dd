// Kills whole servers on SQLite, which are written to over REST and gRPC, and looks whether everything they acknowledged is
// there afterwards.
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import { grpcApi, restApi } from "../faults/api.js";
import { Recorder } from "../faults/recorder.js";
import { createOwner, findViewer, type Owner, startService, verifyDatabase } from "../faults/service.js";
import { startWriters } from "../faults/writers.js";
import { inconsistenciesIn } from "../support/consistency.js";

const WRITERS = 8;

/** Ends the service, and leaves its data as it is found afterwards. */
export type End = (kill: () => void) => Promise<void>;

/** What one run of a service on a directory did. */
export interface ServerRun {
  readonly acknowledged: number;
  readonly lost: readonly string[];
  readonly problems: readonly string[];
  /** From the start of the process until it listened, in milliseconds. */
  readonly startMs: number;
}

/** A data directory that several servers use, one after the other. */
export class ServedDirectory {
  readonly #recorder = new Recorder();
  readonly #directory: string;
  readonly #preload: readonly string[];
  #owner: Owner | undefined;
  readonly #reported = new Set<string>();

  constructor(directory: string, preload: readonly string[] = []) {
    this.#directory = directory;
    this.#preload = preload;
  }

  /** Creates the database with an organisation, where there is none. */
  async prepare(): Promise<Owner> {
    this.#owner ??= await createOwner(["--data", this.#directory], "kill9.example");
    return this.#owner;
  }

  /** Starts a server, writes, and ends it while it is written to. */
  async run(end: End): Promise<ServerRun> {
    const { group, token } = await this.prepare();
    const flags = ["--data", this.#directory];
    const service = await startService(flags, this.#preload);
    const exited = once(service.child, "exit");
    const role = await findViewer(service, token);
    const apis = Array.from({ length: WRITERS }, (_, n) => (n % 2 === 0 ? restApi : grpcApi)(service.url, token));
    const before = this.#recorder.acknowledged;
    const writers = startWriters({ recorder: this.#recorder, apis, group, role, endOnError: true });
    await sleep(100 + Math.random() * 400);
    await end(() => service.child.kill("SIGKILL"));
    await exited;
    for (const api of apis) api.close();
    await writers.stop();
    return {
      ...(await this.#compare(writers.wrong)),
      acknowledged: this.#recorder.acknowledged - before,
      startMs: service.startMs,
    };
  }

  /** Runs `arbor check` and `arbor audit verify`. */
  async verify(): Promise<readonly string[]> {
    const flags = ["--data", this.#directory];
    const service = await startService(flags, this.#preload);
    const exited = once(service.child, "exit");
    try {
      return await verifyDatabase(flags);
    } finally {
      service.child.kill("SIGTERM");
      await exited;
    }
  }

  // Opened as the next server would: the lock must be free, and the log is replayed.
  async #compare(wrong: readonly string[]) {
    const store = openSqlite({ directory: this.#directory, exclusive: true });
    await store.check();
    await store.close();
    const db = openDatabase(join(this.#directory, "arbor.db"), { readonly: true });
    try {
      const { lost, problems } = await this.#recorder.compare(
        async (sql) => db.prepare(sql).all() as Record<string, unknown>[],
      );
      // What one end lost is not counted again after the next.
      const isNew = (text: string) => !this.#reported.has(text) && this.#reported.add(text).size > 0;
      return { lost: lost.filter(isNew), problems: [...problems.filter(isNew), ...wrong, ...inconsistenciesIn(db)] };
    } finally {
      db.close();
    }
  }
}
