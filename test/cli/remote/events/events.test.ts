// `arbor events`: subscriptions, their delivery, and events without a sink, against a real service.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { type Finished, startHost } from "../../../e2e/process.js";
import { type IamWorld, startIamWorld } from "../../../iam/iam-world.js";
import { spawn } from "../../../support/child-process.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../../../support/project.js";
import { tempDir } from "../../../support/temp-dir.js";
import { TLS_FILES } from "../../../support/tls-files.js";
import { waitUntil } from "../../../support/wait-until.js";

type Json = Readonly<Record<string, unknown>>;

const host = startHost();
const directory = tempDir();
let world: IamWorld;
/** The events that the sink has received. */
const received: Readonly<Record<string, unknown>>[] = [];
let status = 200;
const tls = { cert: readFileSync(new URL("cert.pem", TLS_FILES)), key: readFileSync(new URL("key.pem", TLS_FILES)) };
const sink = createServer(tls, (request, response) => {
  request.resume().on("end", () => {
    received.push({ ...request.headers, path: request.url });
    response.writeHead(status).end();
  });
});
let url: string;
before(async () => {
  await new Promise<void>((resolve) => sink.listen(0, "127.0.0.1", resolve));
  url = `https://127.0.0.1:${(sink.address() as AddressInfo).port}`;
  world = await startIamWorld({ trustedSinks: url, sinkCa: fileURLToPath(new URL("cert.pem", TLS_FILES)) });
});
after(async () => {
  host.close();
  await world.stop();
  sink.closeAllConnections();
  sink.close();
});

const run = (...args: readonly string[]): Promise<Finished> =>
  host.run(["events", ...args, "--api", world.url], { ARBOR_TOKEN: world.owner.token, HOME: directory });

async function json(...args: readonly string[]): Promise<Json> {
  const { code, stdout, stderr } = await run(...args, "-o", "json");
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as Json;
}

async function subscribe(target = "https://sink.invalid/x"): Promise<string> {
  return String((await json("subscriptions", "create", "--parent", world.child, "--sink", target)).uid);
}

const rename = async (name: string) =>
  assert.equal((await world.owner.rest("PATCH", `/groups/${world.child}`, { name })).status, 200);

describe("arbor events subscriptions", () => {
  it("creates, lists, prints and deletes them", async () => {
    const uid = await subscribe();
    assert.deepEqual(await json("subscriptions", "get", uid), { uid, sink: "https://sink.invalid/x" });
    const { stdout } = await run("subscriptions", "list", "--descendants-of", world.root);
    assert.match(stdout, /^SINK +UID\n/);
    assert.ok(stdout.includes(` ${uid}\n`), stdout);
    assert.equal((await run("subscriptions", "delete", uid)).code, 2);
    const gone = await run("subscriptions", "delete", uid, "--yes");
    assert.deepEqual([gone.code, gone.stdout], [0, `deleted ${uid}\n`]);
  });

  it("prints, suspends and resumes the delivery", async () => {
    const uid = await subscribe();
    assert.equal((await json("subscriptions", "state", uid)).status, "STATUS_LIVE");
    const suspended = await run("subscriptions", "suspend", uid);
    assert.match(suspended.stdout, /^status +suspended$/m);
    assert.match(suspended.stdout, /^suspension +requested$/m);
    assert.equal((await json("subscriptions", "resume", uid)).status, "STATUS_LIVE");
    assert.equal((await run("subscriptions", "state", `${world.child}/0123456789abcdef`)).code, 5);
  });

  it("tests a sink, and fails with the answer of one that does not accept", async () => {
    const uid = await subscribe(`${url}/hook`);
    const tests = () => received.filter((headers) => headers["ce-type"] === "arbor.events.test.v1");
    const { accepted, httpStatus } = await json("subscriptions", "test", uid);
    assert.deepEqual([accepted, httpStatus, tests().length], [true, 200, 1]);
    status = 503;
    const failed = await run("subscriptions", "test", uid);
    status = 200;
    assert.equal(failed.code, 8);
    assert.match(failed.stdout, /^httpStatus +503$/m);
    assert.match(failed.stderr, /has not accepted the event: .*503/);
  });
});

describe("arbor events deliveries", () => {
  it("lists none, and delivers again", async () => {
    const uid = await subscribe();
    assert.deepEqual((await json("deliveries", "list", "--subscription", uid, "--status", "dead")).deliveries, []);
    assert.equal((await json("deliveries", "redeliver", "--subscription", uid, "--since", "1s")).uid, uid);
    for (const flags of [[], ["--id", "x", "--since", "1h"]]) {
      const { code, stderr } = await run("deliveries", "redeliver", "--subscription", uid, ...flags);
      assert.deepEqual([code, /either --id or --since/.test(stderr)], [2, true], stderr);
    }
    const unknown = await run("deliveries", "redeliver", "--subscription", uid, "--id", "0".repeat(32));
    assert.equal(unknown.code, 2);
  });
});

describe("an event that its sink does not accept", () => {
  it("is listed, is sent again when the delivery is resumed, and again when that is asked for, with its id", async () => {
    const uid = await subscribe(`${url}/again`);
    const arrived = (type: string) =>
      received.filter((one) => one.path === "/again" && String(one["ce-type"]).endsWith(`.${type}.v1`));
    const list = async () =>
      (await json("deliveries", "list", "--subscription", uid)).deliveries as readonly Json[] | undefined;
    const created = () => arrived("subscription.created").filter((one) => one["ce-subject"] === uid);
    await waitUntil(() => created().length >= 1);
    status = 503;
    await rename("refused");
    const [waiting] = await waitUntil(async () => {
      const found = await list();
      return found !== undefined && found.length > 0 && found;
    });
    status = 200;
    const { id, attempts, lastError, lastHttpStatus, subject } = waiting ?? {};
    assert.deepEqual([lastError, lastHttpStatus, subject], ["status 503", 503, world.child]);
    assert.ok(Number(attempts) >= 1);

    const failed = arrived("group.updated").length;
    assert.equal((await json("subscriptions", "resume", uid)).uid, uid);
    await waitUntil(() => arrived("group.updated").length > failed);
    await waitUntil(async () => (await list())?.length === 0);

    const before = arrived("group.updated").length;
    await json("deliveries", "redeliver", "--subscription", uid, "--id", String(id));
    await waitUntil(() => arrived("group.updated").length > before);
    await waitUntil(async () => (await list())?.length === 0);

    const all = arrived("group.updated").length;
    await json("deliveries", "redeliver", "--subscription", uid, "--since", "1h");
    await waitUntil(() => created().length >= 2);
    await waitUntil(() => arrived("group.updated").filter((one) => one["ce-id"] === id).length > before);
    await waitUntil(() => arrived("group.updated").length > all);

    const ours = arrived("group.updated").filter((one) => one["ce-id"] === id);
    assert.equal(new Set(ours.map((one) => one.authorization)).size, ours.length, "a token was used twice");
    assert.equal(new Set(ours.map((one) => one["ce-time"])).size, 1);
    assert.equal((await run("subscriptions", "delete", uid, "--yes")).code, 0);
  });
});

describe("arbor events listen", () => {
  function listen(...flags: readonly string[]) {
    const args = ["events", "listen", "--scope", world.root, "--api", world.url, ...flags];
    const child = spawn(process.execPath, [...scriptArguments("src/main.ts"), ...args], {
      cwd: PROJECT,
      env: { ...environmentWithoutSettings(), ARBOR_TOKEN: world.owner.token, HOME: directory },
      stdio: ["ignore", "pipe", "pipe"],
    });
    assert.ok(child.stdout && child.stderr);
    const errors = createInterface({ input: child.stderr })[Symbol.asyncIterator]();
    return { child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator](), errors };
  }

  it("prints events as they happen", async () => {
    const { child, lines, errors } = listen("-o", "jsonl");
    assert.match((await errors.next()).value, /^arbor: listening to the events of /);
    await rename("printed");
    const event = JSON.parse((await lines.next()).value);
    assert.deepEqual(
      [event.type, event.subject, JSON.parse(event.data).body.name],
      ["dev.chainguard.api.iam.group.updated.v1", world.child, "printed"],
    );
    child.kill("SIGTERM");
    await once(child, "close");
  });

  it("gives a command the data and the attributes, and goes on when it fails", async () => {
    // Text of a caller reaches the command as data: a shell would run it.
    const hostile = join(directory, "hostile");
    const script = join(directory, "handle.sh");
    writeFileSync(script, 'cat > "$1.$CE_ID"; echo "$CE_TYPE $CE_SUBJECT $CE_GROUP $CE_SPECVERSION"; exit 3\n');
    const out = join(directory, "event");
    const { child, lines, errors } = listen("--exec", `sh '${script}' '${out}'`, "--subject", world.child);
    await errors.next();
    const made = await world.owner.rest("PATCH", `/groups/${world.child}`, { description: `$(touch ${hostile})` });
    assert.equal(made.status, 200);
    await rename("second");
    for (const name of [undefined, "second"]) {
      const { value } = await lines.next();
      assert.equal(value, `dev.chainguard.api.iam.group.updated.v1 ${world.child} ${world.child} 1.0`);
      const failure = (await errors.next()).value as string;
      const [, id = ""] = /^arbor: the command ended with 3 for the event (\S+)$/.exec(failure) ?? [];
      const { body } = JSON.parse(readFileSync(`${out}.${id}`, "utf8"));
      if (name !== undefined) assert.equal(body.name, name);
      else assert.equal(body.description, `$(touch ${hostile})`);
    }
    assert.throws(() => readFileSync(hostile), /ENOENT/);
    child.kill("SIGTERM");
    await once(child, "close");
  });

  it("ends with the error of the service", async () => {
    const { child, errors } = listen("--subject", world.foreign);
    const [code] = await once(child, "close");
    assert.equal(code, 2);
    assert.match((await errors.next()).value, /subject/);
  });

  it("shows what a sink receives, with the same id", async () => {
    const uid = await subscribe(`${url}/hook`);
    const { child, lines, errors } = listen("-o", "jsonl");
    await errors.next();
    await rename("both");
    const event = JSON.parse((await lines.next()).value);
    await waitUntil(() => received.some((headers) => headers["ce-id"] === event.id));
    child.kill("SIGTERM");
    await once(child, "close");
    assert.equal((await run("subscriptions", "delete", uid, "--yes")).code, 0);
  });
});
