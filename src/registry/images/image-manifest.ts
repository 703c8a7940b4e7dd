// Manifests and configurations of images (OCI image specification; Docker's own media types differ in their
// names alone).
import { create } from "@bufbuild/protobuf";
import { type ImageConfig, ImageConfigSchema } from "#gen/chainguard/platform/registry/image_pb.js";
import { failedPrecondition, unavailable } from "../../kernel/errors.js";
import { type Digest, parseDigest } from "../oci/reference.js";
import type { Content } from "../oci/registry-client.js";

const INDEXES = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
];
const MANIFESTS = [
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.v2+json",
];

/** The largest number of manifests that are read of one index. */
const MAX_MANIFESTS = 64;

/** Reads content of a repo by its digest; undefined where the repo does not have it. */
export interface ImageReader {
  findManifest(digest: Digest): Promise<Content | undefined>;
  findBlob(digest: Digest): Promise<Content | undefined>;
}

interface Descriptor {
  readonly mediaType?: unknown;
  readonly digest?: unknown;
  readonly size?: unknown;
  readonly platform?: { readonly architecture?: unknown; readonly variant?: unknown; readonly os?: unknown };
}

/** The parts of a manifest or an index that are read here. */
export interface Manifest {
  readonly mediaType?: unknown;
  readonly manifests?: readonly Descriptor[];
  readonly config?: Descriptor;
  readonly layers?: readonly Descriptor[];
}

/** One image of a manifest: the only one, or one of several in an index. */
export interface BuiltImage {
  /** Its name, unique in the manifest, as in `arm64`. */
  readonly architecture: string;
  readonly manifest: Manifest;
}

/**
 * Reads the images of a manifest by architecture. Where an index has several images for one architecture, the
 * later ones have the variant or the system in their names, as in `arm/v6`. Images that the registry does not
 * have, or whose digests are none, are left out.
 *
 * @throws ApiError FAILED_PRECONDITION when the manifest is not that of an image; UNAVAILABLE.
 */
async function* readImages(content: Content, reader: ImageReader): AsyncGenerator<BuiltImage, void, void> {
  const manifest = parseManifest(content);
  const type = parseMediaType(manifest, content);
  if (MANIFESTS.includes(type)) {
    const architecture = await readArchitecture(manifest, reader);
    if (architecture !== undefined) yield { architecture, manifest };
    return;
  }
  if (!INDEXES.includes(type)) throw failedPrecondition("IMAGE", "digest: the manifest is not that of an image");
  const names = new Set<string>();
  for (const { mediaType, digest: text, platform } of (manifest.manifests ?? []).slice(0, MAX_MANIFESTS)) {
    const digest = parseDigest(text);
    // An index lists attestations of builds as images of the architecture "unknown".
    if (digest === undefined || !MANIFESTS.includes(String(mediaType))) continue;
    if (platform?.architecture === "unknown") continue;
    const content = await reader.findManifest(digest);
    if (content === undefined) continue;
    const image = parseManifest(content);
    const architecture = platform?.architecture ?? (await readArchitecture(image, reader));
    if (typeof architecture !== "string") continue;
    const name = [architecture, `${architecture}/${String(platform?.variant ?? platform?.os ?? "")}`].find(
      (one) => !names.has(one),
    );
    if (name === undefined) continue;
    names.add(name);
    yield { architecture: name, manifest: image };
  }
}

/** Reads the sizes of the images of a manifest in bytes, configuration and layers together; see {@link readImages}. */
export async function readSizes(content: Content, reader: ImageReader): Promise<Record<string, number>> {
  const sizes: Record<string, number> = {};
  for await (const { architecture, manifest } of readImages(content, reader)) sizes[architecture] = sumSizes(manifest);
  return sizes;
}

// Undefined where the registry has no configuration.
async function readConfig({ config }: Manifest, reader: ImageReader): Promise<object | undefined> {
  const digest = parseDigest(config?.digest);
  const blob = digest && (await reader.findBlob(digest));
  return blob && parseManifest(blob);
}

async function readArchitecture(manifest: Manifest, reader: ImageReader): Promise<string | undefined> {
  const { architecture } = ((await readConfig(manifest, reader)) ?? {}) as { architecture?: unknown };
  return typeof architecture === "string" && architecture !== "" ? architecture : undefined;
}

function sumSizes({ config, layers = [] }: Manifest): number {
  let size = 0;
  for (const descriptor of [config, ...layers]) {
    const bytes = descriptor?.size;
    if (typeof bytes === "number" && Number.isSafeInteger(bytes) && bytes > 0) size += bytes;
  }
  return size;
}

// A manifest may leave its media type to the header (OCI image specification, "Image Manifest").
function parseMediaType({ mediaType }: Manifest, content: Content): string {
  return typeof mediaType === "string" ? mediaType : (content.mediaType.split(";")[0] ?? "").trim();
}

function parseManifest({ bytes }: Content): Manifest {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Manifest;
  } catch {
    // The error below covers it.
  }
  throw unavailable("the registry answered with a manifest that cannot be read");
}

/**
 * Reads the configuration of an image for one architecture (OCI image specification, "Image Configuration").
 * Fields of a wrong type are left out.
 *
 * @returns undefined where the image is not built for it
 * @throws ApiError FAILED_PRECONDITION when the manifest is not that of an image; UNAVAILABLE.
 */
export async function readImageConfig(
  manifest: Content,
  reader: ImageReader,
  architecture: string,
): Promise<ImageConfig | undefined> {
  for await (const image of readImages(manifest, reader)) {
    if (image.architecture === architecture) return toProto(await readConfig(image.manifest, reader));
  }
  return undefined;
}

function toProto(blob: object | undefined): ImageConfig {
  const { config } = (blob ?? {}) as { config?: Readonly<Record<string, unknown>> | null };
  const { User, ExposedPorts, Env, Entrypoint, Cmd, Volumes, WorkingDir, Labels, StopSignal } = config ?? {};
  return create(ImageConfigSchema, {
    user: toText(User),
    exposedPorts: toKeys(ExposedPorts),
    env: toTexts(Env),
    entrypoint: toTexts(Entrypoint),
    cmd: toTexts(Cmd),
    volumes: toKeys(Volumes),
    workingDir: toText(WorkingDir),
    labels: Object.fromEntries(toEntries(Labels).map(([key, value]) => [key, toText(value)])),
    stopSignal: toText(StopSignal),
  });
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function toTexts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

function toKeys(value: unknown): Record<string, object> {
  return Object.fromEntries(toEntries(value).map(([key]) => [key, {}]));
}

function toEntries(value: unknown): [string, unknown][] {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
}
