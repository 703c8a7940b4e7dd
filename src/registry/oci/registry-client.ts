// A client of the registry's HTTP API (OCI distribution specification). The address is a setting and never comes
// from a request or an event.
import { createHash } from "node:crypto";
import { unavailable } from "../../kernel/errors.js";
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

const ACCEPT = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.docker.distribution.manifest.v2+json",
].join(", ");

/** The access of the service itself: repos, and the catalog, which no caller gets. */
export type InternalAccess = Access | typeof CATALOG;

const CATALOG = { type: "registry", name: "catalog", actions: ["*"] } as const;

/** Content with its media type. */
export interface Content {
  readonly mediaType: string;
  readonly bytes: Buffer;
}

/** Reads a registry. Every method throws ApiError UNAVAILABLE where the registry does not answer as specified. */
export interface RegistryClient {
  /** The paths of all repos after `after`, in the order of the registry. */
  catalog(after: string): AsyncIterable<string>;
  /** The tags of a repo in no order; empty where there is no such repo. */
  tags(path: string): Promise<string[]>;
  /** The digest that a tag points to; undefined where the tag does not exist. */
  digestOf(path: string, tag: string): Promise<string | undefined>;
  /** A manifest of this repo, verified by its digest; undefined where the repo does not have it. */
  manifest(path: string, digest: string): Promise<Content | undefined>;
  /** A blob of this repo, such as a configuration, verified in the same way. */
  blob(path: string, digest: string): Promise<Content | undefined>;
}

export interface RegistryClientOptions {
  /** Its origin, such as `https://registry.example.org`. */
  readonly url: string;
  /** Creates a token for this access, which lives for two minutes at least. */
  readonly token: (access: InternalAccess) => string;
}

/** Creates a client. */
export function createRegistryClient({ url, token }: RegistryClientOptions): RegistryClient {
  let last = { scope: "", untilMs: 0, token: "" };

  function tokenFor(access: InternalAccess): string {
    const scope = JSON.stringify(access);
    const nowMs = performance.now();
    if (last.scope !== scope || nowMs >= last.untilMs) {
      last = { scope, untilMs: nowMs + TOKEN_MS, token: token(access) };
    }
    return last.token;
  }

  async function request(
    path: string,
    access: InternalAccess,
    ms: number,
    method = "GET",
  ): Promise<Response | undefined> {
    let response: Response;
    try {
      response = await fetch(new URL(path, url), {
        method,
        headers: { accept: ACCEPT, authorization: `Bearer ${tokenFor(access)}` },
        signal: AbortSignal.timeout(ms),
      });
    } catch (cause) {
      throw unavailable("the registry cannot be reached", undefined, cause);
    }
    if (response.ok) return response;
    await response.body?.cancel();
    if (response.status === 404) return undefined;
    throw unavailable(`the registry answered ${response.status}`);
  }

  async function readVerified(path: string, kind: string, digest: string): Promise<Content | undefined> {
    const response = await request(`/v2/${path}/${kind}/${digest}`, pullAccess(path), READ_MS);
    if (response === undefined) return undefined;
    const bytes = await readBody(response, MAX_MANIFEST_BYTES);
    const [algorithm = "", hex = ""] = digest.split(":");
    if (createHash(algorithm).update(bytes).digest("hex") !== hex) {
      throw unavailable("the registry answered with other content than its digest says");
    }
    return { mediaType: response.headers.get("content-type") ?? "", bytes };
  }

  return {
    async *catalog(after) {
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

    async tags(path) {
      const tags: string[] = [];
      let page: string | undefined = `/v2/${path}/tags/list`;
      while (page !== undefined) {
        const response: Response | undefined = await request(page, pullAccess(path), LIST_MS);
        if (response === undefined) return tags;
        const next = parseNextLink(response.headers.get("link"));
        for (const tag of parseStrings(await readBody(response, MAX_LIST_BYTES), "tags")) tags.push(tag);
        page = next;
      }
      return tags;
    },

    async digestOf(path, tag) {
      const response = await request(`/v2/${path}/manifests/${tag}`, pullAccess(path), READ_MS, "HEAD");
      if (response === undefined) return undefined;
      const digest = response.headers.get("docker-content-digest");
      if (digest === null) throw unavailable("the registry does not say the digest of a manifest");
      return digest;
    },

    manifest: (path, digest) => readVerified(path, "manifests", digest),
    blob: (path, digest) => readVerified(path, "blobs", digest),
  };
}

function pullAccess(path: string): Access {
  return { type: "repository", name: path, actions: ["pull"] };
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
    throw unavailable("the registry broke off its answer", undefined, cause);
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

// RFC 8288. Only path and query of the target are used, so that a link never leads to another host.
function parseNextLink(link: string | null): string | undefined {
  const target = /<([^>]*)>\s*;\s*rel="?next"?/.exec(link ?? "")?.[1];
  if (target === undefined) return undefined;
  const url = new URL(target, "http://registry.invalid");
  return `${url.pathname}${url.search}`;
}
