// Copies a repo to another path of the same registry, and deletes it at the first one. Blobs are mounted and manifests
// keep every byte, so digests and signatures stay valid. Both can be interrupted anywhere and repeated.
import { isJsonObject } from "../../kernel/strict-json.js";
import { type Digest, parseDigest, type TagName } from "./reference.js";
import { type Content, isManifestType, mapConcurrently, type RegistryClient } from "./registry-client.js";

/** A repo to copy, by its paths. */
export interface RepoMove {
  readonly from: string;
  readonly to: string;
  /** Digests that tags of the repo pointed to, besides those that they point to now. */
  readonly digests: readonly Digest[];
}

/** What was done. What was there already is not counted. */
export interface CopyCounts {
  tags: number;
  manifests: number;
  blobs: number;
  /** Tags and digests that could not be copied, because the registry lacks a part of them. */
  broken: number;
  /** Manifests that were deleted. */
  deleted: number;
  /** Manifests that were not deleted, because they are not at the other path. */
  kept: number;
}

export interface CopyDeps {
  readonly registry: RegistryClient;
  readonly counts: CopyCounts;
  /** Receives the image that could not be copied, and why. */
  readonly onBroken: (image: string, reason: string) => void;
  /** Receives the number of finished tags or deleted manifests of a repo, and how many it has. */
  readonly onProgress: (done: number, found: number) => void;
}

/** A part of an image that the registry does not have, or does not accept. */
class BrokenImage extends Error {}

interface Blob {
  readonly digest: Digest;
  /** Whether the blob may be found elsewhere than in the registry. */
  readonly isForeign: boolean;
}

/** The content that a manifest or an index needs to be complete. */
interface Parts {
  readonly manifests: readonly Digest[];
  readonly blobs: readonly Blob[];
  /** Whether every part has a digest. */
  readonly isWhole: boolean;
}

/**
 * Copies every tag, and every manifest and blob that the tags and `digests` lead to. A tag that the other path has
 * already stays as it is; the image that it pointed to at the first path is copied by its digest. Everything is read
 * again where it was copied to.
 *
 * @throws ApiError UNAVAILABLE, FAILED_PRECONDITION where the registry can only be read
 */
export async function copyRepo({ from, to, digests }: RepoMove, deps: CopyDeps): Promise<void> {
  const { registry, counts, onBroken, onProgress } = deps;
  const readEither = async (digest: Digest) =>
    (await registry.findManifest(from, digest)) ?? (await registry.findManifest(to, digest));

  const copyBlob = memoize(async (digest: Digest) => {
    if (await registry.hasBlob(to, digest)) return true;
    if (!(await registry.mountBlob(to, digest, from))) return false;
    counts.blobs++;
    return registry.hasBlob(to, digest);
  });

  const copyManifest: (digest: Digest) => Promise<void> = memoize(async (digest: Digest) => {
    const content = await readEither(digest);
    if (content === undefined) throw new BrokenImage(`the manifest ${digest} is missing or has Docker's schema 1`);
    const { manifests, blobs, isWhole } = parseParts(content);
    if (!isWhole) throw new BrokenImage(`the manifest ${digest} has a part without a digest`);
    for (const child of manifests) await copyManifest(child);
    for (const { digest, isForeign } of blobs) {
      if (!(await copyBlob(digest)) && !isForeign) throw new BrokenImage(`the blob ${digest} is missing`);
    }
    let copied = await registry.findManifest(to, digest);
    if (copied === undefined) {
      if (!(await registry.putManifest(to, digest, content))) {
        throw new BrokenImage(`the registry rejects the manifest ${digest}`);
      }
      counts.manifests++;
      copied = await registry.findManifest(to, digest);
    }
    if (copied?.mediaType !== content.mediaType) {
      throw new BrokenImage(`the manifest ${digest} has another media type at ${to}`);
    }
  });

  const copyTag = async (tag: TagName) => {
    const digest = await registry.findDigest(from, tag);
    // A tag that points to a deleted manifest cannot be pulled either.
    if (digest === undefined) return;
    await copyManifest(digest);
    if ((await registry.findDigest(to, tag)) !== undefined) return;
    const content = await readEither(digest);
    if (content === undefined || !(await registry.putManifest(to, tag, content))) {
      throw new BrokenImage("the registry rejects the tag");
    }
    counts.tags++;
    if ((await registry.findDigest(to, tag)) === undefined) throw new BrokenImage(`the tag is missing at ${to}`);
  };

  const reportBroken = async (image: string, work: Promise<void>) => {
    try {
      await work;
    } catch (error) {
      if (!(error instanceof BrokenImage)) throw error;
      counts.broken++;
      onBroken(image, error.message);
    }
  };

  const tags = await registry.listTags(from);
  let done = 0;
  await mapConcurrently(tags, async (tag) => {
    await reportBroken(`${from}:${tag}`, copyTag(tag));
    onProgress(++done, tags.length);
  });
  await mapConcurrently(digests, async (digest) => {
    if ((await registry.findDigest(from, digest)) === undefined) return;
    await reportBroken(`${from}@${digest}`, copyManifest(digest));
  });
}

interface Node extends Parts {
  readonly isCopied: boolean;
}

/**
 * Deletes every manifest and blob of the first path that the other path has. The registry frees no space, because
 * both paths share the content.
 *
 * @throws ApiError UNAVAILABLE, FAILED_PRECONDITION where the registry does not delete
 */
export async function deleteCopied({ from, to, digests }: RepoMove, deps: CopyDeps): Promise<void> {
  const { registry, counts, onProgress } = deps;
  const tagged = await mapConcurrently(await registry.listTags(from), (tag) => registry.findDigest(from, tag));
  // Parts come before the manifests that need them: an interrupted run is found again by its tags.
  const nodes = new Map<Digest, Node>();
  const visit = async (digest: Digest): Promise<void> => {
    if (nodes.has(digest)) return;
    const copy = await registry.findManifest(to, digest);
    const content = copy ?? (await registry.findManifest(from, digest));
    if (content === undefined) return;
    const parts = parseParts(content);
    for (const child of parts.manifests) await visit(child);
    nodes.set(digest, { ...parts, isCopied: copy !== undefined });
  };
  for (const digest of new Set([...tagged, ...digests])) if (digest !== undefined) await visit(digest);

  const kept = new Set<Digest>();
  const keep = (digest: Digest): void => {
    if (kept.has(digest)) return;
    kept.add(digest);
    for (const blob of nodes.get(digest)?.blobs ?? []) kept.add(blob.digest);
    for (const child of nodes.get(digest)?.manifests ?? []) keep(child);
  };
  for (const [digest, { isCopied }] of nodes) if (!isCopied) keep(digest);
  const blobs = new Set([...nodes.values()].flatMap((node) => node.blobs.map(({ digest }) => digest)));
  await mapConcurrently([...blobs], async (digest) => {
    if (!kept.has(digest) && (await registry.hasBlob(to, digest))) await registry.remove(from, "blobs", digest);
  });
  let done = 0;
  for (const digest of nodes.keys()) {
    if (kept.has(digest)) counts.kept++;
    else if (await registry.remove(from, "manifests", digest)) counts.deleted++;
    onProgress(++done, nodes.size);
  }
}

// Runs `work` once per digest; images share most of their parts.
function memoize<T>(work: (digest: Digest) => Promise<T>): (digest: Digest) => Promise<T> {
  const running = new Map<Digest, Promise<T>>();
  return (digest) => {
    const known = running.get(digest);
    if (known !== undefined) return known;
    const started = work(digest);
    running.set(digest, started);
    return started;
  };
}

// An index names manifests, and blobs where it lists something else, such as the cache of a build.
function parseParts({ bytes }: Content): Parts {
  const { config, layers, blobs, manifests } = parseObject(bytes);
  const parts = [config, layers, blobs, manifests].flat().filter(isJsonObject);
  const manifestsOf: Digest[] = [];
  const blobsOf: Blob[] = [];
  for (const part of parts) {
    const digest = parseDigest(part.digest);
    if (digest === undefined) continue;
    if (isManifestType(part.mediaType)) manifestsOf.push(digest);
    else blobsOf.push({ digest, isForeign: Array.isArray(part.urls) && part.urls.length > 0 });
  }
  return { manifests: manifestsOf, blobs: blobsOf, isWhole: manifestsOf.length + blobsOf.length === parts.length };
}

// The registry rejects what is not JSON.
function parseObject(bytes: Buffer): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
