// Small images that the test builds and pushes with skopeo.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";

const run = promisify(execFile);

const OCI = "application/vnd.oci.image";

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: object;
}

/** An image in a directory, as the OCI image layout has it. */
export interface MadeImage {
  readonly directory: string;
  /** Of what a tag would point to: the index where there are several architectures. */
  readonly digest: string;
  /** Configuration and layer together, in bytes, by architecture. */
  readonly sizes: Readonly<Record<string, number>>;
}

/** Makes an image for each of `architectures`; `text` is in it, so that another text is another image. */
export function makeImage(directory: string, text: string, architectures: readonly string[] = ["amd64"]): MadeImage {
  const blobs = join(directory, "blobs", "sha256");
  mkdirSync(blobs, { recursive: true });
  const put = (mediaType: string, bytes: Buffer): Descriptor => {
    const hex = createHash("sha256").update(bytes).digest("hex");
    writeFileSync(join(blobs, hex), bytes);
    return { mediaType, digest: `sha256:${hex}`, size: bytes.length };
  };
  const json = (mediaType: string, value: object) => put(mediaType, Buffer.from(JSON.stringify(value)));
  const sizes: Record<string, number> = {};
  const manifests = architectures.map((architecture) => {
    const tar = Buffer.alloc(1024, `${text} for ${architecture} `);
    const layer = put(`${OCI}.layer.v1.tar+gzip`, gzipSync(tar));
    const diff = `sha256:${createHash("sha256").update(tar).digest("hex")}`;
    const rootfs = { type: "layers", diff_ids: [diff] };
    const config = json(`${OCI}.config.v1+json`, { architecture, os: "linux", rootfs });
    sizes[architecture] = config.size + layer.size;
    const mediaType = `${OCI}.manifest.v1+json`;
    const manifest = json(mediaType, { schemaVersion: 2, mediaType, config, layers: [layer] });
    return { ...manifest, platform: { architecture, os: "linux" } };
  });
  const [only] = manifests;
  const mediaType = `${OCI}.index.v1+json`;
  const top =
    only !== undefined && manifests.length === 1 ? only : json(mediaType, { schemaVersion: 2, mediaType, manifests });
  writeFileSync(join(directory, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  writeFileSync(join(directory, "index.json"), JSON.stringify({ schemaVersion: 2, manifests: [top] }));
  return { directory, digest: top.digest, sizes };
}

/** Pushes it as `host:port/path:tag`, byte for byte. */
export async function push(image: MadeImage, name: string, format?: "v2s2"): Promise<void> {
  const how = format === undefined ? ["--all", "--preserve-digests"] : ["--format", format];
  await run("skopeo", [
    "copy",
    "--quiet",
    ...how,
    "--dest-tls-verify=false",
    `oci:${image.directory}`,
    `docker://${name}`,
  ]);
}
