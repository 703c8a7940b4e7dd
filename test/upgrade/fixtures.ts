// Databases of released versions, created by scripts/database-fixture.mjs.
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

/** The responses that a version gave about one of its databases. */
export interface Expected {
  /** The owner of the organisation, and its uid. */
  readonly owner: string;
  readonly group: string;
  /** Responses to the owner by the path of the GET. */
  readonly answers: Readonly<Record<string, object>>;
  /** An identity of another organisation, and the responses to it. */
  readonly guest: string;
  readonly guestAnswers: Readonly<Record<string, object>>;
  /** How many rows of each audit log were sealed, by the uid of the organisation. */
  readonly sealedRows: Readonly<Record<string, number>>;
  /** Page tokens that the owner got, which are valid for three days. */
  readonly pageTokens: {
    readonly createTime: string;
    readonly lists: readonly PageToken[];
  };
}

/** The page token after the first page of a list, and the uids of the resources on the page after it. */
export interface PageToken {
  readonly path: string;
  readonly pageToken: string;
  readonly uids: readonly string[];
}

/** The fixture of one version. */
export interface Fixture {
  readonly version: string;
  readonly folder: string;
  readonly sqlite: Expected;
  /** Absent if the fixture was created without PostgreSQL. */
  readonly postgres?: Expected;
}

const FOLDER = join(PROJECT, "test", "fixtures", "databases");

/** All fixtures. */
export const fixtures: readonly Fixture[] = readdirSync(FOLDER).map((name) => {
  const folder = join(FOLDER, name);
  return { folder, ...(JSON.parse(readFileSync(join(folder, "expected.json"), "utf8")) as Omit<Fixture, "folder">) };
});

/** The base URL of the services that created the fixtures; some responses contain it. */
export const FIXTURE_BASE_URL = "http://arbor.example";

/** Copies the SQLite database and the master key into a new data directory and returns its path. */
export function restoreSqlite({ folder }: Fixture): string {
  const data = tempDir();
  writeFileSync(join(data, "arbor.db"), unpack(folder, "sqlite.db.gz"), { mode: 0o600 });
  restoreMasterKey(folder, data);
  return data;
}

/** The statements that restore the PostgreSQL database, and a copy of the master key. */
export function restorePostgres({ folder }: Fixture): { readonly sql: string; readonly masterKeyFile: string } {
  return { sql: unpack(folder, "postgres.sql.gz").toString(), masterKeyFile: restoreMasterKey(folder, tempDir()) };
}

function restoreMasterKey(folder: string, directory: string): string {
  const file = join(directory, "master.key");
  // Git does not store these modes, and the service rejects a key that others can read.
  writeFileSync(file, readFileSync(join(folder, "master.key")), { mode: 0o600 });
  chmodSync(file, 0o600);
  return file;
}

function unpack(folder: string, name: string): Buffer {
  const file = join(folder, name);
  if (!existsSync(file)) throw new Error(`${file} is missing: run scripts/database-fixture.mjs`);
  return gunzipSync(readFileSync(file));
}

// Versions before 1.15.0 listed the SCIM settings of identity providers, and gave the path of the endpoint alone.
const isListedScim = (path: string, key: string) => key === "scim" && /^\.identityProviders\[\d+\]$/.test(path);
const isPathOf = (expected: unknown, actual: unknown, path: string) =>
  path.endsWith(".scim.endpointUrl") && actual === `${FIXTURE_BASE_URL}${expected}`;

/**
 * Compares JSON with the expected fields and values. Additional fields are allowed, additional elements of arrays
 * are not, except for built-in roles and capabilities of these.
 *
 * @returns the paths at which something is missing or different
 */
export function findDifferences(expected: unknown, actual: unknown): string[] {
  return compare(expected, leaveOutGained(expected, actual), "");
}

type Json = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null;

const isBuiltinRole = (value: unknown): value is Json & { readonly capabilities: readonly unknown[] } =>
  isObject(value) && /\(built-in\)$/.test(String(value.description)) && Array.isArray(value.capabilities);

const idOf = ({ uid, id }: Json) => uid ?? id;

// A new version may add built-in roles and capabilities of these, which changes the time of their update.
function leaveOutGained(expected: unknown, actual: unknown): unknown {
  if (Array.isArray(expected) && Array.isArray(actual)) {
    const known = new Set(expected.filter(isBuiltinRole).map(idOf));
    const kept = actual.filter((one) => !isBuiltinRole(one) || known.size === 0 || known.has(idOf(one)));
    return kept.map((one, i) => leaveOutGained(expected[i], one));
  }
  if (!isObject(expected) || !isObject(actual)) return actual;
  if (isBuiltinRole(expected) && isBuiltinRole(actual)) {
    const capabilities = actual.capabilities.filter((one) => expected.capabilities.includes(one));
    const times = Object.entries(expected).filter(([key]) => key === "updateTime" || key === "updatedAt");
    return { ...actual, capabilities, ...Object.fromEntries(times) };
  }
  const kept: Record<string, unknown> = {};
  let leftOut = 0;
  for (const [key, value] of Object.entries(actual)) {
    kept[key] = leaveOutGained(expected[key], value);
    if (Array.isArray(value)) leftOut += value.length - (kept[key] as unknown[]).length;
  }
  if (leftOut > 0 && "totalCount" in kept) kept.totalCount = String(Number(kept.totalCount) - leftOut);
  return kept;
}

function compare(expected: unknown, actual: unknown, path: string): string[] {
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual)) return [`${path}: no array`];
    const length =
      actual.length === expected.length ? [] : [`${path}: ${actual.length} elements instead of ${expected.length}`];
    return [...length, ...expected.flatMap((one, i) => compare(one, actual[i], `${path}[${i}]`))];
  }
  if (typeof expected === "object" && expected !== null) {
    if (typeof actual !== "object" || actual === null) return [`${path}: no object`];
    return Object.entries(expected).flatMap(([key, one]) =>
      !Object.hasOwn(actual, key) && isListedScim(path, key)
        ? []
        : compare(one, (actual as Record<string, unknown>)[key], `${path}.${key}`),
    );
  }
  return Object.is(expected, actual) || isPathOf(expected, actual, path)
    ? []
    : [`${path}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`];
}
