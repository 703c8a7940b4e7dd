// Validates manifests against the schemas of Kubernetes, which `kubernetes-models` has as compiled validators.
import type { Manifest } from "./kustomize.js";

/**
 * Finds what is wrong with a manifest: fields that are missing, unknown or of another type.
 *
 * @returns a line for each problem
 */
export async function findSchemaProblems(manifest: Manifest): Promise<string[]> {
  const { apiVersion, kind } = manifest;
  const models = (await import(`kubernetes-models/${apiVersion}/${kind}`)) as Record<string, { prototype: Validated }>;
  const model = models[kind];
  if (model === undefined) throw new Error(`there is no schema of ${apiVersion} ${kind}`);
  const read = new Set<string>();
  const problems: string[] = [];
  try {
    model.prototype.validate.call(recordReads(manifest, "", read));
  } catch (error) {
    const { errors = [] } = error as { readonly errors?: readonly { instancePath: string; message: string }[] };
    if (errors.length === 0) throw error;
    problems.push(...errors.map(({ instancePath, message }) => `${instancePath} ${message}`));
  }
  const unknown = pathsIn(manifest, "").filter((path) => !read.has(path));
  return [...problems, ...unknown.map((path) => `${path} is unknown`)];
}

interface Validated {
  validate(this: object): void;
}

// The validators accept fields that the schema does not have, but read all others. So a field that none reads is unknown.
function recordReads<T extends object>(value: T, path: string, read: Set<string>): T {
  return new Proxy(value, {
    get(target, field, receiver) {
      const found: unknown = Reflect.get(target, field, receiver);
      if (typeof field === "symbol" || !Object.hasOwn(target, field)) return found;
      const at = `${path}/${field}`;
      read.add(at);
      return typeof found === "object" && found !== null ? recordReads(found, at, read) : found;
    },
  });
}

function pathsIn(value: unknown, path: string): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([field, inner]) => [`${path}/${field}`, ...pathsIn(inner, `${path}/${field}`)]);
}
