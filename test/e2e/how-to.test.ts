// The pages of docs/how-to. Every block of a shell says what it is:
//
//   sh run        it is run, and succeeds; a block `text` after it is what it prints, where … stands for any text of a line
//   sh fails      the same, and its command fails
//   sh elsewhere  it needs other machines or programs: its lines of arbor are command lines
//
// All pages share one service, with the people and workloads of a small organisation.
import assert from "node:assert/strict";
import { once } from "node:events";
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { parseAllDocuments } from "yaml";
import { RECEIVER_CA, startReceiver } from "../events/receiver.js";
import { spawn } from "../support/child-process.js";
import { findUsageError, splitWords } from "../support/command-line.js";
import { freePort } from "../support/free-port.js";
import { type LocalIssuer, startLocalIssuer } from "../support/local-issuer.js";
import { environmentWithoutSettings, PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";
import { createDocsWorld, type DocsWorld, succeed } from "./docs-world.js";

interface Block {
  /** Such as `sh run`. */
  readonly kind: string;
  readonly text: string;
  /** What it prints, if the page says so. */
  readonly printed?: string;
}

/** What a page says is there already, besides {@link ORGANISATION}. */
const setups: Readonly<Record<string, string>> = {
  "delete-an-organisation.md": `arbor iam groups create --name old.example
    arbor iam groups create --parent old.example --name team`,
  "move-a-group.md":
    "arbor iam identities create --parent acme.example/platform/production --name deploy --issuer https://ci.example.com --subject deploy",
  "rotate-a-pull-token.md":
    "arbor auth pull-tokens create --group acme.example/platform --name cluster --ttl 90d -o json > cluster.json",
  "remove-a-person.md":
    "arbor iam role-bindings create --parent acme.example/platform --identity bob@acme.example --role editor",
};

/** Runs what is around a page, such as a receiver of events, whose address replaces that in the commands. */
type Around = (run: (replaced: Readonly<Record<string, string>>) => Promise<void>) => Promise<void>;

const arounds: Readonly<Record<string, Around>> = { "slack.md": besideSlack };

const pages = readdirSync(join(PROJECT, "docs/how-to")).sort();
const blocksOf = (page: string) => parseBlocks(readFileSync(join(PROJECT, "docs/how-to", page), "utf8"));

let people: LocalIssuer;
let world: DocsWorld;
/** The token of Ada, who owns the organisation. */
let ada: string;

before(async () => {
  people = await startLocalIssuer();
  const providers = join(tempDir(), "login-providers.json");
  writeFileSync(providers, JSON.stringify([{ name: "work", title: "Work", issuer: people.issuer, clientId: "arbor" }]));
  world = await createDocsWorld({
    ARBOR_LOGIN_PROVIDERS: providers,
    ARBOR_TRUSTED_ISSUERS: people.issuer,
    ARBOR_TRUSTED_SINKS: "127.0.0.0/8",
    ARBOR_SINK_CA: RECEIVER_CA,
  });
  await world.bootstrap();
  await serveMeanwhile(async () => {
    ada = await joinAs("Ada", "owner", "acme.example");
    await joinAs("Bob", "viewer", "acme.example");
    await runAsAda(ORGANISATION);
  });
  cpSync(world.data, template(), { recursive: true });
});
after(() => people?.stop());

/** A copy of the organisation, with which each page begins. */
const template = () => join(world.directory, "template");

async function serveMeanwhile(work: () => Promise<void>): Promise<void> {
  const server = await world.serve();
  try {
    await work();
  } finally {
    server.child.kill("SIGTERM");
    await server.ended;
  }
}

async function runAsAda(commands: string): Promise<string> {
  return (await succeed(world.run(commands, { ARBOR_TOKEN: ada }))).stdout;
}

/** Lets a person accept an invite, and returns a token of theirs. */
async function joinAs(name: string, role: string, group: string): Promise<string> {
  const email = `${name.toLowerCase()}@acme.example`;
  const invite = `arbor iam group-invites create --parent ${group} --role ${role} --email ${email} --ttl 1h --single-use -o json`;
  const { code } = JSON.parse((await succeed(world.run(invite))).stdout) as { code: string };
  const idToken = people.token({ sub: email, aud: "arbor", email, email_verified: true, name });
  const headers = { authorization: `Bearer ${idToken}`, "content-type": "application/json" };
  const registered = await fetch(`${world.api}/auth/v1/register`, {
    ...{ method: "POST", headers, body: JSON.stringify({ code }) },
  });
  assert.equal(registered.status, 200, await registered.text());
  const exchanged = await fetch(`${world.api}/sts/exchange?aud=${encodeURIComponent(world.api)}`, { headers });
  return ((await exchanged.json()) as { token: string }).token;
}

it("the page of nginx has the file that is tested", () => {
  const [file] = blocksOf("nginx.md").filter(({ kind }) => kind === "nginx");
  assert.equal(file?.text, readFileSync(join(PROJECT, "deploy/proxies/nginx.conf"), "utf8"));
});

describe("the pages of docs/how-to", () => {
  it("say of each block what it is, and of each command line of arbor one that there is", async () => {
    for (const page of pages) {
      for (const { kind, text } of blocksOf(page)) {
        const where = `${page}: ${text}`;
        if (kind === "json") JSON.parse(text);
        else if (kind === "yaml")
          assert.deepEqual(
            parseAllDocuments(text).flatMap(({ errors }) => errors),
            [],
            where,
          );
        else assert.match(kind, /^(?:sh (?:run|fails|elsewhere)|text|js|cron|hcl|nginx|sql)$/, where);
        if (kind !== "sh elsewhere") continue;
        for (const line of text
          .replaceAll("\\\n", " ")
          .split("\n")
          .filter((one) => one.startsWith("arbor "))) {
          const error = await findUsageError(splitWords(line.replace(/\s(?:#|>|\|).*$/, "")).slice(1));
          assert.equal(error, undefined, `${page}: ${line}: ${error}`);
        }
      }
    }
    assert.notEqual(await findUsageError(["iam", "groups", "list", "--nothing"]), undefined);
  });

  it("have settings of login providers that a server can use", async () => {
    const listed = pages
      .filter((page) => page.startsWith("login-"))
      .flatMap((page) => blocksOf(page).filter(({ kind }) => kind === "json"))
      .flatMap(({ text }) => JSON.parse(text) as object[]);
    assert.ok(listed.length >= 8, String(listed.length));
    const [file, clientSecretFile] = ["all-providers.json", "client.secret"].map((name) => join(world.directory, name));
    writeFileSync(clientSecretFile ?? "", "secret\n", { mode: 0o600 });
    const check = (providers: readonly object[]) => {
      writeFileSync(file ?? "", JSON.stringify(providers.map((one) => ({ ...one, clientSecretFile }))));
      return world.run(`arbor config check --login-providers '${file}'`).ended;
    };
    assert.equal((await check(listed)).code, 0);
    assert.notEqual((await check([...listed, ...listed])).code, 0, "each once");
  });

  for (const page of pages.filter((one) => blocksOf(one).some(({ kind }) => isRun(kind)))) {
    it(`of which ${page} does what it says`, async () => {
      rmSync(world.data, { recursive: true });
      cpSync(template(), world.data, { recursive: true });
      await serveMeanwhile(async () => {
        await runAsAda(setups[page] ?? "");
        const around = arounds[page] ?? ((work) => work({}));
        await around((replaced) => followPage(page, replaced));
      });
    });
  }

  it("are compared with what is printed", () => {
    assert.ok(isPrinted("NAME  UID\nci  …0e\n", "NAME UID\nci   12340e\n"));
    for (const other of ["NAME UID\nci 1234\n", "NAME UID\nci 12340e\nmore\n", "NAME UID\n"])
      assert.equal(isPrinted("NAME  UID\nci  …0e\n", other), false);
    assert.ok(isPrinted("NAME UID\n…\n", "NAME UID\nci 1\n"));
  });
});

const END = "--- end of a block";

/** What each page finds. */
const ORGANISATION = `
  arbor iam groups create --parent acme.example --name platform
  arbor iam groups create --parent acme.example/platform --name production
  arbor iam identities create --parent acme.example/platform --name ci --issuer https://ci.example.com --subject build
  arbor iam role-bindings create --parent acme.example/platform --identity acme.example/platform/ci --role registry.pull
  arbor registry repos create --parent acme.example/platform --name app`;

function toScript(blocks: readonly Block[]): string {
  const parts = blocks.map(({ kind, text }) => (kind === "sh fails" ? `if (\n${text}); then exit 99; fi` : text));
  return ["exec 2>&1", ...parts.map((part) => `${part}\necho "${END}"`)].join("\n");
}

/** Runs the program of docs/how-to/slack.md between a sink with a certificate and a server in place of Slack. */
async function besideSlack(run: Parameters<Around>[0]): Promise<void> {
  const posts: string[] = [];
  const slack = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    posts.push((JSON.parse(body) as { text: string }).text);
    response.end("ok");
  });
  slack.listen(0, "127.0.0.1");
  await once(slack, "listening");
  const slackUrl = `http://127.0.0.1:${(slack.address() as AddressInfo).port}`;
  const program = startSlackProgram(slackUrl);
  const sink = await startReceiver(async ({ headers, data }) => {
    const url = await program.url;
    const { host: _, "content-length": __, ...fields } = headers as Record<string, string>;
    return (await fetch(url, { method: "POST", headers: fields, body: new Uint8Array(data) })).status;
  });
  try {
    await run({ "https://hooks.acme.example/arbor": sink.url });
    await waitUntil(() =>
      posts.some((text) => /^iam\.group\.updated platform \([0-9a-f/]+\) by [0-9a-f]+$/.test(text)),
    );
    assert.ok(
      posts.some((text) => /^arbor\.events\.test by /.test(text)),
      posts.join(),
    );
    const forged = await fetch(await program.url, { method: "POST", body: "{}", headers: { "ce-id": "1" } });
    assert.ok(forged.status === 400 || forged.status === 401, String(forged.status));
  } finally {
    program.stop();
    sink.close();
    slack.closeAllConnections();
    slack.close();
  }
}

/** Starts the program once the page has written its variables. */
function startSlackProgram(slackUrl: string) {
  const [code = ""] = blocksOf("slack.md").flatMap(({ kind, text }) => (kind === "js" ? [text] : []));
  const file = join(tempDir(), "slack.mjs");
  writeFileSync(
    file,
    code.replace("@arbor-platform/client", new URL("../../src/client/index.js", import.meta.url).href),
  );
  const variables = join(world.directory, "slack.env");
  let child: ReturnType<typeof spawn> | undefined;
  const start = async () => {
    await waitUntil(() => existsSync(variables) && readFileSync(variables, "utf8").endsWith("\n"), 60_000);
    const port = String(await freePort());
    const env = Object.fromEntries(
      readFileSync(variables, "utf8")
        .trim()
        .split(" ")
        .map((pair) => pair.split("=")),
    );
    const args = import.meta.url.endsWith(".js") ? [file] : ["--import", "tsx", file];
    child = spawn(process.execPath, args, {
      ...{ cwd: PROJECT, stdio: "inherit" },
      env: { ...environmentWithoutSettings(), ...env, SLACK_URL: slackUrl, PORT: port },
    });
    const url = `http://127.0.0.1:${port}/`;
    await waitUntil(async () => (await fetch(url).catch(() => undefined)) !== undefined, 60_000);
    return url;
  };
  return { url: start(), stop: () => child?.kill("SIGKILL") };
}

async function followPage(page: string, replaced: Readonly<Record<string, string>>): Promise<void> {
  const blocks = blocksOf(page).filter(({ kind }) => isRun(kind));
  const script = Object.entries(replaced).reduce((text, [from, to]) => text.replaceAll(from, to), toScript(blocks));
  const outputs = world.asOnPage(await runAsAda(script)).split(`${END}\n`);
  for (const [i, { text, printed }] of blocks.entries()) {
    if (printed !== undefined) assert.ok(isPrinted(printed, outputs[i] ?? ""), `${text}\nprints:\n${outputs[i]}`);
  }
}

function isRun(kind: string): boolean {
  return kind === "sh run" || kind === "sh fails";
}

function parseBlocks(page: string): Block[] {
  const blocks: Block[] = [];
  for (const [, gap = "", kind = "", text = ""] of page.matchAll(/(.*?)^ *```(\S+(?: \S+)?)\n(.*?)^ *```$/gms)) {
    const above = blocks.at(-1);
    if (kind === "text" && gap.trim() === "" && above && isRun(above.kind)) {
      blocks[blocks.length - 1] = { ...above, printed: text };
    } else blocks.push({ kind, text });
  }
  return blocks;
}

/**
 * Whether a text has the lines that a page says, in any order, whatever uids and times are. In a line … stands for any
 * text, and alone for any lines.
 */
function isPrinted(expected: string, printed: string): boolean {
  const left = toLines(printed);
  const isFound = (line: string) => {
    const parts = line.split("…").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    const at = left.findIndex((one) => new RegExp(`^${parts.join(".*")}$`).test(one));
    return at >= 0 && left.splice(at, 1).length > 0;
  };
  const lines = toLines(expected);
  return lines.filter((line) => line !== "…").every(isFound) && (left.length === 0 || lines.includes("…"));
}

function toLines(text: string): string[] {
  return text
    .trimEnd()
    .replace(/[0-9a-f]{40}(?:\/[0-9a-f]{16})*|…[0-9a-f]{4}\b/g, "UID")
    .replace(/\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{3})?Z)?/g, "TIME")
    .split("\n")
    .map((line) => line.trim().replace(/\s+/g, " "));
}
