// TLS to PostgreSQL: what each mode accepts, on a server with a certificate of its own authority.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { resolveSettings, type Settings } from "../../src/config/config.js";
import { readDatabaseTls } from "../../src/config/tls.js";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import { readPg } from "../../src/store/check/database.js";
import { openPgSource, openPgTarget } from "../../src/store/copy/pg.js";
import { openPgMigration } from "../../src/store/migrate/open-pg-migration.js";
import { openPg } from "../../src/store/pg/open.js";
import { createFilledDirectory } from "../store/copy/copy-kit.js";
import { runCommand } from "../support/command.js";
import { startHarness } from "../support/harness.js";
import { tempDir } from "../support/temp-dir.js";
import { emptyDatabase } from "./databases.js";

const directory = tempDir();
const at = (name: string) => join(directory, name);
const masterKeyFile = at("master.key");
/** The role that signs in by a certificate alone. */
const ROLE = "by_certificate";
const WAIT_MS = 10_000;

// The server is 127.0.0.1 and its certificate is for the name localhost, so that only the host differs between the two.
let byName: string;
let byAddress: string;

before(async () => {
  readMasterKey(masterKeyFile, true);
  createCertificates();
  byAddress = await emptyDatabase();
  byName = byAddress.replace("127.0.0.1", "localhost");
});

function resolve(databaseUrl: string, flags: Readonly<Record<string, string>>): Settings {
  const all = { databaseUrl, masterKeyFile, ...flags };
  return resolveSettings({ flags: all, env: {}, checkFiles: true });
}

/** Whether a connection with these settings is encrypted. */
async function isEncrypted(databaseUrl: string, flags: Readonly<Record<string, string>>): Promise<boolean> {
  const database = await openPgMigration(databaseUrl, readDatabaseTls(resolve(databaseUrl, flags)));
  try {
    const [row] = await database.read((tx) => tx.query("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"));
    return row?.ssl === true;
  } finally {
    await database.close();
  }
}

const ca = () => ({ databaseTlsCa: at("ca.pem") });
const wrongCa = () => ({ databaseTlsCa: at("wrong-ca.pem") });

describe("a server without TLS", () => {
  it("is rejected by every mode but disable", async () => {
    assert.equal(await isEncrypted(byAddress, { databaseTlsMode: "disable" }), false);
    for (const databaseTlsMode of ["require", "verify-ca", "verify-full"]) {
      const connected = isEncrypted(byAddress, { databaseTlsMode, ...ca() });
      await assert.rejects(connected, /no TLS connection to the database: The server does not support SSL connections/);
    }
  });
});

describe("TLS to PostgreSQL", () => {
  let restore: () => Promise<void>;
  before(async () => {
    restore = await serveTls();
  });
  after(() => restore());

  const accepted: readonly {
    mode: string;
    flags: () => Record<string, string>;
    host: "name" | "address";
    tls: boolean;
  }[] = [
    { mode: "disable", flags: () => ({}), host: "address", tls: false },
    { mode: "require", flags: () => ({}), host: "address", tls: true },
    { mode: "require", flags: ca, host: "address", tls: true },
    { mode: "verify-ca", flags: ca, host: "address", tls: true },
    { mode: "verify-ca", flags: ca, host: "name", tls: true },
    { mode: "verify-full", flags: ca, host: "name", tls: true },
  ];
  for (const { mode, flags, host, tls } of accepted) {
    const withCa = "databaseTlsCa" in flags() ? " with its authority" : "";
    it(`${mode}${withCa}, by ${host}: connects${tls ? "" : " in cleartext"}`, async () => {
      const url = host === "name" ? byName : byAddress;
      assert.equal(await isEncrypted(url, { databaseTlsMode: mode, ...flags() }), tls);
    });
  }

  const rejected: readonly {
    mode: string;
    flags: () => Record<string, string>;
    host: "name" | "address";
    error: RegExp;
  }[] = [
    { mode: "require", flags: wrongCa, host: "name", error: /certificate/ },
    { mode: "verify-ca", flags: wrongCa, host: "name", error: /certificate/ },
    { mode: "verify-full", flags: wrongCa, host: "name", error: /certificate/ },
    { mode: "verify-full", flags: () => ({}), host: "name", error: /certificate/ },
    { mode: "verify-full", flags: ca, host: "address", error: /does not match certificate's altnames/ },
  ];
  for (const { mode, flags, host, error } of rejected) {
    const [file = "no authority"] = Object.values(flags());
    it(`${mode}, by ${host}, with ${file.replace(/.*\//, "")}: is rejected by everything that connects`, async () => {
      const url = host === "name" ? byName : byAddress;
      const tls = readDatabaseTls(resolve(url, { databaseTlsMode: mode, ...flags() }));
      for (const connect of [
        () => openPg({ url, tls }),
        () => openPgMigration(url, tls),
        () => readPg(url, tls),
        () => openPgSource({ url, tls }),
        () => openPgTarget({ url, tls }),
      ]) {
        await assert.rejects(connect, (thrown: Error) => {
          assert.match(
            thrown.message,
            /^no TLS connection to the database: .*; --database-tls-mode and --database-tls-ca/s,
          );
          assert.match(thrown.message, error);
          return true;
        });
      }
    });
  }

  const urls: readonly { query: string; result: boolean | RegExp }[] = [
    { query: "sslmode=disable", result: false },
    { query: "sslmode=no-verify", result: true },
    { query: "sslmode=require", result: /certificate/ },
    { query: "sslmode=verify-ca", result: /certificate/ },
    { query: `sslmode=verify-full&sslrootcert=${at("ca.pem")}`, result: true },
    { query: `sslmode=require&sslrootcert=${at("wrong-ca.pem")}`, result: /certificate/ },
  ];
  for (const { query, result } of urls) {
    it(`a URL with ${query.replace(/=\/.*\//, "=")} means what the driver makes of it`, async () => {
      const url = `${byName}?${query}`;
      if (typeof result === "boolean") assert.equal(await isEncrypted(url, {}), result);
      else await assert.rejects(isEncrypted(url, {}), result);
      assert.throws(
        () => resolve(url, { databaseTlsMode: "require" }),
        /ssl\w+ in the database URL cannot both be given$/,
      );
    });
  }

  it("the service and its commands run over it, with the URL in a file", async () => {
    const databaseUrlFile = at("url");
    writeFileSync(databaseUrlFile, `${byName}\n`, { mode: 0o600 });
    const flags = { databaseUrlFile, databaseTlsMode: "verify-full", databaseTlsCa: at("ca.pem"), masterKeyFile };
    const service = await startHarness({ data: tempDir(), ...flags });
    try {
      await service.organisation("tls.example");
      const database = await openPgMigration(byAddress);
      const rows = await database.read((tx) =>
        tx.query(
          "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE datname = current_database() AND application_name LIKE 'arbor/%' AND pid <> pg_backend_pid()",
        ),
      );
      await database.close();
      assert.ok(rows.length > 0);
      assert.deepEqual(new Set(rows.map(({ ssl }) => ssl)), new Set([true]));
      const args = Object.entries({
        "--database-url-file": databaseUrlFile,
        "--database-tls-mode": "verify-full",
        "--database-tls-ca": at("ca.pem"),
        "--master-key-file": masterKeyFile,
      }).flat();
      for (const command of [["migrate"], ["check"], ["admin", "keys", "list"]]) {
        const { code, stderr } = await runCommand([...command, ...args]);
        assert.equal(code, 0, `${command.join(" ")}: ${stderr}`);
        const wrong = args.map((arg) => arg.replace("ca.pem", "wrong-ca.pem"));
        const failed = await runCommand([...command, ...wrong]);
        assert.equal(failed.code, 1, command.join(" "));
        assert.match(failed.stderr, /no TLS connection to the database/);
      }
    } finally {
      await service.stop();
    }
  });

  it("a copy to it and back runs over it", async () => {
    const url = new URL(await emptyDatabase());
    url.hostname = "localhost";
    const file = at("copy-url");
    writeFileSync(file, url.href, { mode: 0o600 });
    const tls = (ca: string) => ["--database-tls-mode", "verify-full", "--database-tls-ca", at(ca)];
    const there = ["copy", "--data", createFilledDirectory(), "--to-url-file", file];
    const back = [
      "copy",
      "--database-url-file",
      file,
      "--master-key-file",
      masterKeyFile,
      "--to",
      join(tempDir(), "to"),
    ];
    for (const command of [there, back]) {
      const failed = await runCommand([...command, ...tls("wrong-ca.pem")]);
      assert.equal(failed.code, 1);
      assert.match(failed.stderr, /no TLS connection to the database/);
      const { code, stderr } = await runCommand([...command, ...tls("ca.pem")]);
      assert.equal(code, 0, stderr);
    }
  });

  it("a client certificate signs in, and no other", async () => {
    const url = byName.replace("//arbor@", `//${ROLE}@`);
    const mode = { databaseTlsMode: "verify-full", ...ca() };
    const own = { databaseTlsCert: at("client.pem"), databaseTlsKey: at("client.key") };
    assert.equal(await isEncrypted(url, { ...mode, ...own }), true);
    await assert.rejects(isEncrypted(url, mode), /requires a valid client certificate/);
    const other = { databaseTlsCert: at("other-client.pem"), databaseTlsKey: at("other-client.key") };
    await assert.rejects(isEncrypted(url, { ...mode, ...other }), /certificate authentication failed/);
  });
});

function createCertificates(): void {
  const openssl = (...args: readonly string[]) => execFileSync("openssl", args, { cwd: directory, stdio: "pipe" });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  const create = (name: string, authority: string, subject: string, extensions: readonly string[]) => {
    const signing = ["-CA", `${authority}.pem`, "-CAkey", `${authority}.key`];
    const files = ["-keyout", `${name}.key`, "-out", `${name}.pem`];
    openssl("req", "-x509", ...key, ...signing, ...files, "-days", "2", "-subj", subject, ...extensions);
  };
  for (const name of ["ca", "wrong-ca"]) {
    openssl(
      "req",
      "-x509",
      ...key,
      "-keyout",
      `${name}.key`,
      "-out",
      `${name}.pem`,
      "-days",
      "2",
      "-subj",
      `/CN=${name}`,
    );
  }
  const leaf = ["-addext", "basicConstraints=critical,CA:FALSE"];
  create("server", "ca", "/CN=localhost", [...leaf, "-addext", "subjectAltName=DNS:localhost"]);
  create("client", "ca", `/CN=${ROLE}`, leaf);
  create("other-client", "ca", "/CN=somebody_else", leaf);
  for (const name of ["client", "other-client"]) chmodSync(at(`${name}.key`), 0o600);
}

/** Lets the server under test speak TLS beside cleartext, for as long as the function it returns is not called. */
async function serveTls(): Promise<() => Promise<void>> {
  const operator = new pg.Client({ connectionString: byAddress });
  await operator.connect();
  const show = async (name: string) => String((await operator.query(`SHOW ${name}`)).rows[0]?.[name]);
  const data = await show("data_directory");
  const { uid, gid } = statSync(data);
  for (const [from, to] of [
    ["server.pem", "tls.pem"],
    ["server.key", "tls.key"],
    ["ca.pem", "tls-ca.pem"],
  ] as const) {
    const file = join(data, to);
    copyFileSync(at(from), file);
    chmodSync(file, 0o600);
    chownSync(file, uid, gid);
  }
  const hba = await show("hba_file");
  const rules = readFileSync(hba, "utf8");
  writeFileSync(hba, `hostssl all ${ROLE} all cert\n${rules}`);
  await operator.query(`CREATE ROLE ${ROLE} LOGIN`);
  await operator.query("ALTER SYSTEM SET ssl_cert_file = 'tls.pem'");
  await operator.query("ALTER SYSTEM SET ssl_key_file = 'tls.key'");
  await operator.query("ALTER SYSTEM SET ssl_ca_file = 'tls-ca.pem'");
  await switchTls("on");

  return async () => {
    writeFileSync(hba, rules);
    await switchTls("off");
    await operator.query(`DROP ROLE ${ROLE}`);
    await operator.end();
  };

  // New connections have the setting once the server has read it again.
  async function switchTls(state: "on" | "off"): Promise<void> {
    await operator.query(`ALTER SYSTEM SET ssl = ${state}`);
    await operator.query("SELECT pg_reload_conf()");
    const endMs = performance.now() + WAIT_MS;
    while ((await isEncrypted(byAddress, { databaseTlsMode: "require" }).catch(() => false)) !== (state === "on")) {
      if (performance.now() > endMs) throw new Error(`TLS of the server is not ${state}`);
      await sleep(20);
    }
  }
}
