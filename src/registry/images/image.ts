// Images as the registry stores them. The content of a digest never changes, so sizes are read once and stored.
import { type GetSizeRequest, ImagesService } from "#gen/chainguard/platform/registry/v2beta1/images_pb.js";
import { failedPrecondition, invalidArgument, notFound, type ResourceKind } from "../../kernel/errors.js";
import type { TraceSpan } from "../../kernel/trace.js";
import { type Handlers, withPreparation } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import { getRow } from "../../pipeline/resource/read.js";
import { repoKind } from "../../store/registry/repos.js";
import type { Store } from "../../store/store.js";
import type { ManifestRow } from "../../store/tables/registry.js";
import { type Digest, parseDigest } from "../oci/reference.js";
import type { Content, RegistryClient } from "../oci/registry-client.js";
import { listRepoPaths } from "../oci/repo-path.js";
import { repos } from "../repos/repo.js";
import { type ImageReader, readSizes } from "./image-manifest.js";

const imageKind: ResourceKind = { displayName: "image", type: "registry.chainguard.dev/Image" };
/** The architecture of requests that name none. */
export const DEFAULT_ARCHITECTURE = "amd64";

export interface ImageDeps {
  readonly store: Store;
  /** Reads the registry; absent where none is set. */
  readonly registry: RegistryClient | undefined;
}

/** An image in a repo, by the digest of its manifest or index. */
interface ImageName {
  readonly repoUid: string;
  readonly digest: string;
}

/** An image, and the paths at which the registry may have it. */
interface LocatedImage {
  readonly repoUid: string;
  readonly digest: Digest;
  readonly paths: readonly string[];
}

/** The call that an image is read for. */
interface ImageCall {
  readonly trace: TraceSpan | undefined;
}

/** Sizes in bytes by architecture. */
type Sizes = ManifestRow["images"];

/**
 * Reads images. Both functions throw ApiError INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION without a registry,
 * UNAVAILABLE.
 */
interface ImageSource {
  readSizes(image: ImageName, call: ImageCall): Promise<Sizes>;
  /** Reads the manifest; the reader reads more of the same repo. */
  readContent(image: ImageName, call: ImageCall): Promise<{ readonly manifest: Content; readonly reader: ImageReader }>;
}

export function createImageSource({ store, registry }: ImageDeps): ImageSource {
  async function locate({ repoUid, digest: text }: ImageName) {
    const digest = parseDigest(text);
    if (digest === undefined) {
      throw invalidArgument({ field: "digest", rule: "must be sha256: and 64 hexadecimal digits" });
    }
    return store.read(async (tx) => {
      const sizes = (await tx.registry.findManifest(repoUid, digest))?.images;
      const repo = await getRow(tx, repos, repoUid);
      return { repoUid, digest, sizes, paths: await listRepoPaths(tx, repo) };
    });
  }

  async function read({ repoUid, digest, paths }: LocatedImage, { trace }: ImageCall) {
    if (registry === undefined) {
      throw failedPrecondition(
        "REGISTRY",
        "no registry is configured (--registry-url), so Arbor has no data about images",
      );
    }
    for (const path of paths) {
      const manifest = await registry.findManifest(path, digest, trace);
      if (manifest === undefined) continue;
      const reader: ImageReader = {
        findManifest: (digest) => registry.findManifest(path, digest, trace),
        findBlob: (digest) => registry.findBlob(path, digest, trace),
      };
      return { manifest, reader };
    }
    throw notFound(imageKind, digest, `there is no image ${digest} in repo ${repoUid}`);
  }

  return {
    async readSizes(image, call) {
      const located = await locate(image);
      const { repoUid, digest, sizes } = located;
      if (sizes !== undefined) return sizes;
      const { manifest, reader } = await read(located, call);
      const images = await readSizes(manifest, reader);
      await store.write(async (tx) => {
        if ((await tx.table(repoKind).find(repoUid)) !== undefined)
          await tx.registry.putManifest({ repoUid, digest, images });
      });
      return images;
    },

    readContent: async (image, call) => read(await locate(image), call),
  };
}

/** Lists the architectures of an image, in order. */
export function listArchitectures(sizes: Sizes): string[] {
  return Object.keys(sizes).sort();
}

/**
 * Reads the size of an image for one architecture.
 *
 * @param requested the architecture; empty stands for amd64
 * @throws ApiError NOT_FOUND when it is not built for that.
 */
export function getSize(sizes: Sizes, digest: string, requested: string): { size: bigint; architecture: string } {
  const architecture = requested || DEFAULT_ARCHITECTURE;
  const size = Object.hasOwn(sizes, architecture) ? sizes[architecture] : undefined;
  if (size === undefined) throw notBuiltFor(architecture, digest);
  return { size: BigInt(size), architecture };
}

/** NOT_FOUND: an image without this architecture. */
export function notBuiltFor(architecture: string, digest: string) {
  return notFound(imageKind, digest, `the image ${digest} is not built for ${architecture}`);
}

/** Creates ImagesService. */
export function imagesV2beta1(deps: ImageDeps) {
  const { readSizes } = createImageSource(deps);
  const handlers: Handlers<typeof ImagesService> = {
    getArchitectures: withPreparation({
      prepare: readSizes,
      handle: (_, __, known) => ({ architectures: listArchitectures(known) }),
    }),

    getSize: withPreparation({
      prepare: (request: GetSizeRequest, call) => readSizes(request, call),
      handle: ({ digest, architecture }, _, known) => getSize(known, digest, architecture),
    }),
  };
  return serve(ImagesService, handlers);
}
