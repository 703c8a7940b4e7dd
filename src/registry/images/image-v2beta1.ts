// The handlers of ImagesService in version 2beta1. What the registry says of a
// digest holds for ever, so each is asked for once and kept.
import { type GetSizeRequest, ImagesService } from "#gen/chainguard/platform/registry/v2beta1/images_pb.js";
import { failedPrecondition, invalidArgument, notFound, type ResourceKind } from "../../kernel/errors.js";
import { type Handlers, prepared, serve } from "../../rpc/method-table.js";
import type { ManifestRow, Store } from "../../store/port.js";
import { isDigest } from "../oci/notification.js";
import type { RegistryClient } from "../oci/registry-client.js";
import { pathsOfRepo } from "../oci/repo-paths.js";
import { repos } from "../repos/repo.js";
import { sizesOf } from "./image-manifest.js";

const imageKind: ResourceKind = { noun: "image", type: "registry.chainguard.dev/Image" };
const DEFAULT_ARCHITECTURE = "amd64";

/** What {@link imagesV2beta1} needs. */
export interface ImageDeps {
  readonly store: Store;
  /** Reads the registry; absent where none is set. */
  readonly registry: RegistryClient | undefined;
}

type Sizes = ManifestRow["images"];

/** ImagesService, ready to be served. */
export function imagesV2beta1({ store, registry }: ImageDeps) {
  async function sizes({ repoUid, digest }: { repoUid: string; digest: string }): Promise<Sizes> {
    if (!isDigest(digest)) {
      throw invalidArgument({ field: "digest", description: "digest must be sha256: and 64 hexadecimal digits" });
    }
    const { known, paths } = await store.read(async (tx) => {
      const known = await tx.registry.manifest(repoUid, digest);
      const repo = await tx.repos.get(repoUid);
      if (repo === undefined) throw notFound(repos, repoUid);
      return { known, paths: await pathsOfRepo(tx, repo) };
    });
    if (known !== undefined) return known.images;
    if (registry === undefined) {
      throw failedPrecondition("REGISTRY", "no registry is set (--registry-url), so nothing is known of images");
    }
    for (const path of paths) {
      const manifest = await registry.manifest(path, digest);
      if (manifest === undefined) continue;
      const images = await sizesOf(manifest, {
        manifest: (part) => registry.manifest(path, part),
        blob: (part) => registry.blob(path, part),
      });
      await store.write(async (tx) => {
        if ((await tx.repos.get(repoUid)) !== undefined) await tx.registry.putManifest({ repoUid, digest, images });
      });
      return images;
    }
    throw notFound(imageKind, digest, `there is no image ${digest} in repo ${repoUid}`);
  }

  const handlers: Handlers<typeof ImagesService> = {
    getArchitectures: prepared({
      prepare: sizes,
      handle: (_, __, known) => ({ architectures: Object.keys(known).sort() }),
    }),

    getSize: prepared({
      prepare: (request: GetSizeRequest) => sizes(request),
      handle({ digest, architecture: wanted }, _, known) {
        const architecture = wanted || DEFAULT_ARCHITECTURE;
        const size = Object.hasOwn(known, architecture) ? known[architecture] : undefined;
        if (size === undefined) {
          throw notFound(imageKind, digest, `the image ${digest} is not built for ${architecture}`);
        }
        return { size: BigInt(size), architecture };
      },
    }),
  };
  return serve(ImagesService, handlers);
}
