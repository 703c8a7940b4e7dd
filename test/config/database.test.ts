// How the settings of TLS to PostgreSQL go together. test/pg/tls.test.ts runs them against a server.
import assert from "node:assert/strict";
import { chmodSync, copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { resolveSettings } from "../../src/config/config.js";
import { readDatabaseTls } from "../../src/config/tls.js";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

const directory = tempDir();
const [cert, key] = [join(directory, "cert.pem"), join(directory, "key.pem")];
copyFileSync(join(PROJECT, "test/support/tls/cert.pem"), cert);
copyFileSync(join(PROJECT, "test/support/tls/key.pem"), key);
chmodSync(key, 0o600);

const database = { databaseUrl: "postgres://db.example.org/arbor", masterKeyFile: "k" };
const direct = "postgres://primary.example.org/arbor";
const pooled = { ...database, databasePooler: "transaction", databaseDirectUrl: direct };
const resolve = (flags: Readonly<Record<string, string>>) => resolveSettings({ flags, env: {} });

const together: readonly { flags: Record<string, string>; text: string; reason: string }[] = [
  {
    flags: { databaseTlsMode: "require" },
    text: "--database-tls-mode needs --database-url",
    reason: "no database",
  },
  {
    flags: { ...database, databaseTlsCa: "c", databaseTlsCert: "c", databaseTlsKey: "k" },
    text:
      "--database-tls-ca needs --database-tls-mode\n--database-tls-cert needs --database-tls-mode\n" +
      "--database-tls-key needs --database-tls-mode",
    reason: "files without a mode",
  },
  {
    flags: { ...database, databaseTlsMode: "disable", databaseTlsCa: "c" },
    text: "--database-tls-ca has no effect with --database-tls-mode disable",
    reason: "files that are not used",
  },
  {
    flags: { ...database, databaseTlsMode: "verify-ca" },
    text: "--database-tls-mode verify-ca needs --database-tls-ca: any certificate of a public authority would do",
    reason: "no authority to verify",
  },
  {
    flags: { ...database, databaseTlsMode: "verify-full", databaseTlsCert: "c" },
    text: "--database-tls-cert and --database-tls-key go together",
    reason: "a certificate without its key",
  },
  ...["sslmode=require", "x=y&sslmode=disable", "ssl=true", "sslrootcert=/x", "sslnegotiation=direct"].map((query) => ({
    flags: { ...database, databaseUrl: `${database.databaseUrl}?${query}`, databaseTlsMode: "verify-full" },
    text: `--database-tls-mode and ${/ssl\w*/.exec(query)?.[0]} in the database URL cannot both be given`,
    reason: query,
  })),
  {
    flags: { ...pooled, databaseDirectUrl: `${direct}?sslmode=require`, databaseTlsMode: "verify-full" },
    text: "--database-tls-mode and sslmode in the direct URL cannot both be given",
    reason: "sslmode in the direct URL",
  },
  {
    flags: { ...database, databasePooler: "transaction" },
    text: "--database-pooler transaction needs --database-direct-url",
    reason: "a pooler, and no way past it",
  },
  {
    flags: { databasePooler: "transaction", databaseDirectUrl: direct },
    text: "--database-pooler transaction needs --database-url",
    reason: "a pooler of no database",
  },
  {
    flags: { ...database, databaseDirectUrl: direct },
    text: "--database-direct-url needs --database-pooler",
    reason: "a way past no pooler",
  },
  {
    flags: { databasePoolSize: "10" },
    text: "--database-pool-size needs --database-url",
    reason: "connections to SQLite",
  },
  {
    flags: { ...pooled, databaseDirectUrl: "postgres://a,b/arbor" },
    text:
      "the database URL names several hosts, and the driver connects to one: name one address, such as that of HAProxy " +
      "in docs/high-availability.md",
    reason: "several hosts in the direct URL",
  },
  ...["options=-cjit%3Doff", "x=y&statement_timeout=1", "lock_timeout=1", "replication=true"].map((query) => ({
    flags: { ...pooled, databaseUrl: `${database.databaseUrl}?${query}` },
    text: `--database-pooler transaction and ${/(x=y&)?(\w+)/.exec(query)?.[2]} in the database URL cannot both be given: a pooler rejects it`,
    reason: `${query} through a pooler`,
  })),
];

test("accepted: a pooler with a direct URL, whose options the pooler does not see", () => {
  assert.equal(resolve(pooled).databasePooler, "transaction");
  resolve({ ...pooled, databaseDirectUrl: `${direct}?options=-cjit%3Doff`, databasePoolSize: "2" });
});

for (const { flags, text, reason } of together) {
  test(`rejected: ${reason}`, () => {
    assert.throws(() => resolve(flags), { name: "SettingsError", message: text });
  });
}

const accepted: readonly { flags: Record<string, string>; tls: object | false | undefined; reason: string }[] = [
  { flags: {}, tls: undefined, reason: "what the URL says" },
  { flags: { databaseUrl: `${database.databaseUrl}?sslmode=require` }, tls: undefined, reason: "sslmode in the URL" },
  { flags: { databaseTlsMode: "disable" }, tls: false, reason: "none" },
  { flags: { databaseTlsMode: "verify-full" }, tls: {}, reason: "authorities of Node" },
  {
    flags: { databaseUrl: `${database.databaseUrl}?application_name=ssl`, databaseTlsMode: "disable" },
    tls: false,
    reason: "other parameters",
  },
];

for (const { flags, tls, reason } of accepted) {
  test(`accepted: ${reason}`, () => assert.deepEqual(readDatabaseTls(resolve({ ...database, ...flags })), tls));
}

test("the host is verified by verify-full alone, and the certificate by all but require without an authority", () => {
  const read = (databaseTlsMode: string, flags = {}) => {
    const tls = readDatabaseTls(resolve({ ...database, databaseTlsMode, ...flags }));
    if (!tls) throw new Error("there is no TLS");
    const { rejectUnauthorized = true, checkServerIdentity } = tls;
    return { certificate: rejectUnauthorized, host: checkServerIdentity === undefined };
  };
  const ca = { databaseTlsCa: cert };
  assert.deepEqual(read("require"), { certificate: false, host: false });
  assert.deepEqual(read("require", ca), { certificate: true, host: false });
  assert.deepEqual(read("verify-ca", ca), { certificate: true, host: false });
  assert.deepEqual(read("verify-full", ca), { certificate: true, host: true });
});

test("files that cannot be used are named with their flags, all at once", () => {
  const wrong = join(directory, "wrong.pem");
  writeFileSync(wrong, "x");
  const missing = join(directory, "none");
  const flags = { databaseTlsMode: "verify-full", databaseTlsCa: wrong, databaseTlsCert: missing, databaseTlsKey: key };
  assert.throws(() => readDatabaseTls(resolve({ ...database, ...flags })), {
    message:
      `--database-tls-ca: ${wrong} must contain a certificate in PEM\n` +
      `--database-tls-cert: cannot read ${missing}: no such file`,
  });
});

test("the key of a client certificate must be private, and its own", () => {
  const open = join(directory, "open.pem");
  copyFileSync(key, open);
  chmodSync(open, 0o644);
  const flags = { ...database, databaseTlsMode: "verify-full", databaseTlsCert: cert };
  assert.throws(() => readDatabaseTls(resolve({ ...flags, databaseTlsKey: open })), /must (not )?be readable by/);
  assert.ok(readDatabaseTls(resolve({ ...flags, databaseTlsKey: key })));
});

const hosts: readonly { readonly url: string; readonly isSeveral: boolean }[] = [
  { url: "postgres://u:p@a,b/arbor", isSeveral: true },
  { url: "postgresql://a:5432,b:5433/arbor?target_session_attrs=read-write", isSeveral: true },
  { url: "postgres:///arbor?host=a,b", isSeveral: true },
  { url: "postgres://u:p,q@a:5432/arbor", isSeveral: false },
  { url: "postgres://a/arbor?options=-c%20a%3D1,2", isSeveral: false },
  { url: "postgres:///arbor?host=/run/postgresql", isSeveral: false },
];

for (const { url, isSeveral } of hosts) {
  test(`${url} names ${isSeveral ? "several hosts, which is an error" : "one host"}`, () => {
    const read = () => resolve({ ...database, databaseUrl: url });
    if (isSeveral)
      assert.throws(read, /the database URL names several hosts, and the driver connects to one: name one/);
    else read();
  });
}
