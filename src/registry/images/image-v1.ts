// Images, version 1: the responses of ImagesService, the configuration of an image, and the number of images.
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import type {
  ArchRequest,
  ImageConfigRequest,
  ManifestDigestCountFilter,
  SizeRequest,
} from "#gen/chainguard/platform/registry/image_pb.js";
import type { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import { groups } from "../../iam/groups/group.js";
import { deadlineExceeded, notFound } from "../../kernel/errors.js";
import { MAX_CALL_MS } from "../../pipeline/call.js";
import { type Handlers, withPreparation } from "../../pipeline/handlers.js";
import { buildChunkQuery } from "../../pipeline/resource/unpaginated-list.js";
import { groupKind } from "../../store/iam/groups.js";
import type { ListPosition } from "../../store/lists/query.js";
import { repoKind } from "../../store/registry/repos.js";
import { tagKind } from "../../store/registry/tags.js";
import {
  createImageSource,
  DEFAULT_ARCHITECTURE,
  getSize,
  type ImageDeps,
  listArchitectures,
  notBuiltFor,
} from "./image.js";
import { readImageConfig } from "./image-manifest.js";

/** Creates the handlers of Registry for images. */
export function imageHandlersV1(deps: ImageDeps) {
  const { readSizes, readContent } = createImageSource(deps);
  // Calls for the same parent share one running count, because a count holds all digests in memory.
  const counts = new Map<string, Promise<number>>();
  const countOnce = (parent: string): Promise<number> => {
    const running = counts.get(parent);
    if (running !== undefined) return running;
    const count = countDigests(deps, parent).finally(() => counts.delete(parent));
    counts.set(parent, count);
    return count;
  };
  return {
    getArchs: withPreparation({
      prepare: ({ repoId, digest }: ArchRequest, call) => readSizes({ repoUid: repoId, digest }, call),
      handle: (_, __, known) => ({ archs: listArchitectures(known) }),
    }),

    getSize: withPreparation({
      prepare: ({ repoId, digest }: SizeRequest, call) => readSizes({ repoUid: repoId, digest }, call),
      handle({ digest, arch }, _, known) {
        const { size, architecture } = getSize(known, digest, arch);
        return { size, arch: architecture };
      },
    }),

    // Configurations are not stored, so the registry is read at every call.
    getImageConfig: withPreparation({
      async prepare({ repoId, digest, arch }: ImageConfigRequest, call) {
        const { manifest, reader } = await readContent({ repoUid: repoId, digest }, call);
        const architecture = arch || DEFAULT_ARCHITECTURE;
        const config = await readImageConfig(manifest, reader, architecture);
        if (config === undefined) throw notBuiltFor(architecture, digest);
        return config;
      },
      handle: (_, __, config) => config,
    }),

    // The count reads in units of work of its own, so that a long one does not block other calls.
    getManifestDigestCount: withPreparation({
      prepare: ({ parentId }: ManifestDigestCountFilter) => countOnce(parentId),
      async handle({ parentId }, { tx }, count) {
        const known = (await tx.table(groupKind).find(parentId)) ?? (await tx.table(repoKind).find(parentId));
        if (known === undefined) throw notFound(groups, parentId, `there is no group or repo ${parentId}`);
        return { count: BigInt(count) };
      },
    }),
  } satisfies Partial<Handlers<typeof Registry>>;
}

// Only manifests that a tag points at are known.
async function countDigests({ store }: ImageDeps, parent: string): Promise<number> {
  const deadlineMs = performance.now() + MAX_CALL_MS;
  const digests = new Set<string>();
  let after: ListPosition | undefined;
  do {
    const query = buildChunkQuery({}, { visible: [parent] }, after);
    const { rows, next } = await store.read((tx) => tx.table(tagKind).listAll(query));
    for (const { digest } of rows) if (digest !== "") digests.add(digest);
    if (performance.now() > deadlineMs) throw deadlineExceeded();
    after = next;
    await yieldToEventLoop();
  } while (after !== undefined);
  return digests.size;
}
