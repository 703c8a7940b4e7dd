// A minimal image on disk, in the OCI image layout, so that nothing has to be
// had from elsewhere.
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { tempDir } from "../support/temp-dir.js";

/** An image in a directory. */
export interface LocalImage {
  /** As skopeo names it. */
  readonly name: string;
  /** Of its manifest. */
  readonly digest: string;
  /** Of its only layer. */
  readonly layer: string;
}

/** Makes an image whose only layer is an empty archive; `mark` makes it differ from others. */
export function localImage(mark: string): LocalImage {
  const directory = tempDir();
  const blobs = join(directory, "blobs", "sha256");
  mkdirSync(blobs, { recursive: true });
  const put = (content: Buffer, mediaType: string) => {
    const hash = createHash("sha256").update(content).digest("hex");
    writeFileSync(join(blobs, hash), content);
    return { mediaType: `application/vnd.oci.image.${mediaType}`, digest: `sha256:${hash}`, size: content.length };
  };
  const json = (value: object) => Buffer.from(JSON.stringify(value));
  // What follows the two empty blocks that end an archive belongs to none.
  const archive = Buffer.concat([Buffer.alloc(1024), Buffer.alloc(512, mark)]);
  const layer = put(gzipSync(archive), "layer.v1.tar+gzip");
  const diff = `sha256:${createHash("sha256").update(archive).digest("hex")}`;
  const rootfs = { type: "layers", diff_ids: [diff] };
  const config = put(json({ architecture: "amd64", os: "linux", rootfs, config: {} }), "config.v1+json");
  const manifest = put(
    json({ schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json", config, layers: [layer] }),
    "manifest.v1+json",
  );
  const annotations = { "org.opencontainers.image.ref.name": "latest" };
  const index = { schemaVersion: 2, manifests: [{ ...manifest, annotations }] };
  writeFileSync(join(directory, "index.json"), JSON.stringify(index));
  writeFileSync(join(directory, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  return { name: `oci:${directory}:latest`, digest: manifest.digest, layer: layer.digest };
}
