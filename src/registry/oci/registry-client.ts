// A client of the registry's HTTP API (OCI distribution specification). The address is a setting and never comes
// from a request or an event.
import { createHash } from "node:crypto";
import { failedPrecondition, unavailable } from "../../kernel/errors.js";
import type { TraceAttributes, TraceSpan } from "../../kernel/trace.js";
import { type Digest, isTagName, parseDigest, type TagName } from "./reference.js";
import type { Access } from "./scope.js";

/** The largest manifest and configuration, in bytes; the limit of registries. */
const MAX_MANIFEST_BYTES = 4 * 1024 * 1024;
/** Registries list all tags of a repo at once: enough for a million of them. */
const MAX_LIST_BYTES = 128 * 1024 * 1024;
/** Timeouts to read a manifest, and to list, which walks the storage of the registry, in milliseconds. */
const READ_MS = 10_000;
const LIST_MS = 120_000;
const CATALOG_PAGE = 100;

/** How long a token is reused, in milliseconds; it lives longer. */
const TOKEN_MS = 60_000;
/** How many tokens are kept: a repo that is moved needs a few. */
const MAX_TOKENS = 16;

/** The media types of manifests. Registries convert or reject a manifest whose type is not accepted. */
const MANIFEST_TYPES: ReadonlySet<unknown> = new Set([
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.oci.artifact.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.docker.distribution.manifest.v2+json",
]);
const SCHEMA_1 = /^application\/vnd\.docker\.distribution\.manifest\.v1\+/;
const ACCEPT = [...MANIFEST_TYPES].join(", ");

/** Whether content of this media type is a manifest or an index; other content is a blob. */
export function isManifestType(mediaType: unknown): boolean {
  return MANIFEST_TYPES.has(mediaType);
}

/** The access of the service itself: repos, and the catalog, which no caller gets. */
export type InternalAccess = Access | typeof CATALOG;

const CATALOG = { type: "registry", name: "catalog", actions: ["*"] } as const;

/** Content with its media type. */
export interface Content {
  readonly mediaType: string;
  readonly bytes: Buffer;
}

/**
 * Reads and writes a registry. Every method throws ApiError UNAVAILABLE where the registry does not answer as
 * specified.
 */
export interface RegistryClient {
  /** Lists the paths of all repos after the path `after`, in the order of the registry. */
  listRepos(after: string): AsyncIterable<string>;
  /** Lists the tags of a repo in no order, without names that no tag may have; none where there is no such repo. */
  listTags(path: string): Promise<TagName[]>;
  /**
   * Finds the digest of a tag or of a digest itself; undefined where the repo does not have it, or the registry answers
   * with another text than a digest.
   */
  findDigest(path: string, reference: Digest | TagName): Promise<Digest | undefined>;
  /**
   * Reads a manifest of this repo and verifies it by its digest; undefined where the repo does not have it. A manifest
   * of Docker's schema 1, whose digest leaves out its signatures, counts as absent.
   *
   * @param trace the span that the request is part of
   */
  findManifest(path: string, digest: Digest, trace?: TraceSpan): Promise<Content | undefined>;
  /** Reads a blob of this repo, such as a configuration, and verifies it in the same way. */
  findBlob(path: string, digest: Digest, trace?: TraceSpan): Promise<Content | undefined>;
  hasBlob(path: string, digest: Digest): Promise<boolean>;
  /** Makes a blob of another repo a blob of this repo, without a copy; false where that repo does not have it. */
  mountBlob(path: string, digest: Digest, from: string): Promise<boolean>;
  /** Writes a manifest under its digest or a tag; false where the registry rejects it, such as for a missing part. */
  putManifest(path: string, reference: Digest | TagName, content: Content): Promise<boolean>;
  /**
   * Removes a manifest with its tags, or a blob, from this repo; false where the repo does not have it.
   *
   * @throws ApiError FAILED_PRECONDITION where the registry is configured not to delete
   */
  remove(path: string, kind: "manifests" | "blobs", digest: Digest): Promise<boolean>;
}

export interface RegistryClientOptions {
  /** Its origin, such as `https://registry.example.org`. */
  readonly url: string;
  /** Creates a token for this access, which lives for two minutes at least. */
  readonly token: (access: readonly InternalAccess[]) => string;
}

interface RequestInput {
  readonly method?: string;
  readonly content?: Content;
  /** The statuses that say that it does not exist; 404 unless set. */
  readonly absent?: readonly number[];
  readonly trace?: TraceSpan | undefined;
}

export function createRegistryClient({ url, token }: RegistryClientOptions): RegistryClient {
  const { origin } = new URL(url);
  const tokens = new Map<string, { readonly token: string; readonly untilMs: number }>();

  function getToken(access: readonly InternalAccess[]): string {
    const scope = JSON.stringify(access);
    const nowMs = performance.now();
    const known = tokens.get(scope);
    if (known !== undefined && nowMs < known.untilMs) return known.token;
    if (tokens.size >= MAX_TOKENS) tokens.clear();
    const made = token(access);
    tokens.set(scope, { token: made, untilMs: nowMs + TOKEN_MS });
    return made;
  }

  // Undefined for a response with one of the statuses in `absent`.
  async function request(
    path: string,
    access: InternalAccess | readonly InternalAccess[],
    ms: number,
    { method = "GET", content, absent = [404], trace }: RequestInput = {},
  ): Promise<Response | undefined> {
    const bearer = getToken([access].flat());
    const type = content && { "content-type": content.mediaType };
    const span = trace?.startRequest(method, describeRequest(method, url));
    let response: Response;
    try {
      // Not resolved against the origin: a path that begins with two slashes would name another host.
      response = await fetch(`${origin}${path}`, {
        method,
        headers: { accept: ACCEPT, authorization: `Bearer ${bearer}`, ...type, ...span?.headers() },
        ...(content && { body: content.bytes }),
        signal: AbortSignal.timeout(ms),
      });
    } catch (cause) {
      span?.fail(cause);
      throw unavailable("the registry cannot be reached", undefined, cause);
    }
    span?.setAttributes({ "http.response.status_code": response.status });
    if (response.status < 500) span?.end();
    else span?.fail({ code: String(response.status) });
    if (response.ok) return response;
    await response.body?.cancel();
    if (absent.includes(response.status)) return undefined;
    if (response.status === 405) {
      const rule = "storage.delete.enabled and storage.maintenance.readonly of its configuration decide";
      throw failedPrecondition("REGISTRY", `the registry does not allow ${method} of ${path}: ${rule}`);
    }
    throw unavailable(`the registry answered ${response.status}`);
  }

  async function readVerified(
    path: string,
    kind: string,
    digest: Digest,
    trace: TraceSpan | undefined,
  ): Promise<Content | undefined> {
    const response = await request(`/v2/${path}/${kind}/${digest}`, buildPullAccess(path), READ_MS, { trace });
    if (response === undefined) return undefined;
    const bytes = await readBody(response, MAX_MANIFEST_BYTES);
    const mediaType = response.headers.get("content-type") ?? "";
    if (SCHEMA_1.test(mediaType)) return undefined;
    const [algorithm = "", hex = ""] = digest.split(":");
    if (createHash(algorithm).update(bytes).digest("hex") !== hex) {
      throw unavailable("the registry answered with other content than its digest says");
    }
    return { mediaType, bytes };
  }

  return {
    async *listRepos(after) {
      const query = new URLSearchParams({ n: String(CATALOG_PAGE), ...(after !== "" && { last: after }) });
      let path: string | undefined = `/v2/_catalog?${query}`;
      while (path !== undefined) {
        const response: Response | undefined = await request(path, CATALOG, LIST_MS);
        if (response === undefined) throw unavailable("the registry has no catalog");
        const next = parseNextLink(response.headers.get("link"));
        yield* parseStrings(await readBody(response, MAX_LIST_BYTES), "repositories");
        path = next;
      }
    },

    async listTags(path) {
      const tags: TagName[] = [];
      let page: string | undefined = `/v2/${path}/tags/list`;
      while (page !== undefined) {
        const response: Response | undefined = await request(page, buildPullAccess(path), LIST_MS);
        if (response === undefined) return tags;
        const next = parseNextLink(response.headers.get("link"));
        for (const tag of parseStrings(await readBody(response, MAX_LIST_BYTES), "tags")) {
          if (isTagName(tag)) tags.push(tag);
        }
        page = next;
      }
      return tags;
    },

    async findDigest(path, reference) {
      const head = { method: "HEAD" };
      const response = await request(`/v2/${path}/manifests/${reference}`, buildPullAccess(path), READ_MS, head);
      if (response === undefined) return undefined;
      const digest = response.headers.get("docker-content-digest");
      if (digest === null) throw unavailable("the registry does not say the digest of a manifest");
      return parseDigest(digest);
    },

    findManifest: (path, digest, trace) => readVerified(path, "manifests", digest, trace),
    findBlob: (path, digest, trace) => readVerified(path, "blobs", digest, trace),

    async hasBlob(path, digest) {
      const head = { method: "HEAD" };
      return (await request(`/v2/${path}/blobs/${digest}`, buildPullAccess(path), READ_MS, head)) !== undefined;
    },

    async mountBlob(path, digest, from) {
      const query = new URLSearchParams({ mount: digest, from });
      const access = [buildPullAccess(from), buildPushAccess(path)];
      const response = await request(`/v2/${path}/blobs/uploads/?${query}`, access, READ_MS, { method: "POST" });
      if (response === undefined) return false;
      await response.body?.cancel();
      if (response.status === 201) return true;
      // The registry began an upload instead, which would stay in its storage.
      const upload = parsePath(response.headers.get("location") ?? "");
      await request(upload, buildPushAccess(path), READ_MS, { method: "DELETE" });
      return false;
    },

    async putManifest(path, reference, content) {
      const put = { method: "PUT", content, absent: [400, 404] };
      const response = await request(`/v2/${path}/manifests/${reference}`, buildPushAccess(path), READ_MS, put);
      await response?.body?.cancel();
      return response !== undefined;
    },

    async remove(path, kind, digest) {
      const access: Access = { ...buildPullAccess(path), actions: ["pull", "delete"] };
      const response = await request(`/v2/${path}/${kind}/${digest}`, access, READ_MS, { method: "DELETE" });
      await response?.body?.cancel();
      return response !== undefined;
    },
  };
}

function describeRequest(method: string, registry: string): TraceAttributes {
  const { protocol, hostname } = new URL(registry);
  return { "http.request.method": method, "url.scheme": protocol.slice(0, -1), "server.address": hostname };
}

function buildPullAccess(path: string): Access {
  return { type: "repository", name: path, actions: ["pull"] };
}

function buildPushAccess(path: string): Access {
  return { type: "repository", name: path, actions: ["pull", "push"] };
}

async function readBody(response: Response, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of response.body ?? []) {
      size += chunk.byteLength;
      if (size > maxBytes) break;
      chunks.push(chunk);
    }
  } catch (cause) {
    throw unavailable("the registry broke off its response", undefined, cause);
  }
  if (size > maxBytes) throw unavailable(`the registry answered with more than ${maxBytes} bytes`);
  return Buffer.concat(chunks);
}

// Registries answer null as the list of tags of a repo without tags.
function parseStrings(body: Buffer, member: string): string[] {
  try {
    const list = (JSON.parse(body.toString()) as Record<string, unknown>)[member] ?? [];
    if (Array.isArray(list) && list.every((one) => typeof one === "string")) return list as string[];
  } catch {
    // The error below covers it.
  }
  throw unavailable(`the registry answered without a list of ${member}`);
}

// RFC 8288
function parseNextLink(link: string | null): string | undefined {
  const target = /<([^>]*)>\s*;\s*rel="?next"?/.exec(link ?? "")?.[1];
  return target === undefined ? undefined : parsePath(target);
}

// Only path and query are used, so that a link never leads to another host. The path of a URL such as `x:y` begins with no
// slash, so that it would become a part of the host.
function parsePath(target: string): string {
  const base = "http://registry.invalid";
  const { pathname = "", search = "" } = URL.canParse(target, base) ? new URL(target, base) : {};
  if (pathname.startsWith("/")) return `${pathname}${search}`;
  throw unavailable("the registry answered with a link that is none");
}

/** The number of concurrent requests to the registry. */
const REQUESTS = 16;

/** Maps items with a few concurrent requests; the results have the order of `items`. */
export async function mapConcurrently<T, R>(items: readonly T[], of: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = new Array(items.length);
  let next = 0;
  const work = async () => {
    for (let i = next++; i < items.length; i = next++) results[i] = await of(items[i] as T);
  };
  await Promise.all(Array.from({ length: REQUESTS }, work));
  return results;
}
