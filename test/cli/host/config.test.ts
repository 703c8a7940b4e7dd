// `arbor config`, `arbor --version`, and which commands check the environment.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { describe, it } from "node:test";
import { serve } from "../../../src/app/server.js";
import { settingNames } from "../../../src/config/config.js";
import { buildSchema } from "../../../src/config/describe.js";
import { VERSION } from "../../../src/kernel/version.js";
import { spawn } from "../../support/child-process.js";
import { runCommand } from "../../support/command.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../../support/project.js";
import { tempDir } from "../../support/temp-dir.js";

const directory = tempDir();
const file = join(directory, "arbor.json");
const urlFile = join(directory, "url");
const keyFile = join(directory, "master.key");
writeFileSync(file, JSON.stringify({ logLevel: "warn", keyRotation: "48h", data: "from-file" }));
writeFileSync(urlFile, "postgres://arbor:hunter2@db/arbor\n", { mode: 0o600 });
writeFileSync(keyFile, "x\n", { mode: 0o600 });

interface Printed {
  readonly value: string | null;
  readonly from: string;
  readonly name?: string;
}

async function print(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { code, stdout, stderr } = await runCommand(["config", "print", ...args], env);
  assert.deepEqual([code, stderr], [0, ""]);
  return stdout;
}

describe("arbor config print", () => {
  const args = ["--listen", "127.0.0.1:1", "--no-access-log", "--config", file];
  const env = { ARBOR_DATA: "from-env", ARBOR_TRUSTED_PROXIES: "10.0.0.0/8,::1", ARBOR_QUOTAS: "roots=3" };

  it("says of each setting what it is and where it comes from", async () => {
    const printed = JSON.parse(await print([...args, "--json"], env)) as Record<string, Printed>;
    assert.deepEqual(Object.keys(printed), settingNames);
    const { listen, accessLog, data, trustedProxies, logLevel, keyRotation, baseUrl, responseBuffer, quotas } = printed;
    assert.deepEqual(listen, { value: "127.0.0.1:1", from: "flag", name: "--listen" });
    assert.deepEqual(accessLog, { value: "off", from: "flag", name: "--access-log" });
    assert.deepEqual(data, { value: "from-env", from: "environment", name: "ARBOR_DATA" });
    const proxies = { value: "10.0.0.0/8,::1/128", from: "environment", name: "ARBOR_TRUSTED_PROXIES" };
    assert.deepEqual(trustedProxies, proxies);
    assert.deepEqual(logLevel, { value: "warn", from: "file", name: file });
    assert.deepEqual(keyRotation, { value: "2d", from: "file", name: file });
    assert.deepEqual(baseUrl, { value: null, effective: "http://127.0.0.1:1", from: "default" });
    assert.deepEqual(responseBuffer, { value: "256MiB", from: "default" });
    assert.match(String(quotas?.value), /^roots=3,groups=10000,/);
  });

  const HERE = ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"];
  for (const { name, given, baseUrl, issuer, audiences, errorDomain } of [
    { name: "a loopback address", given: [], audiences: HERE },
    { name: "an audience besides", given: ["--audiences", "registry"], audiences: [...HERE, "registry"] },
    {
      name: "a base URL",
      given: ["--base-url", "https://arbor.example"],
      baseUrl: "https://arbor.example",
      audiences: ["https://arbor.example"],
      errorDomain: "iam.arbor.example",
    },
    { name: "an issuer", given: ["--issuer", "https://id.example"], issuer: "https://id.example", audiences: HERE },
  ]) {
    it(`says what tokens are issued by and for with ${name}`, async () => {
      const flags = ["--listen", "127.0.0.1:1", ...given];
      const base = baseUrl ?? "http://127.0.0.1:1";
      const expected = {
        ...{ baseUrl: base, issuer: issuer ?? base, audiences: audiences.join() },
        errorDomain: errorDomain ?? "iam.127.0.0.1",
      };
      const printed = JSON.parse(await print([...flags, "--json"])) as Record<string, { readonly effective?: string }>;
      const effective = Object.entries(printed).flatMap(([key, one]) => (one.effective ? [[key, one.effective]] : []));
      assert.deepEqual(Object.fromEntries(effective), expected);
      const lines = (await print(flags)).split("\n");
      for (const [key, value] of Object.entries(expected)) {
        assert.ok(
          lines.some((line) => line.startsWith(`${key} `) && line.endsWith(` ${value}`)),
          key,
        );
      }
    });
  }

  it("does not make up a port that the system chooses", async () => {
    const lines = (await print(["--listen", "127.0.0.1:0"])).split("\n");
    assert.match(lines.find((line) => line.startsWith("baseUrl ")) ?? "", /\(the address listened on\)$/);
  });

  it("takes a setting by its former name", async () => {
    const printed = JSON.parse(await print(["--answer-buffer", "200MiB", "--json"])) as Record<string, Printed>;
    assert.deepEqual(printed.responseBuffer, { value: "200MiB", from: "flag", name: "--answer-buffer" });
  });

  it("prints a table for people", async () => {
    const lines = (await print(args, env)).split("\n");
    assert.match(String(lines[0]), /^SETTING +FROM +VALUE$/);
    const lineOf = (name: string) => lines.find((line) => line.startsWith(`${name} `))?.replace(/ +/g, " ");
    assert.equal(lineOf("data"), "data ARBOR_DATA from-env");
    assert.equal(lineOf("logLevel"), `logLevel ${file} warn`);
    assert.equal(lineOf("issuer"), "issuer default http://127.0.0.1:1");
    assert.equal(lineOf("databaseUrl"), "databaseUrl default (SQLite)");
    assert.equal(lines.length, settingNames.length + 2);
  });

  for (const [form, given, name] of [
    ["a flag", ["--database-url", "postgres://arbor:hunter2@db/arbor"], "--database-url"],
    ["a file", ["--database-url-file", urlFile], "--database-url-file"],
  ] as const) {
    it(`prints no secret, given as ${form}`, async () => {
      const all = [...given, "--master-key-file", keyFile];
      const stdout = (await print([...all, "--json"])) + (await print(all));
      assert.doesNotMatch(stdout, /hunter2|postgres:/);
      const { databaseUrl } = JSON.parse(await print([...all, "--json"])) as Record<string, Printed>;
      assert.deepEqual(databaseUrl, { value: "***", from: "flag", name });
    });
  }

  it("prints what is wrong instead, as serve does", async () => {
    const wrong = ["--key-rotation", "1s", "--database-url", "postgres://arbor:hunter2@db/arbor"];
    for (const command of [["config", "print"], ["config", "check"], ["serve"]]) {
      const { code, stdout, stderr } = await runCommand([...command, ...wrong], { ARBOR_LISEN: "x" });
      assert.deepEqual([code, stdout], [2, ""]);
      assert.equal(
        stderr,
        "arbor: ARBOR_LISEN is not a setting; did you mean ARBOR_LISTEN?\n" +
          "--key-rotation must be a number of s, m, h or d, such as 30d: 1h to 3650d\n",
      );
    }
  });
});

describe("arbor config", () => {
  it("check reads the files that settings name, which print does not", async () => {
    const missing = join(directory, "none");
    const args = ["--login-providers", missing];
    const { code, stderr } = await runCommand(["config", "check", ...args]);
    assert.deepEqual([code, stderr], [2, `arbor: --login-providers: cannot read ${missing}: no such file\n`]);
    assert.match(await print(args), /loginProviders +--login-providers/);
    const right = await runCommand(["config", "check", "--config", file]);
    assert.deepEqual(right, { code: 0, stdout: "a server can use these settings\n", stderr: "" });
  });

  it("check and a start reject login providers that cannot be used, and name the setting that lets them", async () => {
    const providers = join(directory, "login-providers.json");
    const write = (issuers: readonly string[]) =>
      writeFileSync(
        providers,
        JSON.stringify(issuers.map((issuer, i) => ({ name: `p${i}`, title: "Login", issuer, clientId: "arbor" }))),
      );
    const cases = [
      ["http://login.example.com/realm", "the address is not https", "http://login.example.com"],
      ["https://login.example.com:8443", "the port is not 443", "https://login.example.com:8443"],
      ["https://10.0.0.5", "the host is not public", "https://10.0.0.5"],
      ["https://[fd00::1]/realm", "the host is not public", "https://[fd00::1]"],
      ["https://localhost", "the host is not public", "https://localhost"],
    ] as const;
    const given = ["--login-providers", providers];
    for (const [issuer, reason, origin] of cases) {
      write(["https://accounts.example.com", issuer]);
      const stderr =
        `arbor: --login-providers: ${providers}: nobody can sign in with p1: ${reason} in its issuer ${issuer}; ` +
        `to use it, add ${origin} to --trusted-issuers\n`;
      const expected = { code: 2, stdout: "", stderr };
      assert.deepEqual(await runCommand(["config", "check", ...given]), expected);
      const start = ["serve", "--data", tempDir(), "--listen", "127.0.0.1:0", ...given];
      assert.deepEqual(await runCommand(start), expected);
      const trusted = await runCommand(["config", "check", ...given, "--trusted-issuers", origin]);
      assert.equal(trusted.code, 0, trusted.stderr);
    }
    write(["https://accounts.example.com", "https://login.example.com/realm"]);
    assert.equal((await runCommand(["config", "check", ...given])).code, 0, "the control");
  });

  it("check and a start reject a setting of an earlier version wherever it is given, and name what replaces it", async () => {
    const old = join(directory, "old.json");
    writeFileSync(old, JSON.stringify({ overloadDelay: "20ms" }));
    const successor = "calls wait for their turn instead of being rejected; --max-wait (maxWait) says how long";
    const given: readonly { args: readonly string[]; env?: Readonly<Record<string, string>>; name: string }[] = [
      { args: ["--overload-delay", "off"], name: "--overload-delay is no setting any more" },
      { args: [], env: { ARBOR_OVERLOAD_DELAY: "20ms" }, name: "ARBOR_OVERLOAD_DELAY is no setting any more" },
      { args: ["--config", old], name: `--config: ${old}: overloadDelay is no setting any more` },
    ];
    for (const { args, env, name } of given) {
      const expected = { code: 2, stdout: "", stderr: `arbor: ${name}: ${successor}\n` };
      const data = tempDir();
      assert.deepEqual(await runCommand(["serve", "--data", data, "--listen", "127.0.0.1:0", ...args], env), expected);
      assert.deepEqual(readdirSync(data), []);
    }
    assert.equal((await runCommand(["config", "check", "--max-wait", "5s"])).code, 0, "the control");
  });

  it("schema prints the schema of the file", async () => {
    const { stdout } = await runCommand(["config", "schema"], { ARBOR_LISEN: "x" });
    assert.deepEqual(JSON.parse(stdout), buildSchema());
  });
});

it("arbor --version prints the version and nothing else", async () => {
  for (const flag of ["--version", "-V"]) {
    assert.deepEqual(await runCommand([flag]), { code: 0, stdout: `${VERSION}\n`, stderr: "" });
  }
});

describe("variables of Kubernetes", () => {
  const kubernetes = { ARBOR_PORT: "tcp://10.0.0.11:8080", ARBOR_SERVICE_HOST: "10.0.0.11", ARBOR_DB_PORT_7_TCP: "x" };

  async function startLog(env: Readonly<Record<string, string>>): Promise<string> {
    const args = [...scriptArguments("src/main.ts"), "serve", "--data", tempDir(), "--listen", "127.0.0.1:0"];
    const child = spawn(process.execPath, [...args, "--token-algorithm", "ES256"], {
      cwd: PROJECT,
      env: { ...environmentWithoutSettings(), ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const log = text(child.stderr);
    const closed = once(child, "close");
    const ready = once(createInterface({ input: child.stdout }), "line");
    await Promise.race([ready, closed]);
    child.kill("SIGTERM");
    await closed;
    return log;
  }

  it("are logged once at the start, by their names alone, and ignored", async () => {
    const lines = (await startLog(kubernetes)).split("\n").filter((line) => line.includes("Kubernetes"));
    assert.equal(lines.length, 1);
    const { variables } = JSON.parse(String(lines[0])) as { readonly variables: readonly string[] };
    assert.deepEqual(variables, Object.keys(kubernetes).sort());
    assert.doesNotMatch(String(lines[0]), /10\.0\.0\.11/);
  });

  it("are not mentioned where there are none", async () => {
    assert.doesNotMatch(await startLog({}), /Kubernetes/);
  });
});

describe("a program that serves Arbor itself", () => {
  async function startWith(env: Readonly<Record<string, string>>, settings = {}): Promise<string> {
    const before = { ...process.env };
    for (const name of Object.keys(process.env)) if (name.startsWith("ARBOR_")) delete process.env[name];
    Object.assign(process.env, env);
    try {
      const common = { data: tempDir(), listen: "127.0.0.1:0", tokenAlgorithm: "ES256", logLevel: "silent" };
      const server = await serve({ settings: { ...common, ...settings } });
      await server.stop();
      return "";
    } catch (error) {
      return String(error);
    } finally {
      for (const name of Object.keys(env)) delete process.env[name];
      Object.assign(process.env, before);
    }
  }

  it("has its environment checked, and the file of ARBOR_CONFIG read", async () => {
    assert.equal(await startWith({}), "");
    assert.equal(await startWith({ ARBOR_PORT: "tcp://10.0.0.11:8080", ARBOR_TOKEN: "t" }), "");
    const unknown = "SettingsError: ARBOR_LISEN is not a setting; did you mean ARBOR_LISTEN?";
    assert.equal(await startWith({ ARBOR_LISEN: "x" }), unknown);
    const none = join(directory, "none.json");
    assert.equal(
      await startWith({ ARBOR_CONFIG: none }),
      `SettingsError: ARBOR_CONFIG: cannot read ${none}: no such file`,
    );
  });

  it("has the names of its settings checked", async () => {
    const unknown = "SettingsError: settings.lisen is not a setting; did you mean listen?";
    assert.equal(await startWith({}, { lisen: "x" }), unknown);
  });
});
