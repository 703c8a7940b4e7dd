// The receivers of examples/receivers: what each must accept and refuse. One whose language is not here is left out, and
// says so.
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, it } from "node:test";
import { spawn, spawnSync } from "../support/child-process.js";
import { environmentWithoutSettings, PROJECT } from "../support/project.js";
import {
  BODY,
  type Claims,
  claimsOf,
  digestOf,
  EC,
  type EventIssuer,
  GROUP,
  headersOf,
  RSA,
  sign,
  startEventIssuer,
  twinOf,
} from "./event-issuer.js";

interface Receiver {
  readonly language: string;
  /** Why it cannot run here; undefined where it can. */
  readonly missing: () => string | undefined;
  readonly command: (scratch: string) => readonly [program: string, ...args: string[]];
}

const folder = (name: string) => join(PROJECT, "examples", "receivers", name);
// Debian's modules belong to its own interpreter.
const PYTHON = "/usr/bin/python3";
const runs = (program: string, ...args: string[]) => spawnSync(program, args, { stdio: "ignore" }).status === 0;

const receivers: readonly Receiver[] = [
  {
    language: "TypeScript",
    missing: () => undefined,
    command: () => [process.execPath, "--import", "tsx", join(folder("typescript"), "receiver.ts")],
  },
  {
    language: "Python",
    missing: () =>
      existsSync(PYTHON) && runs(PYTHON, "-s", "-c", "import jwt, cryptography")
        ? undefined
        : "python3-jwt and python3-cryptography are not installed",
    command: () => [PYTHON, "-B", "-s", join(folder("python"), "receiver.py")],
  },
  {
    language: "Go",
    missing: () => (runs("go", "version") ? undefined : "go is not installed"),
    command(scratch) {
      const program = join(scratch, "receiver");
      const { status, stderr } = spawnSync("go", ["build", "-o", program, "."], {
        cwd: folder("go"),
        encoding: "utf8",
        // Nothing is fetched: the receiver needs the standard library alone.
        env: { ...process.env, GOFLAGS: "-mod=readonly", GOPROXY: "off", GOTOOLCHAIN: "local" },
      });
      assert.equal(status, 0, stderr);
      return [program];
    },
  },
];

let issuer: EventIssuer;
before(async () => {
  issuer = await startEventIssuer();
});
after(() => issuer.close());

for (const { language, missing, command } of receivers) {
  const why = missing();
  if (why !== undefined) console.log(`the receiver in ${language} is not tested: ${why}`);
  describe(`the receiver in ${language}`, { skip: why ?? false }, () => {
    const scratch = mkdtempSync(join(tmpdir(), "arbor-receiver-"));
    let url: string;
    let lines: AsyncIterator<string>;
    let stop = () => {};
    before(async () => {
      const [program, ...args] = command(scratch);
      const child = spawn(program, args, {
        cwd: PROJECT,
        env: { ...environmentWithoutSettings(), ISSUER: issuer.url, GROUP, PORT: "0" },
        stdio: ["ignore", "pipe", "pipe"],
      });
      assert.ok(child.stdout && child.stderr);
      stop = () => child.kill("SIGKILL");
      lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      const [line] = await once(createInterface({ input: child.stderr }), "line");
      url = `http://127.0.0.1:${JSON.parse(String(line)).port}/`;
    });
    after(() => {
      stop();
      rmSync(scratch, { recursive: true, force: true });
    });

    const send = async (headers: Record<string, string>, body = BODY) =>
      (await fetch(url, { method: "POST", headers, body })).status;
    const statusOf = async (changed: Claims) => send(headersOf(await sign(issuer, claimsOf(issuer, changed))));

    it("accepts an event of either algorithm, and prints it", async () => {
      assert.equal(await send(headersOf(await sign(issuer))), 200);
      assert.equal(await send(headersOf(await sign(issuer, claimsOf(issuer), EC), { "ce-id": "id%202" })), 200);
      const printed = [JSON.parse((await lines.next()).value), JSON.parse((await lines.next()).value)];
      assert.deepEqual(
        printed.map(({ id, type, subject }) => [id, type, subject]),
        ["id-1", "id 2"].map((id) => [id, "dev.chainguard.api.iam.group.created.v1", GROUP]),
      );
    });

    it("accepts an event again, with a token of its own, and refuses a token that was used", async () => {
      const token = await sign(issuer);
      assert.equal(await send(headersOf(token)), 200);
      assert.equal(await send(headersOf(token)), 403);
      assert.equal(await send(headersOf(token, { "ce-id": "id-2" })), 403);
      assert.equal(await send(headersOf(await sign(issuer))), 200);
      const signed = await sign(issuer, claimsOf(issuer), EC);
      assert.equal(await send(headersOf(twinOf(signed))), 200);
      assert.equal(await send(headersOf(signed)), 403);
    });

    it("refuses data that was changed", async () => {
      assert.equal(await send(headersOf(await sign(issuer)), BODY.replace("someone", "anybody")), 403);
      assert.equal(await statusOf({ webhook: {} }), 403);
      assert.equal(await statusOf({ webhook: undefined }), 403);
    });

    it("refuses tokens of others", async () => {
      const [root = ""] = GROUP.split("/");
      const others: readonly Claims[] = [
        { iss: "https://evil.example.com" },
        { aud: "https://platform.example.com" },
        { sub: `webhook:${root}` },
        { sub: GROUP },
      ];
      for (const changed of others) assert.equal(await statusOf(changed), 403, JSON.stringify(changed));
      const { foreign } = issuer.keys;
      assert.equal(await send(headersOf(await sign(issuer, claimsOf(issuer), RSA, foreign))), 403);
      assert.equal(await send(headersOf(await sign(issuer, claimsOf(issuer), { ...RSA, kid: "new" }, foreign))), 403);
    });

    it("refuses an old token, whatever its expiry says", async () => {
      const nowS = Math.floor(Date.now() / 1_000);
      assert.equal(await statusOf({ iat: nowS - 640, exp: nowS - 340 }), 403);
      assert.equal(await statusOf({ iat: nowS - 340, exp: nowS + 3_600 }), 403);
      assert.equal(await statusOf({ iat: nowS - 10, exp: nowS + 290 }), 200);
    });

    it("refuses tokens without a signature of a key", async () => {
      const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
      assert.equal(await send(headersOf(`${encode({ alg: "none" })}.${encode(claimsOf(issuer))}.`)), 403);
      assert.equal(await send(headersOf("x.y.z")), 403);
      assert.equal(await send(headersOf("x")), 403);
    });

    it("answers as published receivers to what is no event", async () => {
      const { authorization: _, ...anonymous } = headersOf("");
      assert.equal(await send(anonymous), 401);
      assert.equal(await send(headersOf(await sign(issuer), { "ce-specversion": "0.3" })), 400);
      const text = "no JSON";
      const token = await sign(issuer, claimsOf(issuer, { webhook: { digest: digestOf(text) } }));
      assert.equal(await send(headersOf(token), text), 400);
    });
  });
}
