// How an image is run, as its configuration says (OCI image specification,
// "Image Configuration").
import { create } from "@bufbuild/protobuf";
import { type ImageConfig, ImageConfigSchema } from "#gen/chainguard/platform/registry/image_pb.js";
import type { Content } from "../oci/registry-client.js";
import { configOf, type ImageReader, imagesIn } from "./image-manifest.js";

/**
 * How an image is run on the architecture of this name. What the configuration says in another form
 * than specified is left out.
 *
 * @returns undefined where the image is not built for it
 * @throws ApiError FAILED_PRECONDITION when the manifest is not that of an image; UNAVAILABLE.
 */
export async function imageConfigOf(
  manifest: Content,
  reader: ImageReader,
  wanted: string,
): Promise<ImageConfig | undefined> {
  for await (const image of imagesIn(manifest, reader)) {
    if (image.architecture === wanted) return shown(await configOf(image.manifest, reader));
  }
  return undefined;
}

function shown(blob: object | undefined): ImageConfig {
  const { config } = (blob ?? {}) as { config?: Readonly<Record<string, unknown>> | null };
  const { User, ExposedPorts, Env, Entrypoint, Cmd, Volumes, WorkingDir, Labels, StopSignal } = config ?? {};
  return create(ImageConfigSchema, {
    user: text(User),
    exposedPorts: keys(ExposedPorts),
    env: texts(Env),
    entrypoint: texts(Entrypoint),
    cmd: texts(Cmd),
    volumes: keys(Volumes),
    workingDir: text(WorkingDir),
    labels: Object.fromEntries(entries(Labels).map(([key, value]) => [key, text(value)])),
    stopSignal: text(StopSignal),
  });
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

function keys(value: unknown): Record<string, object> {
  return Object.fromEntries(entries(value).map(([key]) => [key, {}]));
}

function entries(value: unknown): [string, unknown][] {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
}
