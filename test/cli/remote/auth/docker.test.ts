import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { beforeEach, describe, it, type TestContext } from "node:test";
import { Code } from "@connectrpc/connect";
import { findDockerConfigFile, setCredentialHelper } from "../../../../src/cli/remote/auth/configure-docker.js";
import {
  changeCredentials,
  readCredentials,
  type StoredLogin,
  setLogin,
} from "../../../../src/cli/remote/auth/credentials-file.js";
import { parseRegistryHost, respondToDocker } from "../../../../src/cli/remote/auth/docker-credential.js";
import { REGISTRY_CAPABILITIES } from "../../../../src/cli/remote/auth/registry-limit.js";
import { VERSION } from "../../../../src/kernel/version.js";
import { runCommand } from "../../../support/command.js";
import { tempDir } from "../../../support/temp-dir.js";
import { type LoginService, startLoginService } from "./login-service.js";
import { auth, commandErrorOf, run } from "./process.js";

const HOST = "registry.example.com";

describe("the configuration of docker", () => {
  it("is where docker looks for it", () => {
    assert.equal(findDockerConfigFile({ DOCKER_CONFIG: "/etc/d" }), "/etc/d/config.json");
    assert.match(findDockerConfigFile({}), /\/\.docker\/config\.json$/);
  });

  it("is made where there is none, for its owner alone", async () => {
    const file = join(tempDir(), "docker", "config.json");
    assert.equal(await setCredentialHelper(file, HOST, "arbor"), undefined);
    assert.equal(readFileSync(file, "utf8"), `{\n\t"credHelpers": {\n\t\t"${HOST}": "arbor"\n\t}\n}\n`);
    assert.equal(statSync(file).mode & 0o777, 0o600);
  });

  it("keeps all else, and its mode", async () => {
    const file = join(tempDir(), "config.json");
    const config = {
      auths: { "https://index.docker.io/v1/": { auth: "dTpw" } },
      credHelpers: { "other.example.com": "desktop", [HOST]: "pass" },
      credsStore: "desktop",
      __proto__x: 1,
      plugins: { "-x-cli-hints": { enabled: "true" } },
    };
    writeFileSync(file, JSON.stringify(config), { mode: 0o644 });
    assert.equal(await setCredentialHelper(file, HOST, "arbor"), "pass");
    const expected = { ...config, credHelpers: { "other.example.com": "desktop", [HOST]: "arbor" } };
    assert.deepEqual(JSON.parse(readFileSync(file, "utf8")), expected);
    assert.equal(statSync(file).mode & 0o777, 0o644);
    const { ino } = statSync(file);
    assert.equal(await setCredentialHelper(file, HOST, "arbor"), "arbor");
    assert.equal(statSync(file).ino, ino, "what is right already is not written again");
  });

  it("stays behind its link", async () => {
    const [link, target] = [join(tempDir(), "config.json"), join(tempDir(), "docker.json")];
    writeFileSync(target, "");
    symlinkSync(target, link);
    await setCredentialHelper(link, HOST, "arbor");
    assert.deepEqual(JSON.parse(readFileSync(target, "utf8")), { credHelpers: { [HOST]: "arbor" } });
  });

  for (const text of ["{", '{"auths":{"se-cret', "[]", "1", "null", '{"credHelpers":[]}', '{"credHelpers":"x"}']) {
    it(`is left alone when it is ${text}`, async () => {
      const file = join(tempDir(), "config.json");
      writeFileSync(file, text);
      const { code, message } = await commandErrorOf(setCredentialHelper(file, HOST, "arbor"));
      assert.equal(code, Code.FailedPrecondition);
      assert.equal(message, `${file} is not a configuration of docker, and was not changed`);
      assert.equal(readFileSync(file, "utf8"), text);
    });
  }
});

it("the host of a registry is what docker means by a server", () => {
  const cases: [server: string, host: string | undefined][] = [
    [HOST, HOST],
    [`${HOST}\n`, HOST],
    ["Registry.Example.COM:5000", `${HOST}:5000`],
    [`https://${HOST}`, HOST],
    [`https://${HOST}/v1/`, HOST],
    [`http://${HOST}:80/v2/a/b`, HOST],
    [`https://${HOST}:443/v2/`, HOST],
    [`${HOST}:443`, HOST],
    [`${HOST}:80`, `${HOST}:80`],
    [`http://${HOST}:443`, `${HOST}:443`],
    ["localhost:5000", "localhost:5000"],
    ["[::1]:5000", "[::1]:5000"],
    [`https://${HOST}@evil.example.com/`, undefined],
    [`https://evil.example.com?${HOST}`, undefined],
    [`ftp://${HOST}`, undefined],
    [`${HOST}:`, undefined],
    [`${HOST}:0`, undefined],
    [`${HOST}:123456`, undefined],
    [`.${HOST}`, undefined],
    ["", undefined],
    ["__proto__", undefined],
  ];
  for (const [server, host] of cases) assert.equal(parseRegistryHost(server), host, server);
});

describe("docker's helper", () => {
  let file: string;
  let binDir: string;
  let env: Record<string, string>;
  beforeEach(() => {
    file = join(tempDir(), "credentials.json");
    binDir = join(tempDir(), "it's a bin");
    process.env.ARBOR_CREDENTIALS = file;
    env = { ARBOR_CREDENTIALS: file, DOCKER_CONFIG: tempDir() };
  });

  const configureFlags = (service: LoginService) => ["--api", service.url, "--registry", HOST, "--bin-dir", binDir];
  const configure = (service: LoginService, ...flags: string[]) =>
    runCommand(["auth", "configure-docker", ...configureFlags(service), ...flags], env);
  // As docker does: the program by its name, the action, and the server on standard input.
  const helper = (action: string, input: string) =>
    run("docker-credential-arbor", [action], { ...env, PATH: `${binDir}${delimiter}${process.env.PATH}` }, input).ended;
  const askDocker = async (...request: Parameters<typeof respondToDocker>) =>
    JSON.parse(await respondToDocker(...request));

  async function configureDocker(test: TestContext) {
    const service = await startLoginService(test);
    const login = service.newLogin(3600);
    await changeCredentials(file, (now) => setLogin(now, service.url, login));
    const { code, stdout, stderr } = await configure(service);
    assert.equal(code, 0, stderr);
    return { service, login, stdout, stderr };
  }

  it("says its version, as docker's other helpers do", async () => {
    assert.equal(await respondToDocker("version", ""), `docker-credential-arbor ${VERSION}\n`);
  });

  it("knows a registry at the default port by both its names", async (test) => {
    const service = await startLoginService(test);
    await changeCredentials(file, (now) => setLogin(now, service.url, service.newLogin(3600)));
    assert.equal((await configure(service, "--registry", `${HOST}:443`)).code, 0);
    const { credHelpers } = JSON.parse(readFileSync(join(env.DOCKER_CONFIG ?? "", "config.json"), "utf8"));
    assert.deepEqual(credHelpers, { [`${HOST}:443`]: "arbor" });
    for (const server of [HOST, `${HOST}:443`]) assert.equal((await askDocker("get", server)).ServerURL, server);
    await assert.rejects(respondToDocker("get", `${HOST}:444`), { code: Code.Unauthenticated });
  });

  it("is installed, and says what was done and what is missing", async (test) => {
    const { service, stdout, stderr } = await configureDocker(test);
    const program = join(binDir, "docker-credential-arbor");
    const config = join(env.DOCKER_CONFIG ?? "", "config.json");
    assert.equal(stdout, `docker gets the credentials of ${HOST} from ${program} (${config})\n`);
    assert.equal(stderr, `arbor: warning: docker will not find the helper: add ${binDir} to PATH\n`);
    assert.equal(statSync(program).mode & 0o777, 0o755);
    assert.deepEqual(JSON.parse(readFileSync(config, "utf8")).credHelpers, { [HOST]: "arbor" });
    assert.deepEqual((await readCredentials(file)).registries, new Map([[HOST, { api: service.url }]]));
    env.PATH = `${binDir}${delimiter}${process.env.PATH}`;
    const again = await auth(["configure-docker", ...configureFlags(service)], env).ended;
    assert.deepEqual([again.code, again.stderr], [0, ""]);
  });

  it("gives a token that is limited to the registry, to the registry and to no other", async (test) => {
    const { service, login } = await configureDocker(test);
    const { code, stdout, stderr } = await helper("get", HOST);
    assert.deepEqual([code, stderr], [0, ""]);
    const { ServerURL, Username, Secret } = JSON.parse(stdout);
    assert.deepEqual([ServerURL, Username], [HOST, "_token"]);
    const [renewal, ...more] = service.requests.splice(0);
    assert.deepEqual([renewal?.route, more], ["POST /sts/exchange_refresh_token", []]);
    assert.deepEqual(renewal?.query.getAll("cap"), [...REGISTRY_CAPABILITIES]);
    const stored = (await readCredentials(file)).logins.get(service.url);
    assert.deepEqual([stored?.token, stored?.registryToken], [login.token, Secret], "the login keeps its own token");
    assert.notEqual(Secret, login.token);
    assert.notEqual(stored?.refreshToken, login.refreshToken);
    const url = `https://${HOST}/v2/`;
    assert.deepEqual(await askDocker("get", url), { ServerURL: url, Username: "_token", Secret });
    assert.deepEqual(await askDocker("list", ""), { [HOST]: "_token" });
    const others = ["docker.io", `${HOST}:5000`, `${HOST}.example.org`, `https://${HOST}@evil.example.com`, ""];
    for (const server of others) {
      const { code, message } = await commandErrorOf(respondToDocker("get", server));
      assert.equal(code, Code.Unauthenticated);
      assert.equal(message, `${server} is not configured; run: arbor auth configure-docker`);
    }
    assert.deepEqual(service.requests, []);
  });

  it("renews the login, and lets docker go on without one", async (test) => {
    const { service } = await configureDocker(test);
    const keep = (login: StoredLogin | undefined) =>
      changeCredentials(file, (now) => setLogin(now, service.url, login));
    await keep(service.newLogin(-60));
    const { Secret } = await askDocker("get", HOST);
    assert.equal(Secret, (await readCredentials(file)).logins.get(service.url)?.registryToken);
    await keep(service.newLogin(-60));
    service.fault = [503, { code: 14, message: "Unavailable: soon" }];
    const broken = await helper("get", HOST);
    assert.deepEqual([broken.code, broken.stdout], [8, "arbor cannot answer; standard error says why\n"]);
    assert.equal(broken.stderr, "arbor: Unavailable: soon\n");
    await keep(undefined);
    const none = await helper("get", HOST);
    assert.deepEqual([none.code, none.stdout], [3, "credentials not found in native keychain\n"]);
    assert.match(none.stderr, /^arbor: not logged in to /);
  });

  it("stores nothing, and takes back what it gave", async (test) => {
    await configureDocker(test);
    const before = readFileSync(file, "utf8");
    const credentialOf = (Username: string) => JSON.stringify({ ServerURL: HOST, Username, Secret: "se-cret" });
    assert.equal(await respondToDocker("store", credentialOf("_token")), "");
    const attempts = [
      ["store", credentialOf("ada")],
      ["store", "{"],
      ["erase", HOST],
    ] as const;
    for (const [action, input] of attempts) {
      const { code, message } = await commandErrorOf(respondToDocker(action, input));
      assert.equal(code, Code.FailedPrecondition);
      assert.doesNotMatch(message, /se-cret/);
    }
    assert.equal(readFileSync(file, "utf8"), before);
  });

  it("pulls as an identity where it is told to", async (test) => {
    const service = await startLoginService(test);
    const tokenFile = join(tempDir(), "oidc");
    writeFileSync(tokenFile, "oidc-token");
    assert.equal(
      (
        await configure(
          service,
          "--identity",
          "0123456789abcdef0123456789abcdef01234567/45",
          "--identity-token",
          tokenFile,
        )
      ).code,
      0,
    );
    assert.ok((await askDocker("get", HOST)).Secret);
    const [request] = service.requests;
    assert.deepEqual(
      [request?.bearer, request?.query.get("identity")],
      ["oidc-token", "0123456789abcdef0123456789abcdef01234567/45"],
    );
    rmSync(tokenFile);
    assert.equal((await commandErrorOf(respondToDocker("get", HOST))).code, Code.Unauthenticated);
  });

  const refused: [what: string, flags: string[], says: RegExp][] = [
    ["a URL", ["--registry", `https://${HOST}`], /--registry: must be a host, /],
    ["a path", ["--registry", `${HOST}/a`], /--registry: must be a host, /],
    [
      "an identity without token",
      ["--identity", "0123456789abcdef0123456789abcdef01234567/45"],
      /--identity: goes together with --identity-token/,
    ],
    [
      "a token that is not there",
      ["--identity", "0", "--identity-token", "/nowhere"],
      /--identity-token: cannot read \/nowhere: no such file/,
    ],
  ];
  for (const [what, flags, says] of refused) {
    it(`is not set up for ${what}`, async (test) => {
      const { code, stderr } = await configure(await startLoginService(test), ...flags);
      assert.equal(code, 2);
      assert.match(stderr, says);
      for (const path of [binDir, file, join(env.DOCKER_CONFIG ?? "", "config.json")]) assert.ok(!existsSync(path));
    });
  }

  it("does not take the place of another program", async (test) => {
    mkdirSync(binDir);
    writeFileSync(join(binDir, "docker-credential-arbor"), "something else");
    const { code, stderr } = await configure(await startLoginService(test));
    assert.equal(code, 6);
    assert.match(stderr, /exists and was not written by arbor; choose another directory with --bin-dir\n$/);
    assert.equal(readFileSync(join(binDir, "docker-credential-arbor"), "utf8"), "something else");
    assert.ok(!existsSync(join(env.DOCKER_CONFIG ?? "", "config.json")));
  });
});
