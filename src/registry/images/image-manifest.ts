// What the manifests of an image say of its architectures and sizes (OCI image
// specification; Docker's own media types differ in their names alone).
import { failedPrecondition, unavailable } from "../../kernel/errors.js";
import type { Content } from "../oci/registry-client.js";

const INDEXES = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
];
const MANIFESTS = [
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.v2+json",
];

/** How many manifests of one index are read. */
const MAX_MANIFESTS = 64;

/** Reads content of the image's repo by its digest; undefined where it is not there. */
export interface ImageReader {
  manifest(digest: string): Promise<Content | undefined>;
  blob(digest: string): Promise<Content | undefined>;
}

interface Descriptor {
  readonly mediaType?: unknown;
  readonly digest?: unknown;
  readonly size?: unknown;
  readonly platform?: { readonly architecture?: unknown; readonly variant?: unknown; readonly os?: unknown };
}

/** A manifest or an index, as far as it is read here. */
export interface Manifest {
  readonly mediaType?: unknown;
  readonly manifests?: readonly Descriptor[];
  readonly config?: Descriptor;
  readonly layers?: readonly Descriptor[];
}

/** One image of a manifest: the only one, or one of several in an index. */
export interface BuiltImage {
  /** Its name among those of the manifest, as in `arm64`. */
  readonly architecture: string;
  readonly manifest: Manifest;
}

/**
 * The images of a manifest by architecture. Where an index has several images for one architecture,
 * the later ones are told apart by variant or system, as in `arm/v6`. Images an index names that the
 * registry does not have are left out.
 *
 * @throws ApiError FAILED_PRECONDITION when the manifest is not that of an image; UNAVAILABLE.
 */
export async function* imagesIn(content: Content, reader: ImageReader): AsyncGenerator<BuiltImage, void, void> {
  const manifest = parsed(content);
  const type = typeOf(manifest, content);
  if (MANIFESTS.includes(type)) {
    const architecture = await architectureOf(manifest, reader);
    if (architecture !== undefined) yield { architecture, manifest };
    return;
  }
  if (!INDEXES.includes(type)) throw failedPrecondition("IMAGE", "digest: the manifest is not that of an image");
  const names = new Set<string>();
  for (const { mediaType, digest, platform } of (manifest.manifests ?? []).slice(0, MAX_MANIFESTS)) {
    // What attests builds stands in an index as an image of the architecture "unknown".
    if (typeof digest !== "string" || !MANIFESTS.includes(String(mediaType))) continue;
    if (platform?.architecture === "unknown") continue;
    const part = await reader.manifest(digest);
    if (part === undefined) continue;
    const image = parsed(part);
    const architecture = platform?.architecture ?? (await architectureOf(image, reader));
    if (typeof architecture !== "string") continue;
    const name = [architecture, `${architecture}/${String(platform?.variant ?? platform?.os ?? "")}`].find(
      (one) => !names.has(one),
    );
    if (name === undefined) continue;
    names.add(name);
    yield { architecture: name, manifest: image };
  }
}

/** The sizes of the images of a manifest in bytes, configuration and layers together; see {@link imagesIn}. */
export async function sizesOf(content: Content, reader: ImageReader): Promise<Record<string, number>> {
  const sizes: Record<string, number> = {};
  for await (const { architecture, manifest } of imagesIn(content, reader)) sizes[architecture] = sizeOf(manifest);
  return sizes;
}

/** The configuration of an image; undefined where the registry has none. */
export async function configOf({ config }: Manifest, reader: ImageReader): Promise<object | undefined> {
  const blob = typeof config?.digest === "string" ? await reader.blob(config.digest) : undefined;
  return blob && parsed(blob);
}

async function architectureOf(manifest: Manifest, reader: ImageReader): Promise<string | undefined> {
  const { architecture } = ((await configOf(manifest, reader)) ?? {}) as { architecture?: unknown };
  return typeof architecture === "string" && architecture !== "" ? architecture : undefined;
}

function sizeOf({ config, layers = [] }: Manifest): number {
  let size = 0;
  for (const part of [config, ...layers]) {
    const bytes = part?.size;
    if (typeof bytes === "number" && Number.isSafeInteger(bytes) && bytes > 0) size += bytes;
  }
  return size;
}

// A manifest may leave its media type to the header (OCI image specification, "Image Manifest").
function typeOf({ mediaType }: Manifest, content: Content): string {
  return typeof mediaType === "string" ? mediaType : (content.mediaType.split(";")[0] ?? "").trim();
}

function parsed({ bytes }: Content): Manifest {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Manifest;
  } catch {
    // Said below.
  }
  throw unavailable("the registry answered with a manifest that cannot be read");
}
