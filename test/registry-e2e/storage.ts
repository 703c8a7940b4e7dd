// The storage directory of a stock registry, written as the registry writes it:
// docker/registry/v2 with blobs, revisions and tag links.
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** How many images the tags of a repo point to. */
const IMAGES = 20;

/** What is in a storage: digests by tag by the path of the repo. */
export type Stored = ReadonlyMap<string, ReadonlyMap<string, string>>;

/** Writes `tags` tags into `repos` repos named `<org>/app<n>`, all of them with tags. */
export function writeStorage(directory: string, org: string, tags: number, repos: number): Stored {
  const root = join(directory, "storage", "docker", "registry", "v2");
  const images = Array.from({ length: IMAGES }, (_, n) => writeImage(root, n));
  const stored = new Map<string, Map<string, string>>();
  for (let repo = 0; repo < repos; repo++) {
    const path = `${org}/app${repo}`;
    const manifests = join(root, "repositories", path, "_manifests");
    // The registry takes what has uploaded layers for a repo.
    mkdirSync(join(root, "repositories", path, "_layers"), { recursive: true });
    for (const digest of images) writeLink(join(manifests, "revisions", ...digest.split(":")), digest);
    const names = new Map<string, string>();
    for (let n = repo; n < tags; n += repos) {
      const digest = images[n % IMAGES] ?? "";
      const name = `v${n}`;
      names.set(name, digest);
      writeLink(join(manifests, "tags", name, "current"), digest);
    }
    stored.set(path, names);
  }
  return stored;
}

function writeImage(root: string, n: number): string {
  const type = "application/vnd.oci.image";
  const config = writeBlob(root, { architecture: "amd64", os: "linux", n });
  const described = { mediaType: `${type}.config.v1+json`, ...config };
  const mediaType = `${type}.manifest.v1+json`;
  return writeBlob(root, { schemaVersion: 2, mediaType, config: described, layers: [] }).digest;
}

function writeBlob(root: string, value: object): { readonly digest: string; readonly size: number } {
  const bytes = Buffer.from(JSON.stringify(value));
  const hex = createHash("sha256").update(bytes).digest("hex");
  const directory = join(root, "blobs", "sha256", hex.slice(0, 2), hex);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "data"), bytes);
  return { digest: `sha256:${hex}`, size: bytes.length };
}

function writeLink(directory: string, digest: string): void {
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "link"), digest);
}
