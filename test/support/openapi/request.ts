// Requests by the document: what its examples show, with names of real things.
import type { ApiDocument, PlacedOperation } from "./document.js";

/** A request to be sent. */
export interface PlainRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** To be sent as JSON. */
  readonly body?: unknown;
}

/** The value for a parameter, or for a property of a body, in place of its example; undefined to keep that. */
export type Fill = (name: string) => unknown;

/** The name of what an operation is about, as it stands in the path after the version, in any version: `groups`. */
export function collectionOf({ path }: Pick<PlacedOperation, "path">): string {
  const name = (path.split("/")[3] ?? "").split(":")[0] ?? "";
  return name === "rolebindings"
    ? "roleBindings"
    : name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** Whether an operation makes a thing of its collection in what the path names. */
export function isCreate({ method, path }: PlacedOperation): boolean {
  return method === "POST" && /^\/[^/]+\/[^/]+\/[^/:]+\/\{[^/]+\}$/.test(path);
}

/** The operation that makes things of a collection, of version 2beta1 as its responses name them by their uid. */
export function createOperation(
  operations: readonly PlacedOperation[],
  collection: string,
): PlacedOperation | undefined {
  return operations.find((one) => isCreate(one) && collectionOf(one) === collection && one.path.includes("/v2beta1/"));
}

/** The request that an operation's examples show, with its required parameters. */
export function requestOf(operation: PlacedOperation, fill: Fill): PlainRequest {
  const query: string[] = [];
  let { path } = operation;
  for (const { name, in: location, required, example } of operation.parameters) {
    if (required !== true) continue;
    const text = String(fill(name) ?? example);
    if (location === "path") path = path.replace(`{${name}}`, escapePath(text));
    else query.push(queryPart(name, text));
  }
  const body = operation.requestBody?.content["application/json"]?.example;
  const { method } = operation;
  return { method, path: withQuery(path, query), ...(body !== undefined && { body: fillValue(body, fill) }) };
}

/** A path with more parameters. */
export function withQuery(path: string, parts: readonly string[]): string {
  return parts.length === 0 ? path : `${path}${path.includes("?") ? "&" : "?"}${parts.join("&")}`;
}

/** A parameter as it stands in a query. */
export function queryPart(name: string, value: unknown): string {
  return `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`;
}

/** A uid as it stands in a path: slashes as they are. */
export function escapePath(uid: string): string {
  return uid.split("/").map(encodeURIComponent).join("/");
}

function fillValue(value: unknown, fill: Fill): unknown {
  if (Array.isArray(value)) return value.map((item) => fillValue(item, fill));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, fill(key) ?? fillValue(member, fill)]));
}

/** Reads the document of a running service. */
export async function readDocument(url: string): Promise<ApiDocument> {
  const response = await fetch(`${url}/openapi.json`);
  if (!response.ok) throw new Error(`/openapi.json: ${response.status} ${await response.text()}`);
  return (await response.json()) as ApiDocument;
}
