// PostgreSQL on two machines as Patroni runs it: etcd, two members of a cluster, and HAProxy in front, which forwards to the
// primary. All of it on 127.0.0.1, with Debian's packages.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chmodSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { etcdArguments, haproxyConfiguration, type Member, patroniConfiguration } from "./configuration.js";

/** How the machine of the primary fails. */
export type Fault = "database killed" | "machine killed" | "machine stopped";

const POLL_MS = 100;
/** How long a primary that was stopped goes on beside the new one. */
const OLD_PRIMARY_MS = 2_000;
/** How long commits that are not waited for any more have until their callers learn it. */
const CANCEL_MS = 200;
const MAX_WAIT_MS = 90_000;

/** A running cluster. */
export class Cluster {
  /** The primary, through HAProxy. */
  readonly url: string;
  readonly #directory: string;
  readonly #synchronous: boolean;
  readonly #members: readonly Member[];
  readonly #patronis = new Map<Member, ChildProcess>();
  readonly #others: ChildProcess[] = [];

  /** @param directory an empty directory that the user postgres may read */
  static async start(directory: string, options: { synchronous: boolean; binaries: string }): Promise<Cluster> {
    const [client, peer, front, ...ports] = await freePorts(7);
    const members = [0, 1].map((n) => ({
      name: `node${n}`,
      directory: join(directory, `node${n}`),
      port: ports[2 * n] as number,
      restPort: ports[2 * n + 1] as number,
    }));
    const cluster = new Cluster(directory, members, front as number, options.synchronous);
    chmodSync(directory, 0o755);
    for (const member of members) {
      mkdirSync(member.directory, { mode: 0o700 });
      execFileSync("chown", ["postgres", member.directory]);
    }
    cluster.#others.push(cluster.#spawn("etcd", "etcd", etcdArguments(directory, client as number, peer as number)));
    for (const member of members) {
      const text = patroniConfiguration(member, { ...options, etcdPort: client as number });
      writeFileSync(join(directory, `${member.name}.yml`), text);
    }
    const proxy = join(directory, "haproxy.cfg");
    writeFileSync(proxy, haproxyConfiguration(front as number, members));
    const [first, second] = members as [Member, Member];
    try {
      cluster.#startPatroni(first);
      await cluster.#until("primary", async () => (await cluster.#primary()) !== undefined);
      cluster.#startPatroni(second);
      cluster.#others.push(cluster.#spawn("haproxy", "haproxy", ["-db", "-f", proxy]));
      await cluster.untilReplicated();
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  private constructor(directory: string, members: readonly Member[], front: number, synchronous: boolean) {
    this.#synchronous = synchronous;
    this.#directory = directory;
    this.#members = members;
    this.url = `postgres://postgres:secret@127.0.0.1:${front}/postgres`;
  }

  /** Waits until the standby follows the primary and Patroni would promote it without a loss. */
  async untilReplicated(): Promise<void> {
    await this.#until("standby", async () => {
      const primary = await this.#primary();
      if (primary === undefined) return false;
      const rows = await this.#query(
        primary,
        "SELECT state FROM pg_stat_replication WHERE application_name LIKE 'node%' AND state = 'streaming'",
      );
      const response = await fetch(`http://127.0.0.1:${primary.restPort}/cluster`, {
        signal: AbortSignal.timeout(1_000),
      });
      const { members } = (await response.json()) as { members: { role: string; state: string }[] };
      return rows.length > 0 && members.some(({ role }) => role === (this.#synchronous ? "sync_standby" : "replica"));
    });
  }

  /**
   * Lets the machine of the primary fail, and waits until the other one is primary.
   *
   * @param pauseMs for how long before that the standby receives nothing, in milliseconds; then commits that wait for it
   * are cancelled
   * @returns what brings the machine back
   */
  async fail(fault: Fault, pauseMs: number): Promise<() => Promise<void>> {
    const old = await this.#primary();
    if (old === undefined) throw new Error("there is no primary");
    const standby = this.#members.find((member) => member !== old) as Member;
    const paused = pauseMs > 0 ? this.#processesOf(standby, false) : [];
    for (const pid of paused) kill(pid, "SIGSTOP");
    await sleep(pauseMs);
    if (pauseMs > 0) {
      // As a timeout of the statement does. PostgreSQL then reports the commit as done, with a warning.
      await this.#query(old, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
      await sleep(CANCEL_MS);
    }
    const pids = this.#processesOf(old, fault !== "database killed");
    const signal = (name: NodeJS.Signals) => {
      for (const pid of pids) kill(pid, name);
    };
    if (fault === "machine stopped") signal("SIGSTOP");
    else signal("SIGKILL");
    // It would go on with what the machine of the standby had received but not read, which a cut network loses.
    for (const pid of paused.filter(isReceiver)) kill(pid, "SIGTERM");
    for (const pid of paused) kill(pid, "SIGCONT");
    await this.#until("other primary", async () => {
      const primary = await this.#primary();
      return primary !== undefined && primary !== old;
    });
    return async () => {
      if (fault === "database killed") return;
      if (fault === "machine stopped") {
        // A watchdog resets a machine that was stopped for so long. Until then its PostgreSQL goes on, which is still a
        // primary to itself. Patroni 3.0 must not go on: it takes the leadership back with the older timeline.
        this.#patronis.get(old)?.kill("SIGKILL");
        signal("SIGCONT");
        await sleep(OLD_PRIMARY_MS);
        signal("SIGKILL");
      }
      this.#startPatroni(old);
    };
  }

  /** Runs a statement on the primary itself. */
  async query(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const primary = await this.#primary();
    if (primary === undefined) throw new Error("there is no primary");
    return this.#query(primary, sql);
  }

  async stop(): Promise<void> {
    const pids = this.#members.flatMap((member) => this.#processesOf(member, true));
    for (const pid of pids) {
      kill(pid, "SIGKILL");
    }
    for (const child of this.#others) child.kill("SIGKILL");
    await sleep(200);
  }

  #startPatroni(member: Member): void {
    const args = ["--reuid=postgres", "--regid=postgres", "--clear-groups", "patroni"];
    this.#patronis.set(
      member,
      this.#spawn(member.name, "setpriv", [...args, join(this.#directory, `${member.name}.yml`)]),
    );
  }

  #spawn(name: string, program: string, args: readonly string[]): ChildProcess {
    const log = openSync(join(this.#directory, `${name}.log`), "a");
    return spawn(program, args, { stdio: ["ignore", log, log], cwd: this.#directory, detached: true });
  }

  /** PostgreSQL's main process and its children, after that of Patroni if `all`. */
  #processesOf(member: Member, all: boolean): number[] {
    let postmaster: number | undefined;
    try {
      postmaster = Number(readFileSync(join(member.directory, "data", "postmaster.pid"), "utf8").split("\n")[0]);
    } catch {
      // It does not run.
    }
    const patroni = all ? this.#patronis.get(member)?.pid : undefined;
    const roots = [patroni, postmaster].filter((pid) => pid !== undefined);
    return roots.flatMap((pid) => [pid, ...childrenOf(pid)]);
  }

  async #primary(): Promise<Member | undefined> {
    for (const member of this.#members) {
      const rows = await this.#query(member, "SELECT pg_is_in_recovery() AS standby").catch(() => []);
      if (rows[0]?.standby === false && (await this.#isLeader(member))) return member;
    }
    return undefined;
  }

  async #isLeader({ restPort }: Member): Promise<boolean> {
    try {
      const { status } = await fetch(`http://127.0.0.1:${restPort}/primary`, { signal: AbortSignal.timeout(1_000) });
      return status === 200;
    } catch {
      return false;
    }
  }

  async #query({ port }: Member, sql: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const connectionString = `postgres://postgres:secret@127.0.0.1:${port}/postgres`;
    const client = new pg.Client({ connectionString, connectionTimeoutMillis: 1_000, query_timeout: 10_000 });
    client.on("error", () => {});
    try {
      await client.connect();
      return (await client.query(sql)).rows;
    } finally {
      // A stopped server does not say goodbye.
      void client.end().catch(() => {});
    }
  }

  async #until(what: string, isReached: () => Promise<boolean>): Promise<void> {
    const endMs = performance.now() + MAX_WAIT_MS;
    while (!(await isReached().catch(() => false))) {
      if (performance.now() > endMs) throw new Error(`no ${what} after ${MAX_WAIT_MS} ms; see ${this.#directory}`);
      await sleep(POLL_MS);
    }
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended.
  }
}

function isReceiver(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("walreceiver");
  } catch {
    return false;
  }
}

function childrenOf(pid: number): number[] {
  return readdirSync("/proc").flatMap((name) => {
    try {
      const stat = readFileSync(`/proc/${Number(name)}/stat`, "utf8");
      const parent = Number(stat.slice(stat.lastIndexOf(")")).split(" ")[2]);
      return parent === pid ? [Number(name), ...childrenOf(Number(name))] : [];
    } catch {
      return [];
    }
  });
}

async function freePorts(length: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from(
      { length },
      () =>
        new Promise<ReturnType<typeof createServer>>((resolve) => {
          const server = createServer();
          server.listen(0, "127.0.0.1", () => resolve(server));
        }),
    ),
  );
  return servers.map((server) => {
    const address = server.address();
    server.close();
    if (address === null || typeof address === "string") throw new TypeError("no port");
    return address.port;
  });
}
