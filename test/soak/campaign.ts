// Runs a service while its clock leaps through most of a year, and looks whether its memory and its tables grow. All that
// the load makes it deletes again, or it expires, so no table may grow.
import { randomBytes, randomUUID } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { Agent as HttpAgent, request } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { connectTo } from "../../src/client/index.js";
import { openDatabase, type SqliteDatabase } from "../../src/store/sqlite/driver.js";
import { RECEIVER_SETTINGS, startReceiver } from "../events/receiver.js";
import { runArbor } from "../faults/service.js";
import { Agent, alice, codeRequest, newPkce, postForm } from "../issuer/oauth/login-kit.js";
import { deviceLogin } from "../issuer/oauth/login-world.js";
import { spawn } from "../support/child-process.js";
import { newDataDir } from "../support/data-dir.js";
import { freePort } from "../support/free-port.js";
import { type LocalIssuer, startLocalIssuer } from "../support/local-issuer.js";
import { type OidcProvider, startOidcProvider } from "../support/oidc-provider.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";

/** What a control breaks: `leak` keeps some memory of each request, `sweep` keeps rows that have expired. */
export type Control = "leak" | "sweep";

export interface SoakOptions {
  readonly minutes: number;
  readonly workers: number;
  /** The file of leaps, which this process follows as well. */
  readonly leapsFile: string;
  readonly control?: Control | undefined;
  readonly onRound?: (round: number, rounds: number, memory: readonly ProcessMemory[]) => void;
}

/** The memory of one process after garbage was collected, in bytes, from the first sample to the last. */
export interface ProcessMemory {
  readonly pid: number;
  readonly used: readonly number[];
  readonly rss: readonly number[];
}

/** The rows of a table: the means of the second and the last quarter, and the most at any time. */
export interface TableRows {
  readonly table: string;
  readonly before: number;
  readonly after: number;
  readonly most: number;
}

export interface SoakResult {
  readonly calls: number;
  readonly leaptDays: number;
  readonly memory: readonly (ProcessMemory & { readonly growth: number })[];
  readonly tables: readonly TableRows[];
  readonly problems: readonly string[];
}

/** A round ends with a leap. */
const ROUND_MS = 5_000;
/** The sum of all leaps: ten times as long as the longest time after which rows are deleted, which is 30 days. */
const LEAPT_DAYS = 300;
const AUDIT_RETENTION = "10d";
/** How long all processes may take to follow a leap, in pauses. */
const [FOLLOW_PAUSES, FOLLOW_PAUSE_MS] = [200, 50];
/** How much the fitted line of a process may grow over the second half of the samples. */
export const MEMORY_TOLERANCE = 2 * 1024 * 1024;
/** How much more rows a table may have in the last quarter than in the second: this share, and a few of a round. */
export const ROWS_SHARE = 0.1;
export const ROWS_MORE = 15;

const SECRET = randomBytes(24).toString("hex");
const DAY_MS = 24 * 3_600_000;

export async function runSoak(options: SoakOptions): Promise<SoakResult> {
  const rounds = Math.max(8, Math.round((options.minutes * 60_000) / ROUND_MS));
  const soak = await Soak.start(options);
  try {
    for (let round = 0; round < rounds; round++) {
      await soak.run(round, (LEAPT_DAYS * DAY_MS) / rounds);
      options.onRound?.(round, rounds, soak.readMemory());
    }
    return soak.judge();
  } finally {
    await soak.stop();
  }
}

interface Running {
  readonly url: string;
  readonly data: string;
  readonly db: SqliteDatabase;
  readonly provider: OidcProvider;
  readonly issuer: LocalIssuer;
  readonly receiver: Awaited<ReturnType<typeof startReceiver>>;
  readonly child: ReturnType<typeof spawn>;
  readonly root: string;
  readonly token: string;
}

class Soak {
  readonly #running: Running;
  readonly #leapsFile: string;
  #token: string;
  #identity = "";
  #calls = 0;
  #leaptMs = 0;
  #leaps = 0;
  readonly #expectedProcesses: number;
  /** What the round before left, which the next one deletes. */
  #left: (() => Promise<void>)[] = [];
  readonly #refreshTokens: string[] = [];
  readonly #rows = new Map<string, number[]>();
  readonly #problems: string[] = [];

  private constructor(running: Running, { leapsFile, workers }: SoakOptions) {
    this.#running = running;
    this.#leapsFile = leapsFile;
    this.#token = running.token;
    this.#expectedProcesses = workers === 1 ? 1 : workers + 1;
  }

  static async start(options: SoakOptions): Promise<Soak> {
    const { leapsFile, workers, control } = options;
    const data = newDataDir();
    const [port, files] = [await freePort(), tempDir()];
    const url = `http://127.0.0.1:${port}`;
    const provider = await startOidcProvider({ account: alice });
    provider.allowRedirect(`${url}/oauth/callback`);
    const issuer = await startLocalIssuer();
    // What is about groups that were deleted is refused for ever, so that there are dead letters.
    const receiver = await startReceiver(({ event }) => (event.type.includes("deleted") ? 500 : 200));
    const file = (name: string, text: string) => {
      writeFileSync(join(files, name), text, { mode: 0o600 });
      return join(files, name);
    };
    const clientSecretFile = file("client.secret", provider.clientSecret ?? "");
    const login = {
      name: "test",
      title: "Test",
      issuer: provider.issuer,
      clientId: provider.clientId,
      clientSecretFile,
    };
    const settings = {
      ...{ data, listen: `127.0.0.1:${port}`, "base-url": url, "token-algorithm": "ES256", registration: "open" },
      ...{ "login-providers": file("login-providers.json", JSON.stringify([login])), "access-log": "off" },
      ...{ "log-level": "warn", "metrics-listen": "off", "audit-retention": AUDIT_RETENTION },
      ...{ "trusted-sinks": RECEIVER_SETTINGS.trustedSinks, "sink-ca": RECEIVER_SETTINGS.sinkCa },
      ...{ "trusted-issuers": `${provider.issuer},${issuer.issuer}`, "registry-url": "https://registry.example" },
      ...{ "registry-secret-file": file("registry.secret", SECRET), ...(workers > 1 && { workers: String(workers) }) },
    };
    const made = JSON.parse(
      await runArbor(["bootstrap", "--org", "soak.example", "--base-url", url, "--json", "--data", data]),
    ) as { group: string; token: string };
    const preloads = ["leaping-clock.mjs", ...(control === "leak" ? ["leak.mjs"] : [])];
    const imports = preloads.map((name) => `--import=${pathToFileURL(join(PROJECT, "test/soak", name)).href}`);
    const flags = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
    const child = spawn(process.execPath, [...scriptArguments("src/main.ts"), "serve", ...flags], {
      cwd: PROJECT,
      env: { ...environmentWithoutSettings(), NODE_OPTIONS: imports.join(" "), LEAPS_FILE: leapsFile },
      stdio: ["ignore", "ignore", "inherit"],
      // By the clock of this process, which leaps.
      timeout: LEAPT_DAYS * DAY_MS + (options.minutes + 5) * 60_000,
    });
    const isReady = () =>
      fetch(`${url}/readyz`).then(
        ({ status }) => status === 200,
        () => false,
      );
    await waitUntil(isReady, 20_000);
    const db = openDatabase(join(data, "arbor.db"), { readonly: control !== "sweep" });
    if (control === "sweep") {
      for (const table of ["refresh_tokens", "registry_events"]) {
        db.exec(`CREATE TRIGGER keep_${table} BEFORE DELETE ON ${table} BEGIN SELECT RAISE(IGNORE); END`);
      }
    }
    const { group: root, token } = made;
    const soak = new Soak({ url, data, db, provider, issuer, receiver, child, root, token }, options);
    await soak.#prepare();
    return soak;
  }

  /** Makes a round of calls, some 20 a second, and leaps. */
  async run(round: number, leapMs: number): Promise<void> {
    const startNs = process.hrtime.bigint();
    await this.#renewToken();
    for (const makeCalls of [
      () => this.#signIn(round),
      () => this.#abandonLogins(),
      () => this.#exchange(),
      () => this.#changeGroups(round),
      () => this.#pushTags(round),
      () => this.#read(),
    ]) {
      try {
        await makeCalls();
      } catch (error) {
        this.#problems.push(`round ${round}: ${(error as Error).message}`);
      }
    }
    const spentMs = Number(process.hrtime.bigint() - startNs) / 1e6;
    // Not above a second, because longer timers of this process leap as well.
    for (let leftMs = ROUND_MS - spentMs; leftMs > 0; leftMs -= 500) await sleep(Math.min(500, leftMs));
    this.#countRows();
    await this.#leap(leapMs);
    this.#running.receiver.received.length = 0;
  }

  readMemory(): ProcessMemory[] {
    const { pid } = this.#running.child;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
    return [pid, ...children.map(Number)].flatMap((one = 0) => {
      const file = `${this.#leapsFile}.${one}`;
      if (one === 0 || !existsSync(file)) return [];
      const samples = readFileSync(file, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
      const used = samples.map(({ heapUsed, external }) => heapUsed + external);
      return { pid: one, used, rss: samples.map(({ rss }) => rss) };
    });
  }

  judge(): SoakResult {
    const problems = [...this.#problems];
    const memory = this.readMemory().map((one) => ({ ...one, growth: growthOf(one.used.slice(one.used.length >> 1)) }));
    for (const { pid, growth } of memory) {
      if (growth > MEMORY_TOLERANCE) problems.push(`the memory of process ${pid} grew by ${toMiB(growth)} MiB`);
    }
    const tables = [...this.#rows].map(([table, counts]) => {
      const quarter = counts.length >> 2;
      const mean = (from: number) => counts.slice(from, from + quarter).reduce((sum, n) => sum + n, 0) / quarter;
      return { table, before: mean(quarter), after: mean(counts.length - quarter), most: Math.max(...counts) };
    });
    for (const { table, before, after } of tables) {
      if (after > before * (1 + ROWS_SHARE) + ROWS_MORE) {
        problems.push(`${table} grew from ${before.toFixed(1)} to ${after.toFixed(1)} rows`);
      }
    }
    for (const table of EXPIRING) {
      if (!(this.#rows.get(table) ?? []).some((count) => count > 0)) problems.push(`${table} never had a row`);
    }
    return { calls: this.#calls, leaptDays: this.#leaptMs / DAY_MS, memory, tables, problems };
  }

  async stop(): Promise<void> {
    const { child, provider, issuer, receiver, db } = this.#running;
    child.kill("SIGKILL");
    receiver.close();
    db.close();
    await Promise.all([provider.stop(), issuer.stop()]);
  }

  /** Lets the clocks of all processes leap, of which each collects garbage and writes its memory. */
  async #leap(leapMs: number): Promise<void> {
    this.#leaptMs += leapMs;
    this.#leaps++;
    writeFileSync(`${this.#leapsFile}.new`, JSON.stringify({ leaptMs: this.#leaptMs, leaps: this.#leaps }));
    renameSync(`${this.#leapsFile}.new`, this.#leapsFile);
    const hasFollowed = () => this.readMemory().filter(({ used }) => used.length === this.#leaps).length;
    for (let pauses = 0; hasFollowed() < this.#expectedProcesses; pauses++) {
      if (pauses === FOLLOW_PAUSES) throw new Error(`${hasFollowed()} of ${this.#expectedProcesses} processes follow`);
      await sleep(FOLLOW_PAUSE_MS);
    }
    // This process as well.
    await sleep(FOLLOW_PAUSE_MS * 2);
  }

  #countRows(): void {
    const { db } = this.#running;
    const names = db
      .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
      .all() as { name: string }[];
    for (const { name } of names) {
      const { n } = db.prepare(`SELECT count(*) AS n FROM "${name}"`).get() as { n: number };
      const counts = this.#rows.get(name) ?? [];
      this.#rows.set(name, [...counts, n]);
    }
  }

  /** A call over REST on a connection of its own, so that each worker gets some. */
  async #call(method: string, path: string, body?: object, token = this.#token): Promise<Record<string, string>> {
    this.#calls++;
    const { status, text } = await send(this.#running.url + path, method, token, body);
    await sleep(20);
    if (status !== 200) throw new Error(`${method} ${path}: ${status} ${text.slice(0, 300)}`);
    return text === "" ? {} : JSON.parse(text);
  }

  async #prepare(): Promise<void> {
    const { root, issuer, receiver } = this.#running;
    const claimMatch = { issuer: issuer.issuer, subject: "soak" };
    const { uid = "" } = await this.#call("POST", `/iam/v2/identities/${root}`, { name: "soak", claimMatch });
    this.#identity = uid;
    const { roles } = (await this.#call("GET", "/iam/v2/roles?name=owner")) as unknown as { roles: { uid: string }[] };
    const binding = { identityUid: uid, roleUid: roles[0]?.uid };
    await this.#call("POST", `/iam/v2/roleBindings/${root}`, binding);
    await this.#call("POST", `/events/v2/subscriptions/${root}`, { sink: receiver.url });
  }

  async #renewToken(): Promise<void> {
    this.#token = await this.#exchangeToken("soak");
  }

  async #exchangeToken(sub: string): Promise<string> {
    const { url, issuer } = this.#running;
    const query = new URLSearchParams({ aud: url, identity: this.#identity });
    const bearer = issuer.token({ sub, aud: url });
    const { token = "" } = await this.#call("POST", `/sts/exchange?${query}`, undefined, bearer);
    return token;
  }

  async #exchange(): Promise<void> {
    for (let i = 0; i < 10; i++) await this.#exchangeToken("soak");
    // A wrong subject is refused, and counted for its address.
    await this.#exchangeToken(`wrong ${randomUUID()}`).then(
      () => this.#problems.push("a wrong subject was accepted"),
      () => {},
    );
  }

  /** A person signs in for a device, and its refresh tokens are used. */
  async #signIn(round: number): Promise<void> {
    const { url, provider } = this.#running;
    const subject = `person-${round % 3}`;
    provider.account = { ...alice, subject, claims: { ...alice.claims, email: `${subject}@example.org` } };
    const { refresh_token: first } = await deviceLogin(url, { scope: "openid offline_access" });
    this.#calls += 8;
    this.#refreshTokens.push(String(first));
    if (this.#refreshTokens.length > 8) this.#refreshTokens.shift();
    const [oldest = ""] = this.#refreshTokens;
    const refresh = async (token: string) => {
      this.#calls++;
      return postForm(`${url}/oauth/token`, { grant_type: "refresh_token", client_id: "auth0", refresh_token: token });
    };
    const { status, body } = await refresh(String(first));
    if (status !== 200) throw new Error(`refresh: ${status} ${JSON.stringify(body)}`);
    this.#refreshTokens[this.#refreshTokens.length - 1] = String(body.refresh_token);
    const old = await refresh(oldest);
    if (old.status === 200) this.#refreshTokens[0] = String(old.body.refresh_token);
    else this.#refreshTokens.shift();
  }

  async #abandonLogins(): Promise<void> {
    const { url } = this.#running;
    for (let i = 0; i < 3; i++) {
      const query = new URLSearchParams(codeRequest(newPkce().challenge));
      await new Agent().get(`${url}/oauth?${query}`).catch(() => {});
      await postForm(`${url}/oauth/device_authorization`, { client_id: "robot" });
      this.#calls += 2;
      await sleep(50);
    }
  }

  async #changeGroups(round: number): Promise<void> {
    const { root } = this.#running;
    for (const remove of this.#left.splice(0)) await remove();
    const viewer = await this.#call("GET", "/iam/v2/roles?name=viewer");
    const roleUid = (viewer as unknown as { roles: { uid: string }[] }).roles[0]?.uid;
    for (let i = 0; i < 3; i++) {
      const { uid: group = "" } = await this.#call("POST", `/iam/v2/groups/${root}`, { name: `round ${round} ${i}` });
      await this.#call("PATCH", `/iam/v2/groups/${group}`, { description: randomBytes(50).toString("hex") });
      const claimMatch = { issuer: this.#running.issuer.issuer, subject: randomUUID() };
      const { uid: identityUid = "" } = await this.#call("POST", `/iam/v2/identities/${group}`, {
        ...{ name: "workload", claimMatch },
      });
      const binding = await this.#call("POST", `/iam/v2/roleBindings/${group}`, { identityUid, roleUid });
      await this.#call("POST", `/iam/v2/groupInvites/${group}`, { roleUid, ttl: "600s" });
      await this.#call("POST", `/iam/v2/groupInvites/${group}`, { roleUid, ttl: "600s", singleUse: true });
      // After the leap the invites have expired, and go with their group.
      this.#left.push(async () => {
        if (i > 0) await this.#call("DELETE", `/iam/v2/roleBindings/${binding.uid}`);
        await this.#call("DELETE", `/iam/v2/identities/${identityUid}`);
        await this.#call("DELETE", `/iam/v2/groups/${group}`);
      });
    }
  }

  /** A registry tells of pushed tags, and of manifests that were deleted. */
  async #pushTags(round: number): Promise<void> {
    const { root } = this.#running;
    const mediaType = "application/vnd.oci.image.manifest.v1+json";
    const event = (action: string, target: object) => ({
      ...{ id: randomUUID(), action, timestamp: new Date().toISOString() },
      target: { mediaType, repository: `${root}/app`, ...target },
    });
    for (let i = 0; i < 3; i++) {
      const digest = `sha256:${randomBytes(32).toString("hex")}`;
      const path = "/registry/notifications";
      const events = [event("push", { tag: `r${round}-${i}`, digest })];
      await this.#call("POST", path, { events }, SECRET);
      await sleep(10);
      await this.#call("POST", path, { events: [event("delete", { digest })] }, SECRET);
    }
  }

  async #read(): Promise<void> {
    const { root, url } = this.#running;
    for (let i = 0; i < 10; i++) {
      const page = await this.#call("GET", "/iam/v2/groups?page_size=2");
      if (page.nextPageToken) {
        await this.#call("GET", `/iam/v2/groups?page_size=2&page_token=${encodeURIComponent(page.nextPageToken)}`);
      }
      await this.#call("GET", `/iam/v2/groups/${root}`);
      await this.#call("GET", `/audit/v1/events?scope=${root}&page_size=5`);
    }
    const connection = connectTo({ baseUrl: url, token: { token: async () => this.#token } });
    const groups = connection.client(GroupsService);
    for (let i = 0; i < 10; i++) {
      await groups.listGroups({ pageSize: 5 });
      this.#calls++;
      await sleep(20);
    }
    connection.close();
  }
}

/** Tables whose rows expire or are deleted by their age. Each must have had rows. */
const EXPIRING = [
  ...["tickets", "refresh_tokens", "registry_events", "tag_marks", "event_deliveries", "group_invites"],
  ...["audit", "audit_chain", "keys"],
];

function send(url: string, method: string, token: string, body?: object): Promise<{ status: number; text: string }> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers = {
    authorization: `Bearer ${token}`,
    ...(text !== undefined && { "content-type": "application/json", "content-length": Buffer.byteLength(text) }),
  };
  return new Promise((resolve, reject) => {
    const agent = new HttpAgent({ keepAlive: false });
    const req = request(url, { method, headers, agent }, (res) => {
      let received = "";
      res.setEncoding("utf8").on("data", (chunk) => (received += chunk));
      res.on("error", reject).on("end", () => resolve({ status: res.statusCode ?? 0, text: received }));
    });
    req.on("error", reject).end(text);
  });
}

/** How much the line of least squares grows from the first value to the last. */
export function growthOf(values: readonly number[]): number {
  const middle = (values.length - 1) / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  let [above, below] = [0, 0];
  for (const [i, value] of values.entries()) {
    above += (i - middle) * (value - mean);
    below += (i - middle) ** 2;
  }
  return (above / below) * (values.length - 1);
}

export function toMiB(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(2);
}
