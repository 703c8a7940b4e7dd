// The client of the registry as tests call it: with texts as references.
import {
  type Content,
  createRegistryClient,
  type RegistryClient,
  type RegistryClientOptions,
} from "../../src/registry/oci/registry-client.js";

/** The same methods, which take and return texts. */
export interface AnyReferenceClient extends Pick<RegistryClient, "listRepos" | "listTags"> {
  findDigest(path: string, reference: string): Promise<string | undefined>;
  findManifest(path: string, digest: string): Promise<Content | undefined>;
  hasBlob(path: string, digest: string): Promise<boolean>;
  putManifest(path: string, reference: string, content: Content): Promise<boolean>;
  remove(path: string, kind: "manifests" | "blobs", digest: string): Promise<boolean>;
}

/** Creates such a client. */
export function createAnyReferenceClient(options: RegistryClientOptions): AnyReferenceClient {
  return createRegistryClient(options) as unknown as AnyReferenceClient;
}
