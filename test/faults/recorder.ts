// Records what writers were told, and compares it with what is stored after a fault.

/** What is stored of a resource: the version of it, or that there is none. */
export type State = "absent" | "1" | "2";

/** Reads rows of the database after the fault. */
export type Query = (sql: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

interface Recorded {
  /** The last state that was acknowledged. */
  acknowledged: State;
  /** States of writes without an acknowledgement, which may or may not have happened. */
  readonly open: Set<State>;
  uid: string;
  /** How many acknowledged writes the audit log must have. */
  audited: number;
}

/** What a comparison found. */
export interface Findings {
  /** Resources of which an acknowledged write is missing. */
  readonly lost: readonly string[];
  /** Everything else that must not be: states that nobody wrote, duplicates, changes without an audit row. */
  readonly problems: readonly string[];
}

/** The writes of one run. Each resource has one writer, and a key that no other has. */
export class Recorder {
  acknowledged = 0;
  unanswered = 0;
  readonly #resources = new Map<string, Recorded>();

  /**
   * Runs a write and records how it ends.
   *
   * @param key the unique name of the resource
   * @param state what is stored once the write is done
   * @param write resolves to the uid of the resource when the write is acknowledged
   */
  async record(key: string, state: State, write: () => Promise<string>): Promise<string> {
    const recorded = this.#find(key);
    recorded.open.add(state);
    try {
      recorded.uid = await write();
    } catch (error) {
      this.unanswered++;
      throw error;
    }
    recorded.open.delete(state);
    recorded.acknowledged = state;
    recorded.audited++;
    this.acknowledged++;
    return recorded.uid;
  }

  /** Compares with the database: groups and identities by name, role bindings by their identity. */
  async compare(query: Query): Promise<Findings> {
    const stored = new Map<string, State>();
    const problems: string[] = [];
    const add = (key: string, state: unknown) => {
      if (stored.has(key)) problems.push(`${key} is stored twice`);
      stored.set(key, String(state) as State);
    };
    for (const table of ["groups", "identities"]) {
      const rows = await query(`SELECT name, description FROM ${table} WHERE name LIKE 'recorded %'`);
      for (const { name, description } of rows) add(String(name), description);
    }
    const bindings = await query(
      "SELECT i.name FROM role_bindings b JOIN identities i ON i.uid = b.identity_uid WHERE i.name LIKE 'recorded %'",
    );
    for (const { name } of bindings) add(bindingKey(String(name)), "1");
    const audited = new Map<string, number>();
    for (const { uid, count } of await query("SELECT subject_uid AS uid, count(*) AS count FROM audit GROUP BY 1")) {
      audited.set(String(uid), Number(count));
    }
    const lost: string[] = [];
    for (const [key, recorded] of this.#resources) {
      const state = stored.get(key) ?? "absent";
      const { acknowledged, open } = recorded;
      if (state !== acknowledged && !open.has(state)) {
        lost.push(`${key} ${recorded.uid}: ${acknowledged} was acknowledged, ${state} is stored`);
      } else if ((audited.get(recorded.uid) ?? 0) < recorded.audited) {
        problems.push(`${key} ${recorded.uid}: ${audited.get(recorded.uid) ?? 0} of ${recorded.audited} audit rows`);
      }
    }
    for (const key of stored.keys()) if (!this.#resources.has(key)) problems.push(`${key} was never written`);
    return { lost, problems };
  }

  #find(key: string): Recorded {
    let recorded = this.#resources.get(key);
    if (recorded === undefined) {
      recorded = { acknowledged: "absent", open: new Set(), uid: "", audited: 0 };
      this.#resources.set(key, recorded);
    }
    return recorded;
  }
}

/** The key of the role binding of an identity. */
export function bindingKey(identityName: string): string {
  return `${identityName} binding`;
}
