// The images of a stock registry.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { after, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  GetArchitecturesRequestSchema,
  GetSizeRequestSchema,
} from "#gen/chainguard/platform/registry/v2beta1/images_pb.js";
import { randomIds } from "../../src/kernel/ids.js";
import type { PreparedHandler } from "../../src/pipeline/handlers.js";
import { imagesV2beta1 } from "../../src/registry/images/image.js";
import { readSizes } from "../../src/registry/images/image-manifest.js";
import type { TagName } from "../../src/registry/oci/reference.js";
import { createRegistryClient } from "../../src/registry/oci/registry-client.js";
import { ensureRepo } from "../../src/registry/repos/repo.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import { groupRow, rootUid } from "../support/rows.js";
import { tempDir } from "../support/temp-dir.js";
import { startBareRegistry } from "./bare-registry.js";
import { makeImage, push } from "./images.js";

const ROOT = rootUid(1);
const registry = await startBareRegistry({ directory: tempDir() });
const store = openSqlite({ directory: tempDir(), clock: Date.now, exclusive: true });
after(async () => {
  await store.close();
  await registry.stop();
});
const creation = { ids: randomIds, nowMs: 1_000 };
const [app, named, other] = await store.write(async (tx) => {
  await tx.table(groupKind).insert(groupRow(ROOT, { name: "acme", verified: true }));
  await tx.registry.putName({ name: "acme", groupUid: ROOT, uidPath: "pulls" });
  return [
    await ensureRepo(tx, ROOT, "app", creation),
    await ensureRepo(tx, ROOT, "named", creation),
    await ensureRepo(tx, ROOT, "other", creation),
  ];
});
const client = createRegistryClient({ url: registry.url, token: () => "none is needed" });
const many = makeImage(join(tempDir(), "many"), "many", ["amd64", "arm64", "s390x"]);
const single = makeImage(join(tempDir(), "single"), "single", ["arm64"]);
await push(many, `${registry.host}/${ROOT}/app:latest`);
await push(single, `${registry.host}/acme/named:latest`);
const docker = makeImage(join(tempDir(), "docker"), "docker");
await push(docker, `${registry.host}/${ROOT}/app:docker`, "v2s2");
const dockerDigest = (await client.findDigest(`${ROOT}/app`, "docker" as TagName)) ?? "";

type Method = "getArchitectures" | "getSize";
type AnyHandler = PreparedHandler<object, unknown, Record<string, unknown>>;

function handlerOf(method: Method, from = client as typeof client | undefined): AnyHandler {
  return imagesV2beta1({ store, registry: from }).handlers[method] as unknown as AnyHandler;
}

/** What a call has of its own: nothing is traced. */
const call = { trace: undefined } as never;

async function ask(method: Method, request: { repoUid: string; digest: string; architecture?: string }, from = client) {
  const { prepare, handle } = handlerOf(method, from);
  const schema = method === "getSize" ? GetSizeRequestSchema : GetArchitecturesRequestSchema;
  const message = create<typeof GetSizeRequestSchema>(schema as typeof GetSizeRequestSchema, request);
  return handle(message, undefined as never, await prepare(message, call));
}

test("an index names the architectures and each has its size", async () => {
  const image = { repoUid: app.uid, digest: many.digest };
  assert.deepEqual(await ask("getArchitectures", image), { architectures: ["amd64", "arm64", "s390x"] });
  for (const [architecture, size] of Object.entries(many.sizes))
    assert.deepEqual(await ask("getSize", { ...image, architecture }), { size: BigInt(size), architecture });
  assert.deepEqual(await ask("getSize", image), { size: BigInt(many.sizes.amd64 ?? 0), architecture: "amd64" });
});

test("a single manifest has its architecture in its configuration, under the name of a verified root", async () => {
  const image = { repoUid: named.uid, digest: single.digest };
  assert.deepEqual(await ask("getArchitectures", image), { architectures: ["arm64"] });
  const size = BigInt(single.sizes.arm64 ?? 0);
  assert.deepEqual(await ask("getSize", { ...image, architecture: "arm64" }), { size, architecture: "arm64" });
  await assert.rejects(ask("getSize", image), { reason: "NOT_FOUND", message: /not built for amd64/ });
});

test("Docker's media types are understood", async () => {
  const request = { repoUid: app.uid, digest: dockerDigest };
  assert.deepEqual(await ask("getArchitectures", request), { architectures: ["amd64"] });
});

test("an image of another repo is not there", async () => {
  const digest = many.digest;
  await assert.rejects(ask("getSize", { repoUid: other.uid, digest }), { reason: "NOT_FOUND" });
  await assert.rejects(ask("getSize", { repoUid: `${ROOT}/${"0".repeat(16)}`, digest }), { reason: "NOT_FOUND" });
});

test("an answer of the registry is stored", async () => {
  const image = { repoUid: app.uid, digest: many.digest };
  await ask("getSize", image);
  const untouched = new Proxy(client, { get: () => assert.fail("the registry was called again") });
  assert.deepEqual(await ask("getArchitectures", image, untouched), { architectures: ["amd64", "arm64", "s390x"] });
});

const unknown = `sha256:${"e".repeat(64)}`;

test("a digest is validated before the registry is read", async () => {
  for (const digest of ["latest", "sha256:abc", `${unknown}/../x`, `sha256:${"E".repeat(64)}`])
    await assert.rejects(ask("getSize", { repoUid: app.uid, digest }), {
      reason: "INVALID_ARGUMENT",
      message: /digest/,
    });
});

test("without a registry nothing is known", async () => {
  const { prepare } = handlerOf("getSize");
  const alone = imagesV2beta1({ store, registry: undefined }).handlers.getSize as unknown as AnyHandler;
  await assert.rejects(alone.prepare({ repoUid: app.uid, digest: unknown }, call), {
    reason: "FAILED_PRECONDITION",
  });
  await assert.rejects(prepare({ repoUid: app.uid, digest: unknown }, call), { reason: "NOT_FOUND" });
});

test("an unreachable registry is reported", async () => {
  const away = createRegistryClient({ url: "http://127.0.0.1:1", token: () => "" });
  await assert.rejects(ask("getSize", { repoUid: app.uid, digest: unknown }, away), { reason: "UNAVAILABLE" });
});

const manifest = (value: object, mediaType = "application/vnd.oci.image.manifest.v1+json") => ({
  mediaType,
  bytes: Buffer.from(JSON.stringify(value)),
});
const digestOf = (text: string) => `sha256:${createHash("sha256").update(text).digest("hex")}`;

test("attestations are no images, and images for one architecture have different names", async () => {
  const type = "application/vnd.oci.image.manifest.v1+json";
  const part = (name: string, platform: object) => ({ mediaType: type, digest: digestOf(name), platform });
  const index = {
    manifests: [
      part("v7", { architecture: "arm", variant: "v7" }),
      part("v6", { architecture: "arm", variant: "v6" }),
      part("attestation", { architecture: "unknown", os: "unknown" }),
      part("windows", { architecture: "amd64", os: "windows" }),
      part("gone", { architecture: "riscv64", os: "linux" }),
      { mediaType: "application/vnd.example", digest: digestOf("v7"), platform: { architecture: "mips" } },
    ],
  };
  const sizes = await readSizes(manifest(index, "application/vnd.oci.image.index.v1+json"), {
    findManifest: async (digest) =>
      digest === digestOf("gone") ? undefined : manifest({ config: { size: 10 }, layers: [{ size: 5 }, { size: -1 }] }),
    findBlob: async () => undefined,
  });
  assert.deepEqual(sizes, { arm: 15, "arm/v6": 15, amd64: 15 });
});

for (const [what, content, reason] of [
  ["of another type", manifest({}, "application/vnd.example+json"), "FAILED_PRECONDITION"],
  [
    "that is no JSON",
    { mediaType: "application/vnd.oci.image.manifest.v1+json", bytes: Buffer.from("{") },
    "UNAVAILABLE",
  ],
  ["that is a list", manifest([]), "UNAVAILABLE"],
] as const) {
  test(`a manifest ${what} is rejected`, async () => {
    const reader = { findManifest: async () => undefined, findBlob: async () => undefined };
    await assert.rejects(readSizes(content, reader), { reason });
  });
}
