// An organisation with repos and tags, for tests of the registry over REST.

import type { RestResponse } from "../contract/rest.js";
import { type IamWorld, type Somebody, startIamWorld } from "../iam/iam-world.js";

/** The digest of nothing real: 64 times a hexadecimal digit. */
export function digestOf(digit: string): string {
  return `sha256:${digit.repeat(64)}`;
}

/** A service with two organisations, and ways to fill them. */
export interface RegistryWorld extends IamWorld {
  /** A request by the owner or another caller; `path` follows `/registry/v2beta1`. */
  call(method: string, path: string, body?: object, by?: Somebody): Promise<RestResponse>;
  /** Creates a repo, in the own root group unless given; returns its uid. */
  repo(fields: object, group?: string): Promise<string>;
  /** A tag, new or moved; returns its uid. */
  tag(repo: string, name: string, digit?: string): Promise<string>;
}

/** Starts the service; see {@link startIamWorld}. */
export async function startRegistryWorld(settings?: Parameters<typeof startIamWorld>[0]): Promise<RegistryWorld> {
  const world = await startIamWorld(settings);
  const call: RegistryWorld["call"] = (method, path, body, by = world.owner) =>
    // Paths of `rest` follow those of the other API; `fetch` resolves the dots.
    by.rest(method, `/../../registry/v2beta1${path}`, body);
  const createResource = async (path: string, body: object, by?: Somebody): Promise<string> => {
    const { status, json, text } = await call("POST", path, body, by);
    if (status !== 200) throw new Error(text);
    return String(json?.uid);
  };
  const by = (parent: string) => (parent.startsWith(world.foreign) ? world.foreignOwner : world.owner);
  return Object.assign(world, {
    call,
    repo: (fields: object, group = world.root) => createResource(`/repos/${group}`, fields, by(group)),
    tag: (repo: string, name: string, digit = "a") =>
      createResource(`/tags/${repo}`, { name, digest: digestOf(digit) }, by(repo)),
  });
}
