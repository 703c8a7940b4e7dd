// The compose file: its services, settings, secrets and health checks. No container engine runs here, so what would run
// is compared with the table of settings and with what a server says of the same environment.
import assert from "node:assert/strict";
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { before, describe, test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { parse } from "yaml";
import { settingNames, variableOf } from "../../src/config/settings.js";
import { execFile } from "../support/child-process.js";
import { runCommand } from "../support/command.js";
import { startHarness } from "../support/harness.js";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { readComposeFile } from "./compose-file.js";
import { readEnvironment, readExecForm, readLastStage } from "./containerfile.js";

const DIRECTORY = join(PROJECT, "deploy/compose");
const COMPOSE = join(DIRECTORY, "compose.yml");
const SHELL = { ARBOR_BASE_URL: "https://platform.example.com", REGISTRY_URL: "https://registry.example.com" };
const MOUNTED = "/run/secrets/";

const compose = readComposeFile(COMPOSE, SHELL);
const stage = readLastStage(join(PROJECT, "deploy/container/Containerfile"));
const { postgres, arbor, registry, "registry-config": registryConfig } = compose.services;
assert.ok(postgres && arbor && registry && registryConfig);
const services = Object.entries(compose.services);

const made = tempDir();
const secretFiles: Record<string, string> = {};
before(async () => {
  cpSync(join(DIRECTORY, "make-secrets.sh"), join(made, "make-secrets.sh"));
  await execFile(join(made, "make-secrets.sh"), [`${process.getuid?.()}:${process.getgid?.()}`]);
  for (const [name, { file }] of Object.entries(compose.secrets)) secretFiles[name] = join(made, file);
});

/** The environment of a container: that of the image, and of its service. Secrets are where the test has them. */
function environmentOf(service: string): Record<string, string> {
  const all = { ...readEnvironment(stage), ...compose.services[service]?.environment };
  const located = Object.entries(all).map(([name, value]) => [
    name,
    value.startsWith(MOUNTED) ? (secretFiles[value.slice(MOUNTED.length)] ?? value) : value,
  ]);
  return Object.fromEntries(located);
}

/** The settings of an environment, by their keys. */
function settingsOf(env: Readonly<Record<string, string>>): Record<string, string> {
  const given = settingNames.filter((name) => env[variableOf(name)] !== undefined);
  return Object.fromEntries(given.map((name) => [name, env[variableOf(name)] ?? ""]));
}

describe("the services of the compose file", () => {
  test("are these", () => {
    assert.deepEqual(Object.keys(compose.services), ["postgres", "arbor", "registry-config", "registry"]);
  });

  test("are healthy before others that need them start", () => {
    const needed = services.map(([name, { depends_on = {} }]) => [
      name,
      Object.entries(depends_on).map(([other, { condition }]) => `${other} ${condition}`),
    ]);
    assert.deepEqual(Object.fromEntries(needed), {
      postgres: [],
      arbor: ["postgres service_healthy"],
      "registry-config": ["arbor service_healthy"],
      registry: ["registry-config service_completed_successfully"],
    });
    const servers = services.filter(([name]) => name !== "registry-config");
    for (const [name, { healthcheck, restart }] of servers) {
      assert.equal(healthcheck?.test[0], "CMD", name);
      assert.equal(restart, "always", name);
    }
    // It would run again and again.
    assert.equal(registryConfig.restart, undefined);
  });

  test("have the health checks of their programs", () => {
    assert.deepEqual(arbor.healthcheck?.test, ["CMD", ...readExecForm(stage, "HEALTHCHECK")]);
    assert.equal(postgres.healthcheck?.test[1], "pg_isready");
    const { user, database } = readDatabaseUrl();
    const option = (name: string) => postgres.healthcheck?.test[(postgres.healthcheck.test.indexOf(name) ?? 0) + 1];
    assert.deepEqual([option("--username"), option("--dbname")], [user, database]);
    const port = new URL(parse(readFileSync(join(DIRECTORY, "registry.yml"), "utf8")).http.addr.replace(/^/, "http://"))
      .port;
    assert.equal(new URL(registry.healthcheck?.test.at(-1) ?? "").port, port);
  });

  test("open their ports to this machine alone", () => {
    const ports = services.flatMap(([, service]) => service.ports ?? []);
    assert.deepEqual(ports, ["127.0.0.1:8080:8080", "127.0.0.1:5000:5000"]);
  });

  test("run Arbor without rights, as the user of the image", () => {
    const user = stage.find(({ name }) => name === "USER")?.value;
    for (const service of [arbor, registryConfig]) {
      assert.deepEqual([service.user, service.read_only, service.cap_drop], [user, true, ["ALL"]]);
    }
  });

  test("use volumes and secrets that are declared, and no others are", () => {
    const named = services.flatMap(([, { volumes = [] }]) => volumes.map((text) => text.split(":")[0] ?? ""));
    const volumes = new Set(named.filter((name) => !name.startsWith("./")));
    assert.deepEqual([...volumes].sort(), Object.keys(compose.volumes).sort());
    for (const path of named.filter((name) => name.startsWith("./"))) statSync(join(DIRECTORY, path));
    const secrets = new Set(services.flatMap(([, service]) => service.secrets ?? []));
    assert.deepEqual([...secrets].sort(), Object.keys(compose.secrets).sort());
  });

  test("cannot start without the addresses that clients use", () => {
    assert.throws(() => readComposeFile(COMPOSE, { ...SHELL, ARBOR_BASE_URL: "" }), /ARBOR_BASE_URL/);
    assert.throws(() => readComposeFile(COMPOSE, { ...SHELL, REGISTRY_URL: "" }), /REGISTRY_URL/);
  });
});

describe("the secrets of the compose file", () => {
  test("are all made by the script, for their owner alone", () => {
    const names = Object.values(compose.secrets).map(({ file }) => basename(file));
    assert.deepEqual(readdirSync(join(made, "secrets")).sort(), names.sort());
    for (const file of Object.values(secretFiles)) assert.equal(statSync(file).mode & 0o777, 0o600, file);
    assert.equal(statSync(join(made, "secrets")).mode & 0o777, 0o700);
  });

  test("are not replaced by a second run", async () => {
    const key = readFileSync(secretFiles.master_key ?? "");
    await assert.rejects(execFile(join(made, "make-secrets.sh"), ["0:0"]), /exists already/);
    assert.deepEqual(readFileSync(secretFiles.master_key ?? ""), key);
  });

  test("are in files that the service has, and in no variable", () => {
    for (const [name, { environment = {}, secrets = [] }] of services) {
      const files = Object.values(environment).filter((value) => value.startsWith(MOUNTED));
      assert.deepEqual(files.map((file) => file.slice(MOUNTED.length)).sort(), [...secrets].sort(), name);
      for (const variable of Object.keys(environment)) {
        if (/PASSWORD|SECRET|KEY|DATABASE_URL/.test(variable)) assert.match(variable, /_FILE$/, name);
      }
    }
  });

  test("agree: the URL has the password of the database and the name of its service", () => {
    const { user, password, host, database } = readDatabaseUrl();
    const { POSTGRES_USER, POSTGRES_DB } = postgres.environment ?? {};
    assert.deepEqual([user, database, host], [POSTGRES_USER, POSTGRES_DB, "postgres"]);
    assert.equal(password, readFileSync(secretFiles.postgres_password ?? "", "utf8"));
  });
});

function readDatabaseUrl() {
  const url = new URL(readFileSync(secretFiles.database_url ?? "", "utf8"));
  return { user: url.username, password: url.password, host: url.hostname, database: url.pathname.slice(1) };
}

describe("the settings of the service arbor", () => {
  const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(
    JSON.parse(readFileSync(join(PROJECT, "docs/settings.schema.json"), "utf8")),
  );

  test("fit the schema", () => {
    assert.ok(validate(settingsOf(environmentOf("arbor"))), JSON.stringify(validate.errors));
    assert.equal(validate({ ...settingsOf(environmentOf("arbor")), behindProxy: "perhaps" }), false, "the control");
  });

  test("are what `arbor config print` prints: those of its environment, and defaults", async () => {
    const env = environmentOf("arbor");
    const variables = Object.keys(env).filter((name) => name.startsWith("ARBOR_"));
    const { code, stdout, stderr } = await runCommand(["config", "print", "--json"], env);
    assert.equal(code, 0, stderr);
    const printed = JSON.parse(stdout) as Record<string, { value: string | null; from: string; name?: string }>;
    const { databaseUrl, ...others } = printed;
    // The file of the URL is the source of this one.
    assert.deepEqual([databaseUrl?.value, databaseUrl?.from], ["***", "environment"]);
    const fromEnvironment = Object.values(others).filter(({ from }) => from === "environment");
    assert.deepEqual(
      Object.fromEntries(fromEnvironment.map(({ name = "", value }) => [name, value])),
      Object.fromEntries(variables.map((name) => [name, env[name]])),
    );
    const elsewhere = Object.values(others).filter(({ from }) => from !== "environment");
    assert.ok(elsewhere.every(({ from }) => from === "default"));
  });

  test("can be used by a server, and by `arbor registry configure`", async () => {
    for (const service of ["arbor", "registry-config"]) {
      const { code, stderr } = await runCommand(["config", "check"], environmentOf(service));
      assert.deepEqual([code, stderr], [0, ""], service);
    }
    const env = environmentOf("arbor");
    const misspelt = await runCommand(["config", "check"], { ...env, ARBOR_BASEURL: "https://a.example" });
    assert.equal(misspelt.code, 2, "the control");
    const missing = await runCommand(["config", "check"], { ...env, ARBOR_MASTER_KEY_FILE: "/run/secrets/none" });
    assert.equal(missing.code, 2, "the control of a secret that is not mounted");
  });

  test("trust the address from which the proxy of this machine connects", () => {
    const [network] = compose.networks.default.ipam.config;
    assert.equal(arbor.environment?.ARBOR_TRUSTED_PROXIES, `${network?.gateway}/32`);
  });

  test("leave the service more time to stop than its drain delay and its drain time", async () => {
    const { stdout } = await runCommand(["config", "print", "--json"], environmentOf("arbor"));
    const { drainDelay, drainTime } = JSON.parse(stdout) as Record<string, { value: string }>;
    const seconds = (text: string) => Number.parseInt(text, 10);
    const [delay = "", time = "", grace = ""] = [drainDelay?.value, drainTime?.value, arbor.stop_grace_period];
    assert.match(`${delay} ${time} ${grace}`, /^[1-9]\d*s \d+s \d+s$/);
    assert.ok(seconds(grace) > seconds(delay) + seconds(time) + 5);
  });
});

describe("the health check of the image", () => {
  const check = (env: Record<string, string>, ...args: string[]) =>
    execFile(process.execPath, [join(PROJECT, "deploy/container/healthcheck.mjs"), ...args], { env });

  test("succeeds while the service is ready, and fails with the reason when it is not", async () => {
    const harness = await startHarness();
    const { port } = new URL(harness.url);
    await check({ ARBOR_LISTEN: `0.0.0.0:${port}` });
    await check({}, `${harness.url}/readyz`);
    await assert.rejects(check({}, `${harness.url}/nothing`), /answers 404/);
    await harness.stop();
    await assert.rejects(check({ ARBOR_LISTEN: `127.0.0.1:${port}` }), /ECONNREFUSED/);
  });
});

describe("the configuration of the registry", () => {
  test("is that of the file and the sections that Arbor writes", async () => {
    const data = tempDir();
    assert.equal((await runCommand(["bootstrap", "--org", "example", "--data", data])).code, 0);
    const script = registryConfig.command?.[0] ?? "";
    const [, configure = "", out = ""] = /^arbor (registry configure --out (\S+) .*)$/m.exec(script) ?? [];
    const written = tempDir();
    const args = configure.split(" ").map((word) => (word === out ? written : word));
    const env = { ARBOR_DATA: data, ARBOR_BASE_URL: SHELL.ARBOR_BASE_URL };
    const secretFile = secretFiles.registry_secret ?? "";
    const { code, stderr } = await runCommand(args, { ...env, ARBOR_REGISTRY_SECRET_FILE: secretFile });
    assert.equal(code, 0, stderr);
    // The rest of the script, where these directories are.
    mkdirSync(join(written, "share"));
    writeFileSync(join(written, "share/registry.yml"), readFileSync(join(DIRECTORY, "registry.yml")));
    const rest = script.slice(script.indexOf("umask")).replaceAll(`${out}/`, `${written}/`);
    await execFile("sh", ["-euc", rest.replaceAll("/usr/share/", `${written}/share/`)]);
    const file = join(written, "config.yml");
    // A key that is there twice would be an error.
    const config = parse(readFileSync(file, "utf8"));
    assert.deepEqual(Object.keys(config), ["version", "log", "storage", "http", "auth", "notifications"]);
    const bundle = config.auth.token.rootcertbundle as string;
    assert.deepEqual(readdirSync(written).includes(basename(bundle)), true);
    const mount = registry.volumes?.find((text) => text.startsWith("registry-config:"))?.split(":")[1];
    assert.equal(bundle, join(mount ?? "", basename(bundle)));
    assert.equal(registry.command?.[1], join(mount ?? "", "config.yml"));
    assert.equal(config.auth.token.realm, `${SHELL.ARBOR_BASE_URL}/token`);
    assert.ok(registryConfig.volumes?.includes("registry-config:/data") && out === "/data");
    assert.equal(statSync(file).mode & 0o777, 0o600, "it has the secret");
  });
});
