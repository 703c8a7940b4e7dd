// An organisation that pushed a repo under both of its names, and what moves it.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { verifyGroup } from "../../src/iam/operator/operate.js";
import { randomIds } from "../../src/kernel/ids.js";
import type { Content } from "../../src/registry/oci/registry-client.js";
import { createInternalTokens } from "../../src/registry/oci/registry-token.js";
import { repoKind } from "../../src/store/registry/repos.js";
import { tagKind } from "../../src/store/registry/tags.js";
import { type ExchangeWorld, startExchangeWorld } from "../issuer/sts/exchange-world.js";
import { environmentWithoutSettings, scriptArguments } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { type AnyReferenceClient, createAnyReferenceClient } from "./any-reference.js";
import { makeImage } from "./images.js";
import { arbor, type Outcome, type Registry, skopeo, startRegistry } from "./registry.js";

const OCI = "application/vnd.oci.image";

/** An organisation, its registry and its repos `app` and `tools`. */
export interface MoveWorld {
  readonly world: ExchangeWorld;
  readonly registry: Registry;
  /** With all rights. */
  readonly client: AnyReferenceClient;
  readonly group: string;
  readonly name: string;
  /** The credentials of somebody who may push, as skopeo takes them. */
  readonly creds: string;
  /** Pushes an image by skopeo. */
  push(image: string, to: string, ...flags: string[]): Promise<Outcome>;
  /** Pulls every blob of an image by skopeo, named as in `<org>/<repo>:<tag>`. */
  pull(from: string): Promise<Outcome>;
  verify(): Promise<void>;
  /** Runs `arbor registry` with the data and the registry. */
  run(command: string, ...flags: string[]): Promise<Outcome>;
  /** Runs it and kills it with -9 after some lines of progress; resolves to the number of those. */
  kill(command: string, lines: number, ...flags: string[]): Promise<number>;
  /** The manifests that the tags of a path lead to, with their content. */
  manifests(path: string): Promise<ReadonlyMap<string, Content>>;
  /** The tags of a path with their digests. */
  tags(path: string): Promise<Readonly<Record<string, string>>>;
  /** The tags that the service knows. */
  readTags(repo: string): Promise<Readonly<Record<string, string>>>;
  /** The bytes of all blobs in the storage of the registry. */
  countStoredBytes(): number;
  /** Uploads a blob and returns its descriptor. */
  putBlob(path: string, mediaType: string, bytes: Buffer): Promise<Descriptor>;
  stop(): Promise<void>;
}

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

/** Starts a service and a registry, with an organisation that is not verified. */
export async function startMoveWorld(name: string): Promise<MoveWorld> {
  const secret = join(tempDir(), "secret");
  writeFileSync(secret, "s".repeat(40), { mode: 0o600 });
  const world = await startExchangeWorld({ registrySecretFile: secret });
  const { data, harness, url: issuer } = world;
  const registry = await startRegistry({ data, flags: ["--registry-secret-file", secret] });
  const { keys, store } = harness.app.installation;
  const token = createInternalTokens({ keys, clock: Date.now, ids: randomIds, issuer, service: "arbor" });
  const client = createAnyReferenceClient({ url: registry.url, token });
  const { group } = await harness.organisation(name);
  const pusher = await harness.identity({}, group);
  await harness.bind(pusher.uid, "registry.push", group);
  const creds = `_token:${pusher.token}`;
  const args = (command: string, flags: readonly string[]) => [
    "registry",
    command,
    "--data",
    data,
    "--registry-url",
    registry.url,
    ...flags,
  ];

  const tags: MoveWorld["tags"] = async (path) => {
    const names = (await client.listTags(path)).sort();
    return Object.fromEntries(
      await Promise.all(names.map(async (tag) => [tag, (await client.findDigest(path, tag)) ?? ""] as const)),
    );
  };

  return {
    ...{ world, registry, client, group, name, creds, tags },
    push: (image, to, ...flags) =>
      skopeo([
        "copy",
        ...flags,
        "--dest-tls-verify=false",
        "--dest-creds",
        creds,
        image,
        `docker://${registry.host}/${to}`,
      ]),
    pull: (from) =>
      skopeo([
        ...["copy", "--all", "--src-tls-verify=false", "--src-creds", creds],
        ...[`docker://${registry.host}/${from}`, `dir:${join(tempDir(), "pulled")}`],
      ]),
    async verify() {
      const context = { ids: randomIds, nowMs: Date.now() };
      await world.write((tx) => verifyGroup(tx, group, undefined, context, { keepUidPulls: true }));
    },
    run: (command, ...flags) => arbor(args(command, flags)),
    async kill(command, lines, ...flags) {
      const child = spawn(
        process.execPath,
        [...scriptArguments("src/main.ts"), ...args(command, [...flags, "--progress"])],
        { env: environmentWithoutSettings(), stdio: ["ignore", "ignore", "pipe"] },
      );
      const closed = new Promise((resolve) => child.once("close", resolve));
      let seen = 0;
      for await (const line of createInterface({ input: child.stderr })) {
        if (/^\d+ of \d+$/.test(line) && ++seen === lines) child.kill("SIGKILL");
      }
      await closed;
      return seen;
    },
    async manifests(path) {
      const found = new Map<string, Content>();
      const visit = async (digest: string): Promise<void> => {
        const content = found.has(digest) ? undefined : await client.findManifest(path, digest);
        if (content === undefined) return;
        found.set(digest, content);
        const { manifests = [] } = JSON.parse(content.bytes.toString()) as { manifests?: Descriptor[] };
        for (const child of manifests) if (child.mediaType.includes("manifest")) await visit(child.digest);
      };
      for (const digest of Object.values(await tags(path))) await visit(digest);
      return found;
    },
    tags,
    async readTags(repo) {
      const row = await store.read((tx) => tx.table(repoKind).findByName(group, repo));
      const order = { field: "name", descending: false };
      const query = { visible: [row?.uid ?? ""], filter: {}, order, skip: 0, limit: 1_000 };
      const { rows } = await store.read((tx) => tx.table(tagKind).listAll(query));
      return Object.fromEntries(rows.map(({ name, digest }) => [name, digest]));
    },
    countStoredBytes() {
      const root = join(registry.storage, "docker", "registry", "v2", "blobs");
      const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
      return files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
    },
    async putBlob(path, mediaType, bytes) {
      const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
      const bearer = token([{ type: "repository", name: path, actions: ["pull", "push"] }]);
      const headers = { authorization: `Bearer ${bearer}` };
      const started = await fetch(`${registry.url}/v2/${path}/blobs/uploads/`, { method: "POST", headers });
      const upload = new URL(started.headers.get("location") ?? "", registry.url);
      upload.searchParams.set("digest", digest);
      const put = await fetch(upload, { method: "PUT", headers, body: bytes });
      if (put.status !== 201) throw new Error(`the blob was not uploaded: ${put.status} ${await put.text()}`);
      return { mediaType, digest, size: bytes.length };
    },
    async stop() {
      await registry.stop();
      await world.stop();
    },
  };
}

/** Pushes the images of an organisation that is not verified yet: of every type, and `count` more to `app`. */
export async function fillRepos(made: MoveWorld, count: number): Promise<void> {
  const { client, group, push, putBlob } = made;
  const layout = (text: string, architectures?: readonly string[]) =>
    `oci:${makeImage(tempDir(), text, architectures).directory}`;
  const app = `${group}/app`;
  const put = async (
    reference: string,
    manifest: Readonly<Record<string, unknown>> & { readonly mediaType: string },
  ) => {
    const bytes = Buffer.from(JSON.stringify(manifest, undefined, 3));
    const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
    for (const one of new Set([digest, reference])) {
      if (!(await client.putManifest(app, one, { mediaType: manifest.mediaType, bytes }))) throw new Error(reference);
    }
    return { mediaType: manifest.mediaType, digest, size: bytes.length };
  };
  const two = ["amd64", "arm64"];
  for (const outcome of [
    await push(layout("first"), `${app}:latest`),
    await push(layout("latest by uid"), `${app}:latest`),
    await push(layout("several", two), `${app}:multi`, "--all", "--preserve-digests"),
    await push(layout("docker"), `${app}:docker`, "--format", "v2s2"),
    await push(layout("docker list", two), `${app}:docker-list`, "--all", "--format", "v2s2"),
    await push(layout("tools"), `${group}/tools:1`),
  ]) {
    if (outcome.status !== 0) throw new Error(outcome.stderr);
  }
  const subject = (await client.findDigest(app, "multi")) ?? "";
  const config = await putBlob(app, "application/vnd.oci.empty.v1+json", Buffer.from("{}"));
  const attached = await putBlob(app, "application/vnd.example.signature", Buffer.from("signed"));
  const mediaType = `${OCI}.manifest.v1+json`;
  const artifact = { schemaVersion: 2, mediaType, config, layers: [attached] };
  const hex = subject.replace(":", "-");
  await put(`${hex}.sig`, artifact);
  // The list of referrers in a registry without the API for it (OCI distribution specification, "Referrers Tag Schema").
  const of = { mediaType: `${OCI}.index.v1+json`, digest: subject, size: 1 };
  const referrer = await put("referrer", { ...artifact, subject: of });
  const index = `${OCI}.index.v1+json`;
  await put(hex, {
    schemaVersion: 2,
    mediaType: index,
    manifests: [{ ...referrer, artifactType: "a/b" }],
  });
  // A build cache is an index of layers.
  await put("cache", {
    schemaVersion: 2,
    mediaType: index,
    manifests: [attached, config],
  });
  for (let n = 0; n < count; n++) {
    const layer = await putBlob(app, `${OCI}.layer.v1.tar`, Buffer.alloc(2_000, `layer ${n % 7} `));
    const own = await putBlob(app, `${OCI}.config.v1+json`, Buffer.from(JSON.stringify({ architecture: "amd64", n })));
    await put(`v${n}`, { schemaVersion: 2, mediaType, config: own, layers: [layer] });
  }
}
