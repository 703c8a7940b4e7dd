// Files that settings name: what is wrong with them, and secrets in files.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  rmdirSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import {
  flagOf,
  resolveSettings,
  type SettingName,
  type Sources,
  settingNames,
  settings,
  variableOf,
} from "../../src/config/config.js";
import type { Setting } from "../../src/config/setting-types.js";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

const directory = tempDir();
const at = (name: string) => join(directory, name);
const missing = at("none");
const [cert, key, other] = [at("cert.pem"), at("key.pem"), at("other.json")];
copyFileSync(join(PROJECT, "test/support/tls/cert.pem"), cert);
copyFileSync(join(PROJECT, "test/support/tls/key.pem"), key);
for (const file of [cert, key]) chmodSync(file, 0o600);
writeFileSync(other, "{}", { mode: 0o600 });
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
    ...(["tlsCert", "tlsKey", "databaseUrlFile", "databaseDirectUrlFile"] as const),
    ...(["databaseTlsCa", "databaseTlsCert", "databaseTlsKey"] as const),
    ...(["masterKeyFile", "loginProviders", "registrySecretFile", "sinkCa"] as const),
  ];
  assert.deepEqual([...fileSettings].sort(), [...expected].sort());
});

const URL = "postgres://arbor:secret@db.example.org/arbor";
const WHOLE = { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };

/** What each file may contain. A setting that is new needs a line here, and has all faults tested. */
const accepted: Readonly<Record<string, string>> = {
  ...{ tlsCert: WHOLE.cert, tlsKey: WHOLE.key },
  ...{ databaseTlsCa: WHOLE.cert, databaseTlsCert: WHOLE.cert, databaseTlsKey: WHOLE.key },
  sinkCa: WHOLE.cert,
  ...{ databaseUrlFile: URL, databaseDirectUrlFile: URL },
  masterKeyFile: `${Buffer.alloc(32).toString("base64")}\n`,
  loginProviders: "[]",
  registrySecretFile: "r".repeat(32),
};

interface Fault {
  readonly reason: string;
  /** Makes the fault. `content` is what the setting accepts. */
  readonly make: (file: string, content: string) => void;
  readonly problem: RegExp;
  /** Whether the file of this setting can have it; any can unless this says otherwise. */
  readonly applies?: (setting: Setting<unknown>) => boolean;
}

const isRoot = process.getuid?.() === 0;
const write = (content: string | Buffer, mode = 0o600) => {
  return (file: string) => writeFileSync(file, content, { mode });
};
const RULE = /: .* must /;
const faults: readonly Fault[] = [
  { reason: "missing", make: () => {}, problem: /: cannot read .*: no such file$/ },
  { reason: "in a file", make: (file) => makeInFile(file), problem: /: cannot read .*: no such file$/ },
  { reason: "a link to itself", make: (file) => symlinkSync(file, file), problem: /: too many symbolic links$/ },
  { reason: "a directory", make: (file) => mkdirSync(file), problem: /: cannot read .*: is a directory$/ },
  {
    reason: "unreadable",
    make: (file, content) => write(content, 0o000)(file),
    problem: /: cannot read .*: permission denied$/,
    applies: () => !isRoot,
  },
  { reason: "empty", make: write(""), problem: RULE },
  { reason: "a line break alone", make: write("\n"), problem: RULE },
  { reason: "text of another kind", make: write("{}"), problem: RULE },
  { reason: "no text", make: write(Buffer.from([0, 255, 254, 0, 10])), problem: RULE },
  {
    reason: "truncated",
    make: (file, content) => write(content.slice(0, 1 + content.length / 8))(file),
    problem: RULE,
  },
  {
    reason: "too large",
    make: (file) => {
      write("")(file);
      truncateSync(file, 3 * 2 ** 30);
    },
    problem: / must have at most 16 MiB$/,
  },
  {
    reason: "readable by others",
    make: (file, content) => write(content, 0o644)(file),
    problem: / must (?:not be readable by others|be readable by its owner alone) /,
    applies: ({ isPrivate }) => isPrivate === true,
  },
];

let made = 0;
// What is in a file that is no directory does not exist.
function makeInFile(file: string): void {
  rmdirSync(dirname(file));
  writeFileSync(dirname(file), "");
}

for (const name of fileSettings) {
  const setting: Setting<unknown> = settings[name];

  for (const { reason, make, problem, applies = () => true } of faults) {
    const skip = !applies(setting) && "not of this file";
    test(`${flagOf(name)}: ${reason} is found, with what named it and the path`, { skip }, () => {
      const folder = at(`fault-${made++}`);
      mkdirSync(folder);
      const file = join(folder, name);
      make(file, accepted[name] ?? "");
      const config = at(`${made}.json`);
      writeFileSync(config, JSON.stringify({ [name]: file }));
      for (const [label, problems] of [
        [flagOf(name), problemsOf({ flags: { [name]: file } })],
        [variableOf(name), problemsOf({ env: { [variableOf(name)]: file } })],
        [`${config}: ${name}`, problemsOf({ file: config })],
      ] as const) {
        const [found = ""] = problems;
        assert.deepEqual([problems.length, found.startsWith(`${label}: `)], [1, true], problems.join("\n"));
        assert.ok(found.includes(file), found);
        assert.match(found, problem);
      }
    });
  }

  test(`control: ${flagOf(name)} accepts a file without a fault`, () => {
    const content = accepted[name];
    assert.ok(content !== undefined, "the table above has no content that the setting accepts");
    const file = at(`right-${name}`);
    writeFileSync(file, content, { mode: setting.isPrivate ? 0o600 : 0o644 });
    // Other settings may be missing.
    assert.deepEqual(
      problemsOf({ flags: { [name]: file } }).filter((problem) => problem.includes(file)),
      [],
    );
  });
}

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

test("every secret has a setting for its file", () => {
  const all = Object.entries(settings);
  const secrets = all.filter(([, row]) => "secret" in row).map(([name]) => name);
  const inFiles = all.flatMap(([, row]) => ("contentOf" in row ? [row.contentOf] : []));
  assert.deepEqual(secrets, ["databaseUrl", "databaseDirectUrl"]);
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

test("the files of issuers' keys are checked, and URLs are not", () => {
  const jwks = at("keys.jwks");
  writeFileSync(jwks, '{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA"}]}');
  const given = (...sources: readonly string[]) =>
    problemsOf({ flags: { issuerKeys: sources.map((source, i) => `https://issuer${i}.example=${source}`).join(",") } });
  assert.deepEqual(given(jwks, "https://issuer.example/keys"), []);
  assert.deepEqual(given(jwks, missing, other, at("directory")), [
    `--issuer-keys: cannot read ${missing}: no such file`,
    `--issuer-keys: ${other} must hold a JWK Set: a JSON object with a list of keys that is not empty`,
    `--issuer-keys: cannot read ${at("directory")}: is a directory`,
  ]);
  for (const origin of ["http://10.0.0.1", "https://api.cluster.example:6443"]) {
    assert.deepEqual(given(`${origin}/keys`), [`--issuer-keys ${origin}/keys needs --trusted-issuers ${origin}`]);
  }
  assert.deepEqual(
    problemsOf({ flags: { issuerKeys: `https://a.example=http://10.0.0.1/k`, trustedIssuers: "http://10.0.0.1" } }),
    [],
  );
});
