// A whole service for tests: real store, real sockets, on a free port. Time and
// rights are the test's to set.
import { join } from "node:path";
import { pino } from "pino";
import { type App, type AppOptions, startApp } from "../../src/app/app.js";
import { resolveSettings, type Settings } from "../../src/config/config.js";
import { resolveOrigin } from "../../src/config/origin.js";
import { type BootstrapResult, bootstrap } from "../../src/iam/operator/bootstrap.js";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import { issueToken, readIssueDate } from "../../src/issuer/tokens.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { type IdentityRow, identityKind } from "../../src/store/iam/identities.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { newDatabase } from "../pg/databases.js";
import { newDataDir } from "./data-dir.js";
import { identityRow } from "./rows.js";
import { memoryDir, tempDir } from "./temp-dir.js";

/** A running service and what tests need of it. */
export interface Harness {
  readonly app: App;
  /** Where it listens. */
  readonly url: string;
  /** Milliseconds to add to the time of the machine. */
  skewMs: number;
  /** A new organisation with its owner. */
  organisation(name: string): Promise<BootstrapResult & { readonly token: string }>;
  /** A new person, or with a group a new identity in it; without rights. */
  identity(values?: Partial<IdentityRow>, group?: string): Promise<{ readonly uid: string; readonly token: string }>;
  /** Binds an identity to a built-in role at a group; returns the uid of the binding. */
  bind(identity: string, role: string, group: string): Promise<string>;
  /**
   * A token for an identity, existing or not.
   *
   * @param mappings the uids of the mappings that the groups of its bearer's directory satisfy
   */
  token(identity: string, mappings?: readonly string[]): Promise<string>;
  stop(): Promise<void>;
}

export type HarnessOptions = Pick<AppOptions, "mounts" | "logger"> & { readonly values?: Partial<Settings> };

// Loaded where it is asked for: tests that start processes are those that import what starts them (scripts/test-files.mjs).
const loadPooler = () => import("../pg/pgbouncer.js");
let pooler: ReturnType<Awaited<ReturnType<typeof loadPooler>>["startPgBouncer"]> | undefined;

async function newStorage({ data, databaseUrl }: Readonly<Record<string, unknown>>): Promise<Record<string, string>> {
  if (data !== undefined) return {};
  if (databaseUrl !== undefined) return { data: memoryDir() };
  if (process.env.TEST_ARBOR_DATABASE_URL === undefined) return { data: newDataDir() };
  const masterKeyFile = join(tempDir(), "master.key");
  readMasterKey(masterKeyFile, true);
  const direct = await newDatabase();
  if (process.env.TEST_ARBOR_POOLER === undefined) return { data: memoryDir(), databaseUrl: direct, masterKeyFile };
  pooler ??= loadPooler().then(({ startPgBouncer }) => startPgBouncer(direct));
  const pooled = { databaseUrl: (await pooler).through(direct), databaseDirectUrl: direct };
  return { data: memoryDir(), ...pooled, databasePooler: "transaction", masterKeyFile };
}

/**
 * Starts a service on SQLite in a directory of its own, on the database of `databaseUrl`, or where
 * TEST_ARBOR_DATABASE_URL names a server, on a new database there; with TEST_ARBOR_POOLER through PgBouncer.
 *
 * @param settings flags of `arbor serve` by setting name, such as `{ rootCreation: "off" }`
 * @param options services to mount, a logger for tests that read its lines, and values of settings beyond what operators may
 * set, such as a rotation of keys every few seconds
 */
export async function startHarness(
  settings: Readonly<Record<string, string | boolean>> = {},
  { values, ...options }: HarnessOptions = {},
): Promise<Harness> {
  const storage = await newStorage(settings);
  // RSA keys take some hundred milliseconds to generate: tests whose subject they are ask for them.
  // Tests run in the process of the service and make it late, so no call is rejected for that.
  const quick = { tokenAlgorithm: "ES256", accessLog: false, metricsListen: "off", maxWait: "10m" };
  const flags = { listen: "127.0.0.1:0", ...quick, ...storage, ...settings };
  const resolved = { ...resolveSettings({ flags, env: {} }), ...values };
  const time = { skewMs: 0 };
  const clock = () => Date.now() + time.skewMs;
  const app = await startApp({ settings: resolved, clock, logger: pino({ level: "silent" }), ...options });
  const { store, keys } = app.installation;
  const port = Number(new URL(app.url).port);
  const { baseUrl, issuer } = resolveOrigin(resolved, { ...resolved.listen, port });
  const token = async (identity: string, mappings?: readonly string[]) => {
    const issueDate = await store.read((tx) => readIssueDate(tx, identity, clock()));
    return issueToken({ issuer, audience: baseUrl, identity, lifeS: 3600, mappings, ...issueDate }, keys, randomIds);
  };
  return {
    app,
    url: app.url,
    get skewMs() {
      return time.skewMs;
    },
    set skewMs(ms) {
      time.skewMs = ms;
    },
    async organisation(name) {
      const made = await store.write((tx) => bootstrap(tx, { org: name }, randomIds, clock()));
      return { ...made, token: await token(made.identity) };
    },
    async identity(values = {}, group) {
      const row = identityRow(randomIds.newUid(group), values);
      await store.write((tx) => tx.table(identityKind).insert(row));
      return { uid: row.uid, token: await token(row.uid) };
    },
    async bind(identity, role, group) {
      const uid = randomIds.newUid(group);
      await store.write((tx) =>
        tx.table(roleBindingKind).insert({
          uid,
          groupUid: group,
          identityUid: identity,
          roleUid: builtinRoleUid(role),
          automatic: false,
          accepted: false,
          managedByUid: null,
          endTimeMs: null,
          pending: false,
          createTimeMs: clock(),
          updateTimeMs: clock(),
        }),
      );
      return uid;
    },
    token,
    stop: () => app.stop(),
  };
}
