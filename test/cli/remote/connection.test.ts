// What commands print when the service cannot be reached, over gRPC and over HTTP: once, with the cause and a remedy.
import assert from "node:assert/strict";
import { createServer as createHttpServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { type AddressInfo, createServer, type Server } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Code } from "../../../src/cli/errors.js";
import { findConnectionFailure } from "../../../src/cli/remote/connection-failure.js";
import { execFileSync } from "../../support/child-process.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { scriptArguments } from "../../support/project.js";
import { tempDir } from "../../support/temp-dir.js";
import { type Ended, run } from "./auth/process.js";

const directory = tempDir();
const at = (name: string) => join(directory, name);
const home = { HOME: directory, XDG_CONFIG_HOME: directory };
const ANOTHER = "is this its address? --api URL, or ARBOR_API, names another";

type Environment = Readonly<Record<string, string>>;

/** Runs a command that calls by gRPC, one that sends an HTTP request, and one that exchanges a token. */
async function runEach(api: string, env: Environment = {}): Promise<readonly Ended[]> {
  const commands = [
    ["iam", "groups", "list", "--in-root"],
    ["auth", "pull-tokens", "create", "--group", "0123"],
    ["auth", "login", "--identity", "0".repeat(40), "--identity-token", at("ca.pem.token")],
  ];
  return Promise.all(
    commands.map((args) => {
      const all = [...scriptArguments("src/main.ts"), ...args, "--api", api];
      return run(process.execPath, all, { ...home, ...env }).ended;
    }),
  );
}

function assertEach(results: readonly Ended[], stderr: string): void {
  for (const { code, stdout, stderr: printed } of results) {
    assert.deepEqual({ code, stdout, stderr: printed }, { code: 8, stdout: "", stderr });
  }
}

before(() => {
  const openssl = (...args: readonly string[]) => execFileSync("openssl", args, { cwd: directory, stdio: "pipe" });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  for (const name of ["ca", "wrong-ca"]) {
    const files = ["-keyout", `${name}.key`, "-out", `${name}.pem`, "-days", "2"];
    openssl("req", "-x509", ...key, ...files, "-subj", `/CN=${name}`);
  }
  for (const [name, days, host] of [
    ["good", "2", "IP:127.0.0.1"],
    ["expired", "-1", "IP:127.0.0.1"],
    ["other-host", "2", "DNS:other.example"],
  ] as const) {
    const request = ["-keyout", `${name}.key`, "-out", `${name}.csr`, "-addext", `subjectAltName=${host}`];
    openssl("req", ...key, ...request, "-subj", `/CN=${name}`);
    const signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-copy_extensions", "copy", "-days", days];
    openssl("x509", "-req", "-in", `${name}.csr`, ...signed, "-out", `${name}.pem`);
  }
  // Any text that may be sent as a bearer token.
  execFileSync("sh", ["-c", "printf a.b.c > ca.pem.token"], { cwd: directory });
});

describe("a service with TLS", () => {
  const services: Harness[] = [];
  const serve = async (name: string) => {
    const service = await startHarness({ tlsCert: at(`${name}.pem`), tlsKey: at(`${name}.key`) });
    services.push(service);
    return service;
  };
  after(() => Promise.all(services.map((service) => service.stop())));

  it("control: is reached with its authority", async () => {
    const { url, organisation } = await serve("good");
    const { token } = await organisation("acme.example");
    const env = { NODE_EXTRA_CA_CERTS: at("ca.pem"), ARBOR_TOKEN: token };
    const [list] = await runEach(url, env);
    assert.equal(list?.code, 0, list?.stderr);
    assert.match(list?.stdout ?? "", /acme\.example/);
  });

  it("of an authority that is not trusted, with another one or without one", async () => {
    const { url } = await serve("good");
    const envs: Environment[] = [{}, { NODE_EXTRA_CA_CERTS: at("wrong-ca.pem") }];
    for (const env of envs) {
      assertEach(
        await runEach(url, env),
        `arbor: ${url} cannot be reached: this machine does not trust its certificate (UNABLE_TO_VERIFY_LEAF_SIGNATURE)\n` +
          "  trust a private authority with NODE_EXTRA_CA_CERTS=FILE, a PEM file with its certificate\n",
      );
    }
  });

  it("with a certificate that has expired", async () => {
    const { url } = await serve("expired");
    assertEach(
      await runEach(url, { NODE_EXTRA_CA_CERTS: at("ca.pem") }),
      `arbor: ${url} cannot be reached: its certificate has expired (CERT_HAS_EXPIRED)\n` +
        "  its operator must renew the certificate, unless the clock of this machine is wrong\n",
    );
  });

  it("with a certificate for another host", async () => {
    const { url } = await serve("other-host");
    assertEach(
      await runEach(url, { NODE_EXTRA_CA_CERTS: at("ca.pem") }),
      `arbor: ${url} cannot be reached: its certificate is for another host: it names other.example (ERR_TLS_CERT_ALTNAME_INVALID)\n` +
        "  name the service by a host of the certificate, with --api URL or ARBOR_API\n",
    );
  });

  it("that is called without TLS", async () => {
    const { url } = await serve("good");
    const plain = url.replace("https:", "http:");
    for (const { code, stderr } of await runEach(plain)) {
      assert.equal(code, 8);
      assert.match(stderr, /^arbor: \S+ cannot be reached: it closed the connection.*\n {2}is this .* https:\/\/\n$/);
    }
  });
});

describe("an address", () => {
  const servers: Server[] = [];
  const listen = async (server: Server) => {
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  after(() => {
    for (const server of servers) server.close();
  });

  it("where nothing listens", async () => {
    const gone = createServer();
    const host = await listen(gone);
    await new Promise((resolve) => gone.close(resolve));
    assertEach(
      await runEach(`http://${host}`),
      `arbor: http://${host} cannot be reached: nothing listens there (ECONNREFUSED)\n` +
        `  is the service running, and ${ANOTHER}\n`,
    );
  });

  it("with a name that does not exist", async () => {
    for (const { code, stderr } of await runEach("https://nowhere.invalid")) {
      assert.equal(code, 8);
      assert.match(stderr, /^arbor: https:\/\/nowhere\.invalid cannot be reached: its host name .*\n {2}is .*\n$/);
    }
  });

  it("that does not speak TLS", async () => {
    const url = `https://${await listen(createHttpServer((_, response) => response.end()))}`;
    for (const { code, stderr } of await runEach(url)) {
      assert.equal(code, 8);
      assert.match(stderr, /^arbor: \S+ cannot be reached: it does not speak TLS \(\w+\)\n {2}is this .*\n$/);
    }
  });

  it("that speaks HTTP/1.1 alone, which ends the command with no more than an error", async () => {
    const url = `http://${await listen(createHttpServer((_, response) => response.end("hello")))}`;
    const [{ code, stderr } = { code: 0, stderr: "" }] = await runEach(url);
    assert.equal(code, 8);
    assert.match(
      stderr,
      /^arbor: \S+ cannot be reached: it does not speak HTTP\/2, which gRPC needs .*\n {2}is this .*\n$/,
    );
  });

  it("where something else answers", async () => {
    const other = createHttp2Server((_, response) => {
      response.statusCode = 404;
      response.end("<html>");
    });
    const url = `http://${await listen(other as unknown as Server)}`;
    const [{ code, stderr } = { code: 0, stderr: "" }] = await runEach(url);
    assert.equal(code, 8);
    assert.match(
      stderr,
      /^arbor: \S+ cannot be reached: the response is not that of an Arbor service \(HTTP 404\)\n {2}is /,
    );
  });
});

describe("the cause of an error", () => {
  const coded = (code: string) => Object.assign(new Error("m"), { code });

  it("is found below errors of libraries, and in one of several addresses", () => {
    for (const error of [
      coded("ECONNREFUSED"),
      new Error("outer", { cause: new TypeError("fetch failed", { cause: coded("ECONNREFUSED") }) }),
      new AggregateError([coded("ECONNREFUSED"), coded("EHOSTUNREACH")]),
    ]) {
      const found = findConnectionFailure(error, "https://a.example");
      assert.equal(found?.code, Code.Unavailable);
      assert.match(found?.message ?? "", /nothing listens there/);
    }
  });

  it("is none for errors of another kind", () => {
    for (const error of [new Error("x"), coded("ENOENT"), undefined, "text"])
      assert.equal(findConnectionFailure(error, "https://a.example"), undefined);
  });

  it("cannot act on the terminal", () => {
    const cert = { subjectaltname: "DNS:a\u001b[2J.example" };
    const error = Object.assign(coded("ERR_TLS_CERT_ALTNAME_INVALID"), { cert });
    const { message } = findConnectionFailure(error, "https://a.example") ?? {};
    assert.match(message ?? "", /a\\u001b\[2J\.example/);
  });
});
