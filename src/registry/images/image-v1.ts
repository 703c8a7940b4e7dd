// Images, version 1: what ImagesService tells, how they are run, and how many
// there are.
import { setImmediate as turnOver } from "node:timers/promises";
import type {
  ArchRequest,
  ImageConfigRequest,
  ManifestDigestCountFilter,
  SizeRequest,
} from "#gen/chainguard/platform/registry/image_pb.js";
import type { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import { deadlineExceeded, notFound } from "../../kernel/errors.js";
import { MAX_CALL_MS } from "../../pipeline/call.js";
import { type Handlers, withPreparation } from "../../pipeline/method-table.js";
import { partQuery } from "../../pipeline/resource/whole-list.js";
import type { ListPosition } from "../../store/port.js";
import { groupKind } from "../repos/repo.js";
import { imageConfigOf } from "./image-config.js";
import {
  architecturesIn,
  createImageSource,
  DEFAULT_ARCHITECTURE,
  type ImageDeps,
  notBuiltFor,
  sizeIn,
} from "./image-source.js";

/** The part of Registry that is about images. */
export function imageHandlersV1(deps: ImageDeps) {
  const { sizes, content } = createImageSource(deps);
  // Whoever asks while the same is counted waits for that count: each holds all digests meanwhile.
  const counts = new Map<string, Promise<number>>();
  const counted = (parent: string): Promise<number> => {
    const running = counts.get(parent);
    if (running !== undefined) return running;
    const count = countDigests(deps, parent).finally(() => counts.delete(parent));
    counts.set(parent, count);
    return count;
  };
  return {
    getArchs: withPreparation({
      prepare: ({ repoId, digest }: ArchRequest) => sizes({ repoUid: repoId, digest }),
      handle: (_, __, known) => ({ archs: architecturesIn(known) }),
    }),

    getSize: withPreparation({
      prepare: ({ repoId, digest }: SizeRequest) => sizes({ repoUid: repoId, digest }),
      handle({ digest, arch }, _, known) {
        const { size, architecture } = sizeIn(known, digest, arch);
        return { size, arch: architecture };
      },
    }),

    // Nothing is remembered of it, so the registry is asked whether the request says so or not.
    getImageConfig: withPreparation({
      async prepare({ repoId, digest, arch }: ImageConfigRequest) {
        const { manifest, reader } = await content({ repoUid: repoId, digest });
        const architecture = arch || DEFAULT_ARCHITECTURE;
        const config = await imageConfigOf(manifest, reader, architecture);
        if (config === undefined) throw notBuiltFor(architecture, digest);
        return config;
      },
      handle: (_, __, config) => config,
    }),

    // In units of work of their own, so that a long count holds nobody up.
    getManifestDigestCount: withPreparation({
      prepare: ({ parentId }: ManifestDigestCountFilter) => counted(parentId),
      async handle({ parentId }, { tx }, count) {
        const known = (await tx.groups.get(parentId)) ?? (await tx.repos.get(parentId));
        if (known === undefined) throw notFound(groupKind, parentId, `there is no group or repo ${parentId}`);
        return { count: BigInt(count) };
      },
    }),
  } satisfies Partial<Handlers<typeof Registry>>;
}

// A manifest is known of when a tag points at it.
async function countDigests({ store }: ImageDeps, parent: string): Promise<number> {
  const deadlineMs = performance.now() + MAX_CALL_MS;
  const digests = new Set<string>();
  let after: ListPosition | undefined;
  do {
    const query = partQuery({}, { visible: [parent] }, after);
    const { rows, next } = await store.read((tx) => tx.tags.listAll(query));
    for (const { digest } of rows) if (digest !== "") digests.add(digest);
    if (performance.now() > deadlineMs) throw deadlineExceeded();
    after = next;
    await turnOver();
  } while (after !== undefined);
  return digests.size;
}
