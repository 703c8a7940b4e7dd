// `arbor audit` with a token, against a service whose database it cannot reach.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { startHost } from "../../e2e/process.js";
import { spawn } from "../../support/child-process.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../../support/project.js";
import { waitUntil } from "../../support/wait-until.js";
import { type EventWorld, startEventWorld, timeAt } from "./event-world.js";

describe("arbor audit over the API", () => {
  const host = startHost();
  let world: EventWorld;
  let token: string;
  before(async () => {
    world = await startEventWorld();
    token = (await world.createBound("viewer")).token;
    for (let i = 0; i < 5; i++)
      await world.add({ rootUid: world.root, subjectUid: world.child, requestId: `cli-${i}` }, i);
  });
  after(async () => {
    host.close();
    await world.stop();
  });

  const audit = (...args: readonly string[]) =>
    host.run(["audit", ...args, "--api", world.url], { ARBOR_TOKEN: token });
  const requestsIn = (text: string) => text.match(/cli-\d/g) ?? [];
  const window = () => ["--since", timeAt(0), "--until", timeAt(100)];

  it("lists the newest events first, as a table or as JSON lines", async () => {
    const table = await audit("list", "--scope", world.root, "--page-size", "3", ...window());
    const more = "arbor: there are older events: --page-size N prints more, and so does --until TIME\n";
    assert.deepEqual([table.code, table.stderr], [0, more]);
    assert.match(table.stdout, /^TIME +TYPE +BY +CHANGE +FROM +REQUEST +ACTOR +SUBJECT\n/);
    const all = await audit("list", "--scope", world.root, "--page-size", "1000", ...window());
    assert.deepEqual([all.code, all.stderr], [0, ""]);
    assert.deepEqual(requestsIn(table.stdout), ["cli-4", "cli-3", "cli-2"]);
    // Sealing changes what is printed of an event, so it has to be behind it.
    const event = await waitUntil(async () => {
      const json = await audit("list", "--scope", world.child, "--request-id", "cli-1", "--json");
      const found = JSON.parse(json.stdout);
      return found.sealed === true ? found : undefined;
    });
    assert.deepEqual([event.requestId, event.subjectUid, event.remoteAddress], ["cli-1", world.child, ""]);
  });

  it("chooses columns, also those of fields that the table has not, and filters as other lists do", async () => {
    const filters = ["--filter", "request-id=cli-1", "--columns", "requestId,organization-uid"];
    const { code, stdout, stderr } = await audit("list", "--scope", world.child, ...filters);
    assert.deepEqual([code, stderr], [0, ""]);
    assert.match(stdout, new RegExp(`^REQUEST +ORGANIZATION UID\\ncli-1 +${world.root}\\n$`));
    const [wrong, twice] = [
      await audit("list", "--scope", world.child, "--filter", "scope=x"),
      await audit("list", "--scope", world.child, "--type", "a", "--filter", "type=b"),
    ];
    assert.match(
      wrong.stderr,
      /^arbor: --filter: must be .* names: subject, actor, type, request-id, since, until; see /,
    );
    assert.match(twice.stderr, /^arbor: --filter: type must be given once, and not together with --type; see /);
  });

  it("takes the name that --page-size had, without showing it", async () => {
    const old = await audit("list", "--scope", world.root, "--limit", "2", "-o", "jsonl", ...window());
    assert.deepEqual([old.code, old.stderr], [0, ""]);
    assert.deepEqual(requestsIn(old.stdout), ["cli-4", "cli-3"]);
    const help = await host.run(["audit", "list", "--help"], {});
    assert.match(help.stdout, /--page-size/);
    assert.doesNotMatch(help.stdout, /--limit/);
  });

  it("prints one event by its id", async () => {
    // Sealing changes what is printed of an event, so it has to be behind it.
    const event = await waitUntil(async () => {
      const json = await audit("list", "--scope", world.child, "--request-id", "cli-1", "--json");
      const found = JSON.parse(json.stdout);
      return found.sealed === true ? found : undefined;
    });
    const one = await audit("get", event.id, "-o", "json");
    assert.deepEqual([one.code, one.stderr], [0, ""]);
    assert.deepEqual(JSON.parse(one.stdout), event);
    assert.equal((await audit("get", "nothing")).code, 2);
  });

  it("exports JSON lines, the oldest first", async () => {
    const { code, stdout } = await audit("export", "--scope", world.child);
    assert.equal(code, 0);
    const lines = stdout.trimEnd().split("\n");
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).requestId),
      ["cli-0", "cli-1", "cli-2", "cli-3", "cli-4"],
    );
  });

  it("prints events as they happen", async () => {
    const args = [
      ...scriptArguments("src/main.ts"),
      "audit",
      "tail",
      "--scope",
      world.child,
      "--json",
      "--api",
      world.url,
    ];
    const child = spawn(process.execPath, args, {
      cwd: PROJECT,
      env: { ...environmentWithoutSettings(), ARBOR_TOKEN: token },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const first = new Promise<string>((resolve) => {
      let text = "";
      child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
        if (text.includes("\n")) resolve(text.slice(0, text.indexOf("\n")));
      });
    });
    let line: string | undefined;
    void first.then((found) => (line = found));
    for (let i = 0; i < 200 && line === undefined; i++) {
      await world.add({ rootUid: world.root, subjectUid: world.child, requestId: "cli-tail" }, 1_000);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    child.kill();
    assert.equal(JSON.parse(line ?? "{}").requestId, "cli-tail");
  });

  it("says what the service says, and what flags do not go together", async () => {
    const denied = await audit("list", "--scope", world.foreign);
    assert.match(denied.stderr, /^arbor: Permission denied: role_bindings\.list at /);
    assert.equal(denied.stdout, "");
    const cases: readonly (readonly [string[], string])[] = [
      [["list", "--scope", world.root, "--org", world.root], "--org: is for the command on the host, without --scope"],
      [["list", "--state", "x"], "unknown option '--state'"],
      [["list", "--token-file", "x"], "--token-file: needs --scope"],
      [["export", "--since", "1h"], "--since: needs --scope"],
      [["tail", "--scope", world.root, "--org", world.root], "--org: is for the command on the host, without --scope"],
      [["list", "--scope", world.root, "--since", "1h", "--until", "2h"], "--until: must be after --since"],
      [["list", "--scope", world.root, "--since", "soon"], "--since: must be a time such as"],
      [["list", "--scope", world.root, "--page-size", "0"], "--page-size: must be a number from 1 to"],
    ];
    for (const [args, message] of cases) {
      const { code, stderr } = await host.run(["audit", ...args], { ARBOR_TOKEN: token });
      assert.notEqual(code, 0);
      assert.ok(stderr.includes(message), stderr);
    }
    const { code, stderr } = await host.run(["audit", "export"]);
    assert.deepEqual(
      [code, stderr.split("\n")[0]],
      [2, "arbor: required option '--org <uid-or-name>' not specified; see arbor audit export --help"],
    );
  });
});
