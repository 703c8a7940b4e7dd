// What docker gets is limited to the registry: docker keeps its credentials in memory and sends them to the registry, so
// a token with all rights of the person would be in places that have no use for them.

/** The capabilities that pulls, pushes and deletions in a registry need (docs/registry.md#credentials). */
export const REGISTRY_CAPABILITIES = [
  "manifest.create",
  "manifest.delete",
  "manifest.list",
  "repo.blobs.get",
  "repo.create",
  "tag.create",
  "tag.delete",
  "tag.list",
  "tag.update",
] as const;
