import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  flagOf,
  isLoopback,
  resolveSettings,
  type SettingName,
  type Settings,
  SettingsError,
  type Sources,
  settings,
  variableOf,
} from "../../src/config/config.js";
import { defaultLimits } from "../../src/kernel/quotas.js";
import { tempDir } from "../support/temp-dir.js";

const directory = tempDir();
let files = 0;

function fileOf(content: unknown): string {
  const file = join(directory, `${files++}.json`);
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

function resolve({ flags = {}, env = {}, file }: Partial<Omit<Sources, "file">> & { file?: unknown } = {}): Settings {
  return resolveSettings({ flags, env, ...(file !== undefined && { file: fileOf(file) }) });
}

const precedence: readonly { sources: Parameters<typeof resolve>[0]; data: string; reason: string }[] = [
  { sources: {}, data: "./data", reason: "the default" },
  { sources: { file: { data: "file" } }, data: "file", reason: "file over default" },
  { sources: { env: { ARBOR_DATA: "env" }, file: { data: "file" } }, data: "env", reason: "environment over file" },
  {
    sources: { flags: { data: "flag" }, env: { ARBOR_DATA: "env" }, file: { data: "file" } },
    data: "flag",
    reason: "flag over environment",
  },
  { sources: { flags: { data: "flag" }, file: { data: "file" } }, data: "flag", reason: "flag over file" },
  { sources: { flags: { data: "" }, env: { ARBOR_DATA: "env" } }, data: "env", reason: "an empty flag is none" },
  { sources: { env: { ARBOR_DATA: "" }, file: { data: "file" } }, data: "file", reason: "an empty variable is none" },
  { sources: { file: { data: "" } }, data: "./data", reason: "an empty entry is none" },
  { sources: { flags: { data: undefined } }, data: "./data", reason: "a flag not given" },
  { sources: { env: { DATA: "x", arbor_data: "x" } }, data: "./data", reason: "variables of other names" },
];

for (const { sources, data, reason } of precedence) {
  test(`precedence: ${reason}`, () => assert.equal(resolve(sources).data, data));
}

test("a wrong value behind a right one is not looked at", () => {
  const { listen } = resolve({ flags: { listen: "127.0.0.1:1" }, env: { ARBOR_LISTEN: "x" }, file: { listen: "y" } });
  assert.deepEqual(listen, { host: "127.0.0.1", port: 1 });
});

const names: readonly { name: SettingName; flag: string; variable: string }[] = [
  { name: "listen", flag: "--listen", variable: "ARBOR_LISTEN" },
  { name: "baseUrl", flag: "--base-url", variable: "ARBOR_BASE_URL" },
  { name: "databaseUrl", flag: "--database-url", variable: "ARBOR_DATABASE_URL" },
  { name: "masterKeyFile", flag: "--master-key-file", variable: "ARBOR_MASTER_KEY_FILE" },
  { name: "rootCreation", flag: "--root-creation", variable: "ARBOR_ROOT_CREATION" },
];

for (const { name, flag, variable } of names) {
  test(`${name} is ${flag} and ${variable}`, () => {
    assert.equal(flagOf(name), flag);
    assert.equal(variableOf(name), variable);
  });
}

test("what is secret is marked so", () => {
  const secret = Object.entries(settings).filter(([, setting]) => "secret" in setting);
  assert.deepEqual(
    secret.map(([name]) => name),
    ["databaseUrl", "databaseDirectUrl"],
  );
});

const values: readonly { name: SettingName; given: string | boolean; value: unknown; reason: string }[] = [
  { name: "listen", given: "0.0.0.0:80", value: { host: "0.0.0.0", port: 80 }, reason: "an IPv4 address" },
  { name: "listen", given: "[::1]:8080", value: { host: "::1", port: 8080 }, reason: "an IPv6 address" },
  { name: "listen", given: "localhost:0", value: { host: "localhost", port: 0 }, reason: "a name, any free port" },
  { name: "listen", given: "127.0.0.1:65535", value: { host: "127.0.0.1", port: 65535 }, reason: "the last port" },
  { name: "baseUrl", given: "https://api.example.org", value: "https://api.example.org", reason: "an origin" },
  { name: "baseUrl", given: "https://api.example.org/", value: "https://api.example.org", reason: "a slash behind" },
  { name: "baseUrl", given: "HTTPS://API.Example.org:443", value: "https://api.example.org", reason: "made canonical" },
  { name: "tokenAlgorithm", given: "ES256", value: "ES256", reason: "one of a few" },
  {
    name: "audiences",
    given: "registry.example.org, https://b.example",
    value: ["registry.example.org", "https://b.example"],
    reason: "names as they are",
  },
  { name: "issuer", given: "http://localhost:9", value: "http://localhost:9", reason: "another issuer" },
  { name: "behindProxy", given: true, value: true, reason: "a switch given" },
  { name: "corsOrigins", given: "*", value: ["*"], reason: "all origins" },
  {
    name: "corsOrigins",
    given: "https://app.example.org, HTTP://LocalHost:80/ ,https://a:8443",
    value: ["https://app.example.org", "http://localhost", "https://a:8443"],
    reason: "origins as browsers send them",
  },
  { name: "accessLog", given: false, value: "off", reason: "a switch taken back" },
  { name: "accessLog", given: true, value: "all", reason: "a switch" },
  { name: "accessLog", given: "errors", value: "errors", reason: "one of its words" },
  ...["true", "1", "yes", "on", "TRUE", "On"].map(
    (given) => ({ name: "strictBody", given, value: true, reason: given }) as const,
  ),
  ...["false", "0", "no", "off", "False"].map(
    (given) => ({ name: "strictBody", given, value: false, reason: given }) as const,
  ),
  ...["false", "0", "no", "off"].map(
    (given) => ({ name: "accessLog", given, value: "off", reason: `the access log: ${given}` }) as const,
  ),
  { name: "rootCreation", given: "owners", value: "owners", reason: "one of a few" },
  {
    name: "quotas",
    given: "roots=0, tags=2147483647",
    value: { ...defaultLimits, roots: 0, tags: 2_147_483_647 },
    reason: "some, the others as they are",
  },
  { name: "logLevel", given: "silent", value: "silent", reason: "one of a few" },
];

for (const { name, given, value, reason } of values) {
  test(`${name}: ${reason}`, () => {
    const proxied = name === "listen" ? { behindProxy: true } : {};
    assert.deepEqual(resolve({ flags: { ...proxied, [name]: given } })[name], value);
  });
}

const LISTEN = "must be host:port, such as 127.0.0.1:8080 or [::1]:8080";
const URL_RULE = "must be an http or https URL without path, query or user";
const ORIGINS = "must be * or a comma-separated list of origins, such as https://app.example.org";
const LIMITS =
  "must be limits such as roots=5,tags=2000000: whole numbers up to 2147483647 for roots, groups, identities, roles, " +
  "bindings, identityBindings, invites, providers, mappings, subscriptions, repos, tags, advisories, overlays, " +
  "overlayBindings, scimUsers, scimGroups";
const LEVELS = "must be one of fatal, error, warn, info, debug, trace, silent";

const DURATION = "must be a number of s, m, h or d, such as 30d";
const SIZE = "must be a number of KiB, MiB or GiB, such as 128MiB";
const AUDIENCES = "must be at most 7 names without blanks, such as registry.example.org, separated by commas";
const refusedValues: readonly { name: SettingName; given: string; rule: string }[] = [
  ...["8080", ":8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:123456", "127.0.0.1:-1"].map(
    (given) => ({ name: "listen", given, rule: LISTEN }) as const,
  ),
  ...["::1:8080", "[::1]", "[x]:80", "a:b:80", "http://127.0.0.1:80", "127.0.0.1:80/", " ", "a:0x50"].map(
    (given) => ({ name: "listen", given, rule: LISTEN }) as const,
  ),
  ...["api.example.org", "ftp://a", "https://a/b", "https://a?b=c", "https://a#b", "https://user@a", "//a", "x"].map(
    (given) => ({ name: "baseUrl", given, rule: URL_RULE }) as const,
  ),
  { name: "issuer", given: "https://a/b", rule: URL_RULE },
  { name: "behindProxy", given: "maybe", rule: "must be true or false" },
  { name: "accessLog", given: "2", rule: "must be one of errors, all, off, true, false" },
  ...["null", "example.org", "https://*.example.org", "https://a,*", "https://a,", "*,*", "https://a/b", " "].map(
    (given) => ({ name: "corsOrigins", given, rule: ORIGINS }) as const,
  ),
  ...["PS256", "rs256", "none", "HS256"].map(
    (given) => ({ name: "tokenAlgorithm", given, rule: "must be one of RS256, ES256" }) as const,
  ),
  ...[",", "a,", "a b", "/", "ä", "x".repeat(256), "a,b,c,d,e,f,g,h"].map(
    (given) => ({ name: "audiences", given, rule: AUDIENCES }) as const,
  ),
  { name: "rootCreation", given: "everyone", rule: "must be one of users, owners, off" },
  { name: "rootCreation", given: "Users", rule: "must be one of users, owners, off" },
  ...["roots", "roots=", "roots=-1", "roots=1.5", "roots=2147483648", "=1", "clusters=1", "roots=1,", "roots=1=2"].map(
    (given) => ({ name: "quotas", given, rule: LIMITS }) as const,
  ),
  ...["toString=1", "__proto__=1", "roots=0x10", " "].map(
    (given) => ({ name: "quotas", given, rule: LIMITS }) as const,
  ),
  { name: "quotas", given: "roots=1,roots=2", rule: "must name roots once" },
  ...["1s", "59m", "3651d", "0d", "30", "d", "1.5h", "30D", "1w"].map(
    (given) => ({ name: "keyRotation", given, rule: `${DURATION}: 1h to 3650d` }) as const,
  ),
  ...["9s", "8d"].map((given) => ({ name: "jwksMaxAge", given, rule: `${DURATION}: 10s to 7d` }) as const),
  ...["31MiB", "65GiB", "128", "128MB"].map(
    (given) => ({ name: "requestBuffer", given, rule: `${SIZE}: 32MiB to 64GiB` }) as const,
  ),
  { name: "databaseUrl", given: "mysql://db", rule: "must be a postgres:// URL" },
  { name: "errorDomain", given: "a b", rule: "must be 1 to 255 characters of ASCII without blanks" },
  { name: "logLevel", given: "verbose", rule: LEVELS },
];

for (const { name, given, rule } of refusedValues) {
  test(`${name} refused: ${JSON.stringify(given)}, from wherever it comes`, () => {
    assertRejects(() => resolve({ flags: { [name]: given } }), `${flagOf(name)} ${rule}`);
    assertRejects(() => resolve({ env: { [variableOf(name)]: given } }), `${variableOf(name)} ${rule}`);
    const file = fileOf({ [name]: given });
    assertRejects(() => resolveSettings({ flags: {}, env: {}, file }), `${file}: ${name} ${rule}`);
  });
}

const together: readonly { flags: Sources["flags"]; text: string; reason: string }[] = [
  { flags: { tlsCert: "c" }, text: "--tls-cert and --tls-key go together", reason: "a certificate without its key" },
  { flags: { tlsKey: "k" }, text: "--tls-cert and --tls-key go together", reason: "a key without its certificate" },
  ...["0.0.0.0:80", "[::]:80", "192.0.2.1:80", "example.org:80"].map((listen) => ({
    flags: { listen },
    text: "--listen on a non-loopback address needs TLS, or --behind-proxy where a proxy in front ends it",
    reason: `cleartext on ${listen}`,
  })),
  {
    flags: { databaseUrl: "postgres://user:password@db/arbor" },
    text: "--database-url needs --master-key-file: nodes that share a database share the key",
    reason: "a shared database without a shared key",
  },
  {
    flags: { tlsKey: "k", listen: "0.0.0.0:80", databaseUrl: "postgres://db" },
    text:
      "--tls-cert and --tls-key go together\n" +
      "--listen on a non-loopback address needs TLS, or --behind-proxy where a proxy in front ends it\n" +
      "--database-url needs --master-key-file: nodes that share a database share the key",
    reason: "everything at once",
  },
  {
    flags: { keyRotation: "1h", jwksMaxAge: "31m" },
    text: "--jwks-max-age must be at most half of --key-rotation: a new key waits up to twice as long to sign",
    reason: "keys that end before their successors may sign",
  },
  ...[
    { drainDelay: "10s" },
    { drainDelay: "1s", drainTime: "39s" },
    { drainDelay: "30s", drainTime: "10s" },
    { drainDelay: "1s", drainTime: "1h" },
  ].map((flags) => ({
    flags,
    text:
      "--drain-delay and --drain-time must be less than 40 s together: with 5 s for the rest, they must end before a " +
      "supervisor kills the process after 45 s",
    reason: `a stop that takes too long: ${JSON.stringify(flags)}`,
  })),
  {
    flags: { listen: "x", logLevel: "y", tlsCert: "c" },
    text: `--listen ${LISTEN}\n--log-level ${LEVELS}`,
    reason: "contradictions wait until all values can be read",
  },
];

for (const { flags, text, reason } of together) {
  test(`refused: ${reason}`, () => assertRejects(() => resolve({ flags }), text));
}

const allowed: readonly { flags: Sources["flags"]; reason: string }[] = [
  { flags: { listen: "0.0.0.0:80", tlsCert: "c", tlsKey: "k" }, reason: "any address with TLS" },
  { flags: { listen: "0.0.0.0:80", behindProxy: true }, reason: "any address behind a proxy" },
  { flags: { listen: "localhost:80" }, reason: "cleartext on localhost" },
  { flags: { drainDelay: "9s" }, reason: "a delay of nine seconds" },
  { flags: { drainDelay: "30s", drainTime: "9s" }, reason: "the longest delay" },
  { flags: { drainTime: "1h" }, reason: "any drain time without a delay" },
  { flags: { listen: "127.255.0.1:80" }, reason: "cleartext on any loopback address" },
  { flags: { listen: "[::1]:80" }, reason: "cleartext on the IPv6 loopback address" },
  { flags: { databaseUrl: "postgres://db", masterKeyFile: "k" }, reason: "a shared database with a shared key" },
  { flags: { keyRotation: "1h", jwksMaxAge: "30m" }, reason: "keys that live twice as long as others keep them" },
];

for (const { flags, reason } of allowed) test(`allowed: ${reason}`, () => void resolve({ flags }));

test("the refusal of a shared database does not print its password", () => {
  assert.throws(
    () => resolve({ flags: { databaseUrl: "postgres://user:password@db/arbor" } }),
    (error: Error) => !error.message.includes("password"),
  );
});

const badFiles: readonly { content: string; text: (file: string) => string | RegExp; reason: string }[] = [
  { content: "[]", text: (file) => `--config: ${file}: must hold a JSON object`, reason: "a list" },
  { content: "null", text: (file) => `--config: ${file}: must hold a JSON object`, reason: "null" },
  { content: '"x"', text: (file) => `--config: ${file}: must hold a JSON object`, reason: "a string" },
  { content: '{"data":null}', text: (file) => `${file}: data must be a string`, reason: "a null for a text" },
  { content: '{"data":5}', text: (file) => `${file}: data must be a string`, reason: "a number for a text" },
  {
    content: '{"behindProxy":1,"connectionsPerAddress":true}',
    text: (file) =>
      `${file}: behindProxy must be a string or a boolean\n${file}: connectionsPerAddress must be a string or a number`,
    reason: "values of another type",
  },
  {
    content: '{"$schema":5}',
    text: (file) => `--config: ${file}: $schema must be a string`,
    reason: "a schema that has no name",
  },
  {
    content: '{"dta":"x"}',
    text: (file) => `--config: ${file}: dta is not a setting; did you mean data?`,
    reason: "a key that is not a setting",
  },
  {
    content: '{"base-url":"x"}',
    text: (file) => `--config: ${file}: base-url is not a setting; did you mean baseUrl?`,
    reason: "the name of a flag",
  },
  {
    content: '{"__proto__":{}}',
    text: (file) => `--config: ${file}: __proto__ is not allowed as a name`,
    reason: "a name every object has",
  },
  {
    content: '{"a":1,"b":2,"listen":"x"}',
    text: (file) =>
      `--config: ${file}: a is not a setting\n--config: ${file}: b is not a setting\n${file}: listen ${LISTEN}`,
    reason: "everything at once",
  },
  { content: "{", text: (file) => `--config: ${file}: the file is not valid JSON at its end`, reason: "no JSON" },
  { content: "", text: (file) => `--config: ${file}: the file is not valid JSON at its end`, reason: "an empty file" },
  {
    content: '{\n  "data": "x",\n  "listen" "y"\n}',
    text: (file) => `--config: ${file}: the file is not valid JSON at line 3, column 12`,
    reason: "a colon that is missing",
  },
  {
    content: '{"data":"x","data":"y"}',
    text: (file) => `--config: ${file}: data is given twice`,
    reason: "a key given twice",
  },
];

for (const { content, text, reason } of badFiles) {
  test(`a file refused: ${reason}`, () => {
    const file = fileOf(content);
    assertRejects(() => resolveSettings({ flags: {}, env: {}, file }), text(file));
  });
}

test("a file that is not there is refused", () => {
  const file = join(directory, "none.json");
  const problem = `cannot read ${file}: no such file`;
  assertRejects(() => resolveSettings({ flags: {}, env: {}, file }), `--config: ${problem}`);
  assertRejects(() => resolveSettings({ flags: {}, env: { ARBOR_CONFIG: file }, file }), `ARBOR_CONFIG: ${problem}`);
});

test("a file holds numbers and truth values as JSON has them", () => {
  const resolved = resolve({ file: { behindProxy: true, accessLog: false, connectionsPerAddress: 7 } });
  assert.equal(resolved.behindProxy, true);
  assert.equal(resolved.accessLog, "off");
  assert.equal(resolved.connectionsPerAddress, 7);
});

const hosts: readonly { host: string; loopback: boolean }[] = [
  { host: "localhost", loopback: true },
  { host: "127.0.0.1", loopback: true },
  { host: "127.1.2.3", loopback: true },
  { host: "::1", loopback: true },
  { host: "128.0.0.1", loopback: false },
  { host: "127.0.0.1.example.org", loopback: false },
  { host: "localhost.example.org", loopback: false },
  { host: "0.0.0.0", loopback: false },
  { host: "::", loopback: false },
  { host: "127.1", loopback: false },
];

for (const { host, loopback } of hosts) {
  test(`${host} is ${loopback ? "" : "no "}loopback`, () => assert.equal(isLoopback(host), loopback));
}

function assertRejects(work: () => unknown, text: string | RegExp): void {
  assert.throws(work, (error) => {
    assert.ok(error instanceof SettingsError);
    if (typeof text === "string") assert.equal(error.message, text);
    else assert.match(error.message, text);
    return true;
  });
}
