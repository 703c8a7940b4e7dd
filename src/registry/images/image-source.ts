// Images as the registry has them. What it says of a digest holds for ever, so
// sizes are asked for once and kept.
import { failedPrecondition, invalidArgument, notFound, type ResourceKind } from "../../kernel/errors.js";
import type { ManifestRow, Store } from "../../store/port.js";
import { isDigest } from "../oci/notification.js";
import type { Content, RegistryClient } from "../oci/registry-client.js";
import { pathsOfRepo } from "../oci/repo-paths.js";
import { repos } from "../repos/repo.js";
import { type ImageReader, sizesOf } from "./image-manifest.js";

const imageKind: ResourceKind = { noun: "image", type: "registry.chainguard.dev/Image" };
/** The architecture that is meant where none is named. */
export const DEFAULT_ARCHITECTURE = "amd64";

/** What it takes to look at images. */
export interface ImageDeps {
  readonly store: Store;
  /** Reads the registry; absent where none is set. */
  readonly registry: RegistryClient | undefined;
}

/** An image in a repo, by the digest of its manifest or index. */
export interface ImageName {
  readonly repoUid: string;
  readonly digest: string;
}

/** Sizes in bytes by architecture. */
export type Sizes = ManifestRow["images"];

/** Looks at images; both throw ApiError INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION without a registry, UNAVAILABLE. */
export interface ImageSource {
  sizes(image: ImageName): Promise<Sizes>;
  /** Reads the manifest; the reader goes on in the same repo. */
  content(image: ImageName): Promise<{ readonly manifest: Content; readonly reader: ImageReader }>;
}

/** Looks at the images of a registry. */
export function createImageSource({ store, registry }: ImageDeps): ImageSource {
  async function known({ repoUid, digest }: ImageName) {
    if (!isDigest(digest)) {
      throw invalidArgument({ field: "digest", description: "digest must be sha256: and 64 hexadecimal digits" });
    }
    return store.read(async (tx) => {
      const sizes = (await tx.registry.manifest(repoUid, digest))?.images;
      const repo = await tx.repos.get(repoUid);
      if (repo === undefined) throw notFound(repos, repoUid);
      return { sizes, paths: await pathsOfRepo(tx, repo) };
    });
  }

  async function read({ repoUid, digest }: ImageName, paths: readonly string[]) {
    if (registry === undefined) {
      throw failedPrecondition("REGISTRY", "no registry is set (--registry-url), so nothing is known of images");
    }
    for (const path of paths) {
      const manifest = await registry.manifest(path, digest);
      if (manifest === undefined) continue;
      const reader: ImageReader = {
        manifest: (part) => registry.manifest(path, part),
        blob: (part) => registry.blob(path, part),
      };
      return { manifest, reader };
    }
    throw notFound(imageKind, digest, `there is no image ${digest} in repo ${repoUid}`);
  }

  return {
    async sizes(image) {
      const { sizes, paths } = await known(image);
      if (sizes !== undefined) return sizes;
      const { manifest, reader } = await read(image, paths);
      const images = await sizesOf(manifest, reader);
      const { repoUid, digest } = image;
      await store.write(async (tx) => {
        if ((await tx.repos.get(repoUid)) !== undefined) await tx.registry.putManifest({ repoUid, digest, images });
      });
      return images;
    },

    content: async (image) => read(image, (await known(image)).paths),
  };
}

/** The architectures of an image, in order. */
export function architecturesIn(sizes: Sizes): string[] {
  return Object.keys(sizes).sort();
}

/**
 * The size of an image for one architecture.
 *
 * @param wanted the architecture; empty: amd64
 * @throws ApiError NOT_FOUND when it is not built for that.
 */
export function sizeIn(sizes: Sizes, digest: string, wanted: string): { size: bigint; architecture: string } {
  const architecture = wanted || DEFAULT_ARCHITECTURE;
  const size = Object.hasOwn(sizes, architecture) ? sizes[architecture] : undefined;
  if (size === undefined) throw notBuiltFor(architecture, digest);
  return { size: BigInt(size), architecture };
}

/** NOT_FOUND: an image without this architecture. */
export function notBuiltFor(architecture: string, digest: string) {
  return notFound(imageKind, digest, `the image ${digest} is not built for ${architecture}`);
}
