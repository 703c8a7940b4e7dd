// Files that settings name: what is wrong with them, and secrets in files.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { resolveSettings, type SettingName, type Sources, settingNames, settings } from "../../src/config/config.js";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

const directory = tempDir();
const at = (name: string) => join(directory, name);
const missing = at("none");
const [cert, key, other] = [at("cert.pem"), at("key.pem"), at("other.json")];
copyFileSync(join(PROJECT, "test/support/tls/cert.pem"), cert);
copyFileSync(join(PROJECT, "test/support/tls/key.pem"), key);
chmodSync(key, 0o600);
writeFileSync(other, "{}");
const masterKey = at("master.key");
writeFileSync(masterKey, `${Buffer.alloc(32).toString("base64")}\n`, { mode: 0o600 });
mkdirSync(at("directory"));

function problemsOf(sources: Partial<Sources>): readonly string[] {
  try {
    resolveSettings({ flags: {}, env: {}, checkFiles: true, ...sources });
    return [];
  } catch (error) {
    return (error as Error).message.split("\n");
  }
}

const fileSettings = settingNames.filter((name) => "isFile" in settings[name]);

test("settings that are files are marked so", () => {
  const expected: readonly SettingName[] = [
    ...(["tlsCert", "tlsKey", "databaseUrlFile", "databaseTlsCa", "databaseTlsCert", "databaseTlsKey"] as const),
    ...(["masterKeyFile", "loginProviders", "registrySecretFile"] as const),
  ];
  assert.deepEqual([...fileSettings].sort(), [...expected].sort());
});

for (const name of fileSettings) {
  const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  const variable = `ARBOR_${flag.slice(2).replaceAll("-", "_").toUpperCase()}`;

  test(`${flag}: a file that cannot be read is named with the flag, the variable or the key`, () => {
    const problem = `cannot read ${missing}: no such file`;
    assert.deepEqual(problemsOf({ flags: { [name]: missing } }), [`${flag}: ${problem}`]);
    assert.deepEqual(problemsOf({ env: { [variable]: missing } }), [`${variable}: ${problem}`]);
    const file = at(`${name}.json`);
    writeFileSync(file, JSON.stringify({ [name]: missing }));
    assert.deepEqual(problemsOf({ file }), [`${file}: ${name}: ${problem}`]);
    const folder = at("directory");
    assert.deepEqual(problemsOf({ flags: { [name]: folder } }), [`${flag}: cannot read ${folder}: is a directory`]);
  });
}

test("a file of another user's is named as well", { skip: process.getuid?.() === 0 }, () => {
  chmodSync(other, 0o000);
  const problem = `--login-providers: cannot read ${other}: permission denied`;
  assert.deepEqual(problemsOf({ flags: { loginProviders: other } }), [problem]);
  chmodSync(other, 0o600);
});

test("everything that is wrong with files and values is reported at once", () => {
  const flags = { tlsCert: missing, loginProviders: at("directory"), registration: "x" };
  assert.deepEqual(problemsOf({ flags, env: { ARBOR_TLS_KEY: other } }), [
    `--tls-cert: cannot read ${missing}: no such file`,
    `ARBOR_TLS_KEY: ${other} must contain a private key in PEM without a passphrase`,
    `--login-providers: cannot read ${at("directory")}: is a directory`,
    "--registration must be one of invite, open",
  ]);
});

test("a certificate and a key must be what they are named", () => {
  assert.deepEqual(problemsOf({ flags: { tlsCert: cert, tlsKey: key } }), []);
  assert.deepEqual(problemsOf({ flags: { tlsCert: key, tlsKey: cert } }), [
    `--tls-cert: ${key} must contain a certificate in PEM`,
    `--tls-key: ${cert} must contain a private key in PEM without a passphrase`,
  ]);
});

test("a key must be that of its certificate", () => {
  const foreign = at("foreign.pem");
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  writeFileSync(foreign, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  const problem = `--tls-key: ${foreign} is not the key of the certificate ${cert}, which --tls-cert names`;
  assert.deepEqual(problemsOf({ flags: { tlsCert: cert, tlsKey: foreign } }), [problem]);
  const database = { databaseUrl: URL, databaseTlsMode: "verify-full", masterKeyFile: masterKey };
  const check = (databaseTlsKey: string) =>
    problemsOf({ flags: { ...database, databaseTlsCert: cert }, env: { ARBOR_DATABASE_TLS_KEY: databaseTlsKey } });
  assert.deepEqual(check(foreign), [
    `ARBOR_DATABASE_TLS_KEY: ${foreign} is not the key of the certificate ${cert}, which --database-tls-cert names`,
  ]);
  // The control: its own key is accepted.
  assert.deepEqual(check(key), []);
});

test("commands on the host read no files that they do not need", () => {
  assert.deepEqual(problemsOf({ flags: { tlsCert: missing, tlsKey: missing }, checkFiles: false }), []);
});

const URL = "postgres://arbor:secret@db.example.org/arbor";
let files = 0;
function urlFile(content: string, mode = 0o600): string {
  const file = at(`url-${files++}`);
  writeFileSync(file, content, { mode });
  return file;
}

const contents: readonly { content: string; url: string; reason: string }[] = [
  { content: URL, url: URL, reason: "without a line break" },
  { content: `${URL}\n`, url: URL, reason: "with one" },
  { content: `${URL}\r\n`, url: URL, reason: "with one of Windows" },
  { content: `${URL}%20\n`, url: `${URL}%20`, reason: "with escapes" },
];

for (const { content, url, reason } of contents) {
  test(`--database-url-file: ${reason}`, () => {
    const flags = { databaseUrlFile: urlFile(content), masterKeyFile: masterKey };
    assert.equal(resolveSettings({ flags, env: {} }).databaseUrl, url);
  });
}

for (const content of ["", "\n", "mysql://db\n", `${URL}\n\n`, `${URL}\nmore\n`]) {
  test(`--database-url-file: ${JSON.stringify(content)} is rejected`, () => {
    const file = urlFile(content);
    const [problem = "", ...more] = problemsOf({ flags: { databaseUrlFile: file, masterKeyFile: masterKey } });
    assert.equal(problem, `--database-url-file: ${file} must be a postgres:// URL`);
    assert.deepEqual(more, []);
    assert.doesNotMatch(problem, /secret/);
  });
}

test("a secret and its file cannot both be given, wherever they come from", () => {
  const file = urlFile(URL);
  const both = { flags: { databaseUrlFile: file }, env: { ARBOR_DATABASE_URL: URL } };
  assert.deepEqual(problemsOf(both), ["ARBOR_DATABASE_URL and --database-url-file cannot both be given"]);
});

test("the file of a secret is for its owner alone", () => {
  const problem = process.getuid?.() === 0 ? /must not be readable by others/ : /must be readable by its owner alone/;
  const [found = ""] = problemsOf({ flags: { databaseUrlFile: urlFile(URL, 0o644), masterKeyFile: masterKey } });
  assert.match(found, problem);
});

test("every secret has a setting for its file", () => {
  const all = Object.entries(settings);
  const secrets = all.filter(([, row]) => "secret" in row).map(([name]) => name);
  const inFiles = all.flatMap(([, row]) => ("contentOf" in row ? [row.contentOf] : []));
  assert.deepEqual(secrets, ["databaseUrl"]);
  assert.deepEqual(inFiles, secrets);
});

test("a damaged second certificate is found, also among authorities", () => {
  const chain = at("chain.pem");
  const whole = readFileSync(cert);
  writeFileSync(chain, Buffer.concat([whole, whole.subarray(0, 200)]));
  for (const [name, flag] of [
    ["tlsCert", "--tls-cert"],
    ["databaseTlsCa", "--database-tls-ca"],
  ] as const) {
    const [found = ""] = problemsOf({ flags: { [name]: chain } });
    assert.equal(found, `${flag}: ${chain} must contain whole blocks in PEM: one of them has no beginning or no end`);
  }
});

test("the content of secrets, lists and the data directory is checked", () => {
  const short = urlFile("short");
  for (const [name, file] of [
    ["registrySecretFile", short],
    ["masterKeyFile", short],
    ["loginProviders", other],
    ["data", other],
  ] as const) {
    const [found = ""] = problemsOf({ flags: { [name]: file } });
    assert.ok(found.startsWith("--") && found.includes(file), found);
  }
});
