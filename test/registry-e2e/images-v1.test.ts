// Images, version 1, as a stock registry has them: what they are built for, how
// large they are and how they are run.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import { ImagesService } from "#gen/chainguard/platform/registry/v2beta1/images_pb.js";
import { type Wire, wireNames, wireOf } from "../iam/v1/wires.js";
import { digestOf } from "../registry/registry-world.js";
import { type Harness, startHarness } from "../support/harness.js";
import { tempDir } from "../support/temp-dir.js";
import { type BareRegistry, startBareRegistry } from "./bare-registry.js";
import { type MadeImage, makeImage, push } from "./images.js";

const v1 = Registry.method;
const v2 = ImagesService.method;
const OCI = "application/vnd.oci.image";

let registry: BareRegistry;
let harness: Harness;
let owner: string;
let foreigner: string;
let repoId: string;
let path: string;
let many: MadeImage;
before(async () => {
  registry = await startBareRegistry({ directory: tempDir() });
  harness = await startHarness({ registryUrl: registry.url });
  const { group, token } = await harness.organisation("ours");
  [owner, foreigner] = [token, (await harness.organisation("theirs")).token];
  const wire = wireOf("REST", harness.url, owner);
  repoId = (await wire.call(v1.createRepo, { parentId: group, repo: { name: "app" } })).id;
  path = `${group}/app`;
  many = makeImage(join(tempDir(), "many"), "many", ["amd64", "arm64"]);
  await push(many, `${registry.host}/${path}:latest`);
});
after(async () => {
  await harness.stop();
  await registry.stop();
});

/** Puts something into the registry under its digest, over the registry's own API; returns its descriptor. */
async function storeContent(kind: "blobs" | "manifests", value: object, mediaType: string) {
  const body = JSON.stringify(value);
  const digest = `sha256:${createHash("sha256").update(body).digest("hex")}`;
  let to = `${registry.url}/v2/${path}/manifests/${digest}`;
  if (kind === "blobs") {
    const upload = await fetch(`${registry.url}/v2/${path}/blobs/uploads/`, { method: "POST" });
    to = `${upload.headers.get("location")}&digest=${digest}`;
  }
  const type = kind === "blobs" ? "application/octet-stream" : mediaType;
  const { status } = await fetch(to, { method: "PUT", body, headers: { "content-type": type } });
  assert.equal(status, 201);
  return { mediaType, digest, size: body.length };
}

/** An image with this configuration; returns its manifest's descriptor. */
async function imageWith(config: unknown, architecture: string) {
  const mediaType = `${OCI}.manifest.v1+json`;
  const rootfs = { type: "layers", diff_ids: [] };
  const blob = await storeContent("blobs", { architecture, os: "linux", rootfs, config }, `${OCI}.config.v1+json`);
  const manifest = { schemaVersion: 2, mediaType, config: blob, layers: [] };
  return { ...(await storeContent("manifests", manifest, mediaType)), platform: { architecture, os: "linux" } };
}

const full = {
  User: "65532:7",
  ExposedPorts: { "8080/tcp": {}, "53/udp": {} },
  Env: ["PATH=/bin", "A=1"],
  Entrypoint: ["/bin/app"],
  Cmd: ["--help"],
  Volumes: { "/data": {} },
  WorkingDir: "/work",
  Labels: { "org.opencontainers.image.title": "app" },
  StopSignal: "SIGINT",
};

for (const name of wireNames) {
  describe(`images over ${name}`, () => {
    let wire: Wire;
    before(() => {
      wire = wireOf(name, harness.url, owner);
    });
    after(() => wire.close());

    it("have the architectures and sizes of version 2", async () => {
      const { digest } = many;
      const { archs } = await wire.call(v1.getArchs, { repoId, digest });
      assert.deepEqual(archs, ["amd64", "arm64"]);
      assert.deepEqual(archs, (await wire.call(v2.getArchitectures, { repoUid: repoId, digest })).architectures);
      for (const arch of ["", ...archs]) {
        const { size, arch: told } = await wire.call(v1.getSize, { repoId, digest, arch });
        assert.deepEqual([size, told], [BigInt(many.sizes[arch || "amd64"] ?? 0), arch || "amd64"]);
      }
      assert.match(await wire.expectError(v1.getSize, { repoId, digest, arch: "s390x" }), /not built for s390x$/);
    });

    it("tell how they are run, by architecture", async () => {
      const parts = [await imageWith(full, "amd64"), await imageWith({ User: "arm", Env: null }, "arm64")];
      const mediaType = `${OCI}.index.v1+json`;
      const { digest } = await storeContent("manifests", { schemaVersion: 2, mediaType, manifests: parts }, mediaType);
      const config = await wire.call(v1.getImageConfig, { repoId, digest });
      const { user, exposedPorts, env, entrypoint, cmd, volumes, workingDir, labels, stopSignal } = config;
      assert.deepEqual(
        [user, Object.keys(exposedPorts).sort(), env, entrypoint, cmd],
        [full.User, ["53/udp", "8080/tcp"], full.Env, full.Entrypoint, full.Cmd],
      );
      assert.deepEqual(
        [Object.keys(volumes), workingDir, labels, stopSignal],
        [["/data"], full.WorkingDir, full.Labels, full.StopSignal],
      );
      const arm = await wire.call(v1.getImageConfig, { repoId, digest, arch: "arm64", registry: true });
      assert.deepEqual([arm.user, arm.env, arm.cmd], ["arm", [], []]);
      assert.match(await wire.expectError(v1.getImageConfig, { repoId, digest, arch: "mips" }), /not built for mips$/);
    });

    it("leave out fields of a configuration that do not have the specified form", async () => {
      const odd = { User: 7, ExposedPorts: ["80"], Env: "A=1", Cmd: ["ok", 1], Labels: { a: 1 }, Volumes: 0 };
      for (const [given, cmd] of [
        [odd, ["ok"]],
        [null, []],
        ["text", []],
      ] as const) {
        const { digest } = await imageWith(given, "amd64");
        const { user, env, cmd: told, labels } = await wire.call(v1.getImageConfig, { repoId, digest });
        assert.deepEqual([user, env, told, Object.values(labels).join("")], ["", [], cmd, ""]);
      }
    });

    it("are hidden from others, and rejected with the names of fields", async () => {
      const { digest } = many;
      for (const method of [v1.getArchs, v1.getSize, v1.getImageConfig] as unknown as (typeof v1.getSize)[]) {
        const denied = await wire.expectError(method, { repoId, digest }, foreigner);
        assert.match(denied, /^Permission denied: repo.list and manifest.metadata.list at /);
        const missing = await wire.expectError(method, { repoId: `${repoId}x`, digest: "x" });
        assert.match(missing, /^Invalid argument: repoId: repoId must be a uid/);
        assert.match(await wire.expectError(method, { repoId, digest: "latest" }), /^Invalid argument: digest: /);
        assert.match(await wire.expectError(method, { repoId, digest: digestOf("e") }), /^Not found: image: /);
      }
    });
  });
}
