// The overlays of deploy/kubernetes, rendered.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PROJECT } from "../support/project.js";
import { type Manifest, renderKustomization } from "./kustomize.js";
import { containersOf, type PodSpec } from "./pod-security.js";

/** The directory of the overlays. */
export const KUBERNETES = join(PROJECT, "deploy/kubernetes");

/** The directories that an operator applies. */
export const OVERLAYS = ["sqlite", "sqlite-create", "postgresql", "migrate-expand", "migrate-contract"] as const;

/** The version that package.json has. */
export const VERSION = (JSON.parse(readFileSync(join(PROJECT, "package.json"), "utf8")) as { version: string }).version;

const rendered = new Map<string, readonly Manifest[]>();

/** Renders an overlay; what is returned is the test's to change. */
export function render(overlay: (typeof OVERLAYS)[number]): readonly Manifest[] {
  const manifests = rendered.get(overlay) ?? renderKustomization(join(KUBERNETES, overlay));
  rendered.set(overlay, manifests);
  return structuredClone(manifests) as readonly Manifest[];
}

/** Finds the manifest of a kind, whose name may have a suffix. */
export function find(manifests: readonly Manifest[], kind: string, name = "arbor"): Deep {
  const found = manifests.find((one) => one.kind === kind && one.metadata.name.startsWith(name));
  if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
  return found as unknown as Deep;
}

/** Fields of a manifest to look into; what they are the schemas say. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into YAML, whose types nothing checks
export type Deep = any;

/** The template of the pods of an overlay. */
export function podTemplateOf(manifests: readonly Manifest[]): { metadata: Deep; spec: PodSpec & Deep } {
  const workload = manifests.find(({ kind }) => kind === "Deployment" || kind === "Job") as Deep;
  return workload.spec.template;
}

/** The settings that the containers of an overlay get, by variable. */
export function environmentOf(manifests: readonly Manifest[]): Record<string, string> {
  const { spec } = podTemplateOf(manifests);
  const env: Record<string, string> = {};
  for (const container of containersOf(spec) as Deep[]) {
    for (const { configMapRef } of container.envFrom ?? []) {
      const map = manifests.find(({ kind, metadata }) => kind === "ConfigMap" && metadata.name === configMapRef.name);
      if (map === undefined) throw new Error(`there is no ConfigMap ${configMapRef.name}`);
      Object.assign(env, map.data);
    }
    for (const { name, value } of container.env ?? []) env[name] = value;
  }
  return env;
}
