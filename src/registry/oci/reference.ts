// References to content in a registry (OCI distribution specification, "Pulling manifests"). They become parts of URLs,
// so the client of the registry takes parsed ones only: what an index, a registry or a row of another version calls a
// digest may be anything, such as a path to another repo.

declare const parsed: unique symbol;

/** A digest of content in a registry. */
export type Digest = string & { readonly [parsed]: "digest" };

export type TagName = string & { readonly [parsed]: "tag" };

const DIGEST = /^(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})$/;
export const TAG_NAME = /^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/;

/** Parses a digest; undefined for anything else. */
export function parseDigest(value: unknown): Digest | undefined {
  return typeof value === "string" && DIGEST.test(value) ? (value as Digest) : undefined;
}

/** Whether a tag may have this name. */
export function isTagName(name: string): name is TagName {
  return TAG_NAME.test(name);
}
