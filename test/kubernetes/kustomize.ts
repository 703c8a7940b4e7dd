// Renders the overlays of deploy/kubernetes with the few features of kustomize that they use. Any other field of a
// kustomization is an error, so that the overlays cannot begin to use what is not rendered here.
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

/** A manifest, as YAML has it. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly [field: string]: unknown;
}

type Fields = Record<string, unknown>;
type MutableManifest = { apiVersion: string; kind: string; metadata: { name: string; namespace?: string } } & Fields;

interface Image {
  readonly name: string;
  readonly newName: string;
  readonly newTag: string;
}

interface Generator {
  readonly name: string;
  readonly behavior?: "create" | "merge";
  readonly literals: readonly string[];
}

interface Kustomization {
  readonly resources: readonly string[];
  readonly namespace?: string;
  readonly nameSuffix?: string;
  readonly patches?: readonly { readonly path: string }[];
  readonly images?: readonly Image[];
  readonly configMapGenerator?: readonly Generator[];
}

const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  kustomization: [
    ...["apiVersion", "kind", "resources", "namespace", "nameSuffix"],
    ...["patches", "images", "configMapGenerator"],
  ],
  patch: ["path"],
  image: ["name", "newName", "newTag"],
  generator: ["name", "behavior", "literals"],
};

/** The key by which the elements of a list are merged; all other lists are replaced. */
const MERGE_KEYS: Readonly<Record<string, string>> = {
  containers: "name",
  env: "name",
  volumes: "name",
  volumeMounts: "mountPath",
};

/** Lists that kustomize would merge by a key too; a patch of one that is there already is an error here. */
const OTHER_KEYED_LISTS = ["initContainers", "ports", "topologySpreadConstraints", "imagePullSecrets", "hostAliases"];

const generated = Symbol("a ConfigMap whose name gets the hash of its content");

/**
 * Renders the kustomization of a directory.
 *
 * @throws Error for anything that is not supported
 */
export function renderKustomization(directory: string): readonly Manifest[] {
  const manifests = build(directory);
  addHashes(manifests);
  return manifests;
}

/** Reads the manifests of a file. Kubernetes reads YAML 1.1: `0440` is octal there, and `on` is a boolean. */
export function readManifests(file: string): MutableManifest[] {
  return readFileSync(file, "utf8")
    .split(/^---$/m)
    .map((text) => parse(text, { version: "1.1", strict: true, uniqueKeys: true }) as MutableManifest);
}

function build(directory: string): MutableManifest[] {
  const kustomization = readKustomization(directory);
  const manifests = kustomization.resources.flatMap((resource) => {
    const path = join(directory, resource);
    return statSync(path).isDirectory() ? build(path) : readManifests(path);
  });
  for (const generator of kustomization.configMapGenerator ?? []) generate(manifests, generator);
  for (const { path } of kustomization.patches ?? []) {
    for (const patch of readManifests(join(directory, path))) applyPatch(manifests, patch, path);
  }
  for (const image of kustomization.images ?? []) setImage(manifests, image);
  for (const { metadata } of manifests) {
    if (kustomization.namespace !== undefined) metadata.namespace = kustomization.namespace;
    metadata.name += kustomization.nameSuffix ?? "";
  }
  return manifests;
}

function readKustomization(directory: string): Kustomization {
  const [content] = readManifests(join(directory, "kustomization.yaml"));
  assertFields(content ?? {}, "kustomization", directory);
  const kustomization = content as unknown as Kustomization;
  for (const patch of kustomization.patches ?? []) assertFields(patch, "patch", directory);
  for (const image of kustomization.images ?? []) assertFields(image, "image", directory);
  for (const generator of kustomization.configMapGenerator ?? []) assertFields(generator, "generator", directory);
  return kustomization;
}

function assertFields(given: object, kind: string, directory: string): void {
  const unknown = Object.keys(given).filter((field) => !ALLOWED[kind]?.includes(field));
  if (unknown.length > 0)
    throw new Error(`${directory}: the ${kind} has ${unknown.join(", ")}, which is not supported`);
}

function generate(manifests: MutableManifest[], { name, behavior = "create", literals }: Generator): void {
  const data = Object.fromEntries(literals.map((literal) => splitLiteral(literal)));
  const existing = manifests.find(({ kind, metadata }) => kind === "ConfigMap" && metadata.name === name);
  if ((existing !== undefined) !== (behavior === "merge"))
    throw new Error(`${name}: cannot ${behavior} this ConfigMap`);
  if (existing !== undefined) Object.assign(existing.data as Fields, data);
  else manifests.push({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data, [generated]: true } as never);
}

function splitLiteral(literal: string): [string, string] {
  const at = literal.indexOf("=");
  if (at < 1) throw new Error(`${literal}: a literal is key=value`);
  return [literal.slice(0, at), literal.slice(at + 1)];
}

function applyPatch(manifests: readonly MutableManifest[], patch: MutableManifest, path: string): void {
  const isTarget = (one: MutableManifest) =>
    one.apiVersion === patch.apiVersion && one.kind === patch.kind && one.metadata.name === patch.metadata.name;
  const target = manifests.find(isTarget);
  if (target === undefined) throw new Error(`${path}: there is no ${patch.kind} ${patch.metadata.name}`);
  mergeInto(target, patch, path);
}

function mergeInto(target: Fields, patch: Fields, path: string): void {
  for (const [field, value] of Object.entries(patch)) {
    const isKeyed = OTHER_KEYED_LISTS.includes(field) && field in target;
    if (isKeyed || field.startsWith("$") || value === null)
      throw new Error(`${path}: a patch of ${field} is not supported`);
    const key = MERGE_KEYS[field];
    if (Array.isArray(value) && key !== undefined) target[field] = mergeList(target[field], value, key, path);
    else if (isFields(value) && isFields(target[field])) mergeInto(target[field], value, path);
    else target[field] = value;
  }
}

function mergeList(target: unknown, patch: readonly Fields[], key: string, path: string): Fields[] {
  const merged = [...((target ?? []) as Fields[])];
  for (const element of patch) {
    const existing = merged.find((one) => one[key] === element[key]);
    if (existing === undefined) merged.push(element);
    else mergeInto(existing, element, path);
  }
  return merged;
}

function setImage(manifests: readonly MutableManifest[], { name, newName, newTag }: Image): void {
  for (const fields of manifests.flatMap(fieldsIn)) {
    if (fields.image === name) fields.image = `${newName}:${newTag}`;
  }
}

function addHashes(manifests: readonly MutableManifest[]): void {
  for (const manifest of manifests) {
    if (!(generated in manifest)) continue;
    const { name } = manifest.metadata;
    manifest.metadata.name = `${name}-${hashSettings(manifest.data as Fields)}`;
    for (const fields of manifests.flatMap(fieldsIn)) {
      if (isFields(fields.configMapRef) && fields.configMapRef.name === name)
        fields.configMapRef.name = manifest.metadata.name;
    }
  }
}

// The suffix that kustomize adds, of which the name is no part, so that changed settings have another name and roll the pods out.
function hashSettings(data: Fields): string {
  const sorted = Object.fromEntries(Object.entries(data).sort(([one], [other]) => (one < other ? -1 : 1)));
  const encoded = JSON.stringify({ data: sorted, kind: "ConfigMap", name: "" });
  const hex = createHash("sha256").update(encoded).digest("hex").slice(0, 10);
  const replaced: Readonly<Record<string, string>> = { 0: "g", 1: "h", 3: "k", a: "m", e: "t" };
  return [...hex].map((digit) => replaced[digit] ?? digit).join("");
}

/** An object and all objects in it. */
export function fieldsIn(value: unknown): Fields[] {
  if (Array.isArray(value)) return value.flatMap(fieldsIn);
  return isFields(value) ? [value, ...Object.values(value).flatMap(fieldsIn)] : [];
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
