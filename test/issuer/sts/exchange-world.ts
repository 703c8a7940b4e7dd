// A service with the issuers it asks, all on this machine: one of workloads, one
// that people sign in with.
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { personUid } from "../../../src/kernel/ids.js";
import { type IdentityRow, identityKind } from "../../../src/store/iam/identities.js";
import { openDatabase, type SqliteDatabase, type SqliteStatement } from "../../../src/store/sqlite/driver.js";
import type { Tx } from "../../../src/store/transaction.js";
import { newDataDir } from "../../support/data-dir.js";
import { type Harness, type HarnessOptions, startHarness } from "../../support/harness.js";
import { type LocalIssuer, startLocalIssuer } from "../../support/local-issuer.js";
import { type Answer, ask, queryOf } from "./ask.js";

/** The client of this service at its login provider. */
export const CLIENT = "arbor-at-the-login-provider";

/** A caller. */
export interface Somebody {
  readonly uid: string;
  readonly token: string;
}

/** Parameters of an exchange, as they are written in a query. */
export type Parameters = Readonly<Record<string, string | readonly string[]>>;

/** The world. */
export interface ExchangeWorld {
  readonly harness: Harness;
  readonly url: string;
  /** The data directory. */
  readonly data: string;
  /** Issues tokens of workloads; trusted by nothing but the identities that name it. */
  readonly workloads: LocalIssuer;
  /** The login provider of the service. */
  readonly people: LocalIssuer;
  /** An organisation, and another. */
  readonly root: string;
  readonly foreign: string;
  readonly owner: Somebody;
  readonly foreignOwner: Somebody;
  /** A new identity of a group; with a role it is bound to that there. */
  assumable(relationship: object, parent?: { readonly group?: string; readonly role?: string }): Promise<string>;
  /** Creates an identity that tokens of `workloads` with this subject may assume. */
  workload(subject: string, parent?: { readonly group?: string; readonly role?: string }): Promise<string>;
  /** A new person whom the login provider knows by `subject`. */
  person(subject: string, values?: Partial<IdentityRow>): Promise<Somebody>;
  /** A token of `workloads` for this service. */
  token(claims: Readonly<Record<string, unknown>>): string;
  /** An ID token of `people` for this service. */
  idToken(claims: Readonly<Record<string, unknown>>): string;
  /** `GET /sts/exchange`, for this service unless `parameters` say otherwise. */
  exchange(parameters: Parameters, bearer: string | undefined): Promise<Answer>;
  /** The API token of such an exchange, which must succeed. */
  exchangeToken(parameters: Parameters, bearer: string): Promise<string>;
  write<T>(unit: (tx: Tx) => Promise<T>): Promise<T>;
  stop(): Promise<void>;
}

/** Starts it; `settings` and `options` as for the harness. */
export async function startExchangeWorld(
  settings: Readonly<Record<string, string | boolean>> = {},
  options: HarnessOptions = {},
): Promise<ExchangeWorld> {
  const time: { harness?: Harness } = {};
  const clock = () => Date.now() + (time.harness?.skewMs ?? 0);
  const [workloads, people] = [await startLocalIssuer(clock), await startLocalIssuer(clock)];
  const data = newDataDir();
  const loginProviders = join(data, "login-providers.json");
  const provider = { name: "people", title: "People", issuer: people.issuer, clientId: CLIENT };
  writeFileSync(loginProviders, JSON.stringify([provider]));
  const trustedIssuers = [workloads.issuer, people.issuer, settings.trustedIssuers ?? []].flat().join();
  const harness = await startHarness({ data, loginProviders, ...settings, trustedIssuers }, options);
  time.harness = harness;
  const { url } = harness;
  const [ours, theirs] = [await harness.organisation("ours"), await harness.organisation("theirs")];
  const write: ExchangeWorld["write"] = (unit) => harness.app.installation.store.write(unit);
  const exchange: ExchangeWorld["exchange"] = (parameters, bearer) =>
    ask(url, `/sts/exchange?${queryOf({ aud: url, ...parameters })}`, { bearer });
  const assumable: ExchangeWorld["assumable"] = async (relationship, { group = ours.group, role } = {}) => {
    const { uid } = await harness.identity({ relation: 1, relationship }, group);
    if (role !== undefined) await harness.bind(uid, role, group);
    return uid;
  };
  return {
    harness,
    url,
    data,
    workloads,
    people,
    root: ours.group,
    foreign: theirs.group,
    owner: { uid: ours.identity, token: ours.token },
    foreignOwner: { uid: theirs.identity, token: theirs.token },
    assumable,
    workload: (subject, parent) => assumable({ claimMatch: { issuer: workloads.issuer, subject } }, parent),
    async person(subject, values = {}) {
      const uid = personUid(people.issuer, subject);
      const { uid: made } = await harness.identity({ issuer: people.issuer, subject, ...values });
      // The harness gives uids by chance; those of people follow from who they are.
      await write(async (tx) => {
        const row = await tx.table(identityKind).find(made);
        await tx.table(identityKind).delete(made);
        if (row) await tx.table(identityKind).insert({ ...row, uid });
      });
      return { uid, token: await harness.token(uid) };
    },
    token: (claims) => workloads.token({ aud: url, ...claims }),
    idToken: (claims) => people.token({ aud: CLIENT, ...claims }),
    exchange,
    async exchangeToken(parameters, bearer) {
      const { status, json, text } = await exchange(parameters, bearer);
      if (status !== 200) throw new Error(`the exchange was rejected: ${text}`);
      return String(json.token);
    },
    write,
    async stop() {
      readers.get(data)?.db.close();
      readers.delete(data);
      await harness.stop();
      await workloads.stop();
      await people.stop();
    },
  };
}

/** The claims of a token, unverified. */
export function claimsOf(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as Record<string, unknown>;
}

interface Reader {
  readonly db: SqliteDatabase;
  /** The statements that read the tables, by name. */
  readonly tables: ReadonlyMap<string, SqliteStatement>;
}

/** By data directory, since a test may need many dumps; closed with the world. */
const readers = new Map<string, Reader>();

/**
 * All that is stored, by table, to see whether anything changed: but for the audit log, background jobs, and when
 * identities were seen, which is written down some time later.
 */
export function dumpOf(data: string): Record<string, string> {
  const reader = readers.get(data) ?? openReader(data);
  readers.set(data, reader);
  return Object.fromEntries(
    [...reader.tables].map(([name, statement]) => {
      const texts = statement.all().map((row) => JSON.stringify(row));
      return [name, `${texts.length} rows, ${createHash("sha256").update(texts.sort().join("\n")).digest("hex")}`];
    }),
  );
}

function openReader(data: string): Reader {
  const db = openDatabase(join(data, "arbor.db"), { readonly: true });
  const names = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").pluck().all();
  const kept = names.map(String).filter((name) => !/^(?:audit|jobs$|sqlite_)/.test(name));
  const columnsOf = db.prepare("SELECT name FROM pragma_table_info(?) WHERE name <> 'last_seen_time_ms'").pluck();
  const read = (name: string) => {
    const columns = columnsOf.all(name).map((column) => `"${column}"`);
    return db.prepare(`SELECT ${columns.join(", ")} FROM "${name}"`).raw();
  };
  return { db, tables: new Map(kept.map((name) => [name, read(name)])) };
}
