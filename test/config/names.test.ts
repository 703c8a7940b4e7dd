// Environment variables and keys that are not settings.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { resolveSettings, type Sources, settingNames, variableOf } from "../../src/config/config.js";
import { findOtherVariables, isKubernetesVariable } from "../../src/config/names.js";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

const directory = tempDir();

function problemsOf(sources: Partial<Sources>): string {
  try {
    resolveSettings({ flags: {}, env: {}, ...sources });
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}

function problemsOfFile(content: unknown): string {
  const file = join(directory, "arbor.json");
  writeFileSync(file, JSON.stringify(content));
  return problemsOf({ file }).replaceAll(`${file}: `, "");
}

const variables: readonly { name: string; suggestion: string | undefined }[] = [
  { name: "ARBOR_LISEN", suggestion: "ARBOR_LISTEN" },
  { name: "ARBOR_DATABASE", suggestion: "ARBOR_DATABASE_URL" },
  { name: "ARBOR_DATABSE_URL", suggestion: "ARBOR_DATABASE_URL" },
  { name: "ARBOR_BASEURL", suggestion: "ARBOR_BASE_URL" },
  { name: "ARBOR_TLS_CERTS", suggestion: "ARBOR_TLS_CERT" },
  { name: "ARBOR_CONFIGURATION", suggestion: undefined },
  { name: "ARBOR_CONF", suggestion: "ARBOR_CONFIG" },
  { name: "ARBOR_TOKENS", suggestion: "ARBOR_TOKEN" },
  { name: "ARBOR_", suggestion: undefined },
  { name: "ARBOR_XXXXXXXXXXXXXXXXX", suggestion: undefined },
  { name: "ARBOR_listen", suggestion: "ARBOR_LISTEN" },
];

for (const { name, suggestion } of variables) {
  test(`${name} is rejected, and suggests ${suggestion ?? "nothing"}`, () => {
    const question = suggestion === undefined ? "" : `; did you mean ${suggestion}?`;
    assert.equal(problemsOf({ env: { [name]: "x" } }), `${name} is not a setting${question}`);
    // An empty value is none, but nobody sets a name that is none.
    assert.equal(problemsOf({ env: { [name]: "" } }), `${name} is not a setting${question}`);
  });
}

const keys: readonly { key: string; suggestion: string | undefined }[] = [
  { key: "dta", suggestion: "data" },
  { key: "base-url", suggestion: "baseUrl" },
  { key: "ARBOR_BASE_URL", suggestion: "baseUrl" },
  { key: "database_url", suggestion: "databaseUrl" },
  { key: "loglevel", suggestion: "logLevel" },
  { key: "$comment", suggestion: undefined },
  { key: "", suggestion: undefined },
];

for (const { key, suggestion } of keys) {
  test(`the key ${JSON.stringify(key)} is rejected, and suggests ${suggestion ?? "nothing"}`, () => {
    const question = suggestion === undefined ? "" : `; did you mean ${suggestion}?`;
    assert.equal(problemsOfFile({ [key]: "x" }), `--config: ${key} is not a setting${question}`);
  });
}

test("all names that are not settings are reported together with values that are wrong", () => {
  const env = { ARBOR_LISEN: "x", ARBOR_LISTEN: "y", ARBOR_DTA: "z" };
  assert.deepEqual(problemsOf({ env }).split("\n"), [
    "ARBOR_DTA is not a setting; did you mean ARBOR_DATA?",
    "ARBOR_LISEN is not a setting; did you mean ARBOR_LISTEN?",
    "ARBOR_LISTEN must be host:port, such as 127.0.0.1:8080 or [::1]:8080",
  ]);
});

test("the variables of clients, of the file, and of other programs are accepted", () => {
  const clients = { ARBOR_API: "https://api.example.org", ARBOR_TOKEN: "t", ARBOR_CREDENTIALS: "/c" };
  assert.equal(
    problemsOf({ env: { ...clients, ARBOR_CONFIG: "", ARBORIST: "x", arbor_lisen: "x", PATH: "/bin" } }),
    "",
  );
  assert.deepEqual(findOtherVariables(clients), { ignored: [], unknown: [] });
});

test("a setting that was renamed is accepted by its former name, below its present one", () => {
  const file = join(directory, "former.json");
  writeFileSync(file, JSON.stringify({ answerBuffer: "200MiB" }));
  const resolve = (sources: Partial<Sources>) => resolveSettings({ flags: {}, env: {}, ...sources }).responseBuffer;
  const MIB = 1024 * 1024;
  assert.equal(resolve({ file }), 200 * MIB);
  assert.equal(resolve({ file, env: { ARBOR_ANSWER_BUFFER: "300MiB" } }), 300 * MIB);
  assert.equal(resolve({ file, env: { ARBOR_ANSWER_BUFFER: "300MiB" }, flags: { answerBuffer: "400MiB" } }), 400 * MIB);
  assert.equal(resolve({ env: { ARBOR_ANSWER_BUFFER: "300MiB", ARBOR_RESPONSE_BUFFER: "500MiB" } }), 500 * MIB);
  assert.equal(resolve({ flags: { answerBuffer: "400MiB" }, env: { ARBOR_RESPONSE_BUFFER: "500MiB" } }), 400 * MIB);
});

test("an error names a setting as it was given, also by its former name", () => {
  const rule = "must be a number of KiB, MiB or GiB";
  assert.match(problemsOf({ flags: { answerBuffer: "1MiB" } }), new RegExp(`^--answer-buffer ${rule}`));
  assert.match(problemsOf({ env: { ARBOR_ANSWER_BUFFER: "1MiB" } }), new RegExp(`^ARBOR_ANSWER_BUFFER ${rule}`));
  assert.match(problemsOfFile({ answerBuffer: "1MiB" }), new RegExp(`^answerBuffer ${rule}`));
  assert.equal(
    problemsOfFile({ responsBuffer: "1MiB" }),
    "--config: responsBuffer is not a setting; did you mean responseBuffer?",
  );
});

test("a file may name its schema", () => assert.equal(problemsOfFile({ $schema: "settings.schema.json" }), ""));

/** What the kubelet sets for a Service (envvars.FromServices): docker links, and the two variables of its own. */
function serviceVariables(service: string, ports: readonly { port: number; protocol: string; name?: string }[]) {
  const prefix = service.toUpperCase().replaceAll("-", "_");
  const [host, { port: first, protocol: firstProtocol } = { port: 0, protocol: "" }] = ["10.0.0.11", ports[0]];
  const env: Record<string, string> = {
    [`${prefix}_SERVICE_HOST`]: host,
    [`${prefix}_SERVICE_PORT`]: String(first),
    [`${prefix}_PORT`]: `${firstProtocol.toLowerCase()}://${host}:${first}`,
  };
  for (const { port, protocol, name } of ports) {
    const link = `${prefix}_PORT_${port}_${protocol}`;
    if (name !== undefined) env[`${prefix}_SERVICE_PORT_${name.toUpperCase().replaceAll("-", "_")}`] = String(port);
    env[link] = `${protocol.toLowerCase()}://${host}:${port}`;
    env[`${link}_PROTO`] = protocol.toLowerCase();
    env[`${link}_PORT`] = String(port);
    env[`${link}_ADDR`] = host;
  }
  return env;
}

const services = {
  ...serviceVariables("arbor", [
    { port: 8080, protocol: "TCP", name: "http" },
    { port: 9464, protocol: "TCP", name: "metrics-2" },
    { port: 53, protocol: "UDP", name: "dns" },
  ]),
  ...serviceVariables("arbor-db", [
    { port: 5432, protocol: "TCP", name: "postgres" },
    { port: 7, protocol: "SCTP", name: "listen" },
  ]),
  ...serviceVariables("arbor-data", [{ port: 80, protocol: "TCP" }]),
};

test("what Kubernetes sets for the Services arbor, arbor-db and arbor-data is ignored", () => {
  assert.ok(Object.keys(services).length > 30);
  assert.equal(services.ARBOR_PORT, "tcp://10.0.0.11:8080");
  assert.equal(services.ARBOR_DB_SERVICE_PORT_POSTGRES, "5432");
  assert.equal(problemsOf({ env: services }), "");
  assert.deepEqual(findOtherVariables({ ...services, ARBOR_LISTEN: "x" }).ignored, Object.keys(services).sort());
});

const similar = [
  "ARBOR_PORTS",
  "ARBOR_PORT_TCP",
  "ARBOR_PORT_80_HTTP",
  "ARBOR_SERVICE",
  "ARBOR_SERVICE_HOSTS",
  "ARBOR_HOST",
];
const malformed = ["ARBOR_X_SERVICE_HOST_X", "ARBOR__PORT", "ARBOR_PORT_", "ARBOR_PORT\n", "ARBOR_LISTEN\n"];
for (const name of [...similar, ...malformed, "ARBOR_PORT_80_TCP_URL", "ARBOR_db_PORT"]) {
  test(`${JSON.stringify(name)}, which Kubernetes does not set, is rejected`, () => {
    assert.match(problemsOf({ env: { ...services, [name]: "x" } }), new RegExp(`^${name} is not a setting`));
  });
}

test("no setting has a name that Kubernetes may set", () => {
  const variables = settingNames.map(variableOf);
  assert.deepEqual(variables.filter(isKubernetesVariable), []);
  // Control: such a name is found.
  assert.ok(isKubernetesVariable(variableOf("metricsPort")));
});

test("variables of the tests and scripts are not taken for misspelt settings by the commands they start", () => {
  const found = new Set<string>();
  for (const folder of ["test", "scripts", "bench"]) {
    for (const file of readdirSync(join(PROJECT, folder), { recursive: true, encoding: "utf8" })) {
      if (!/\.(?:ts|mjs)$/.test(file)) continue;
      const text = readFileSync(join(PROJECT, folder, file), "utf8");
      for (const [, name = ""] of text.matchAll(/\benv\.(\w+)/g)) found.add(name);
    }
  }
  // Control: they have variables.
  assert.ok(found.has("TEST_ARBOR_DATABASE_URL"));
  assert.deepEqual(findOtherVariables(Object.fromEntries([...found].map((name) => [name, ""]))).unknown, []);
});
