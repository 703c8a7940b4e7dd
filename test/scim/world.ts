// An organisation whose provider has a directory, for tests of the endpoint over HTTP.
import assert from "node:assert/strict";
import { builtinRoleUid } from "../../src/kernel/ids.js";
import { restAs } from "../contract/rest.js";
import { type Harness, startHarness } from "../support/harness.js";

export interface Directory {
  readonly provider: string;
  readonly group: string;
  /** A token of an owner. */
  readonly owner: string;
  /** The uids of both owners. */
  readonly owners: readonly string[];
  readonly token: string;
  readonly endpointUrl: string;
  /** Sends a request to the endpoint. */
  send: Send;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read any member
  readonly json: any;
}

export type Send = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
) => Promise<Answer>;

/** Sends requests to an endpoint with a token. */
export function scimAs(endpointUrl: string, token: string): Send {
  return async (method, path, body, headers = {}) => {
    const response = await fetch(`${endpointUrl}${path}`, {
      method,
      headers: {
        ...(token !== "" && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { "content-type": "application/scim+json" }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const json = text.startsWith("{") ? JSON.parse(text) : undefined;
    return { status: response.status, headers: response.headers, text, json };
  };
}

/** Creates an organisation with two owners and a provider whose SCIM is on, over the published API. */
export async function createDirectory(harness: Harness, name = "acme", oidc: object = {}): Promise<Directory> {
  const { group, identity, token: owner } = await harness.organisation(name);
  const second = await harness.identity();
  await harness.bind(second.uid, "owner", group);
  const rest = restAs(harness.url, owner, "/iam/v2");
  const ask = async (method: string, path: string, body?: object) => {
    const { status, json, text } = await rest(method, path, body);
    assert.equal(status, 200, `${method} ${path}: ${text}`);
    // biome-ignore lint/suspicious/noExplicitAny: as above
    return json as any;
  };
  const settings = { issuer: "https://login.example", clientId: "id", pkceEnabled: true, ...oidc };
  const body = { name: "directory", defaultRole: builtinRoleUid("viewer"), oidc: settings };
  const { uid: provider } = await ask("POST", `/identityProviders/${group}`, body);
  const { token, endpointUrl, etag } = await ask("POST", `/identityProviders/${provider}:generateScimToken`, {});
  await ask("POST", `/identityProviders/${provider}:setScimEnabled`, { enabled: true, etag });
  const owners = [identity, second.uid];
  return { provider, group, owner, owners, token, endpointUrl, send: scimAs(endpointUrl, token) };
}

export interface World extends Directory {
  readonly harness: Harness;
  stop(): Promise<void>;
}

export async function startDirectory(oidc: object = {}): Promise<World> {
  const harness = await startHarness();
  return { harness, ...(await createDirectory(harness, "acme", oidc)), stop: () => harness.stop() };
}

let count = 0;

/** What a directory sends of a new person. */
export function newUser(fields: object = {}) {
  const number = count++;
  return {
    schemas: ["urn:ietf:params:scim:schemas:core:2.0:User"],
    userName: `person${number}@acme.example`,
    externalId: `external-${number}`,
    ...fields,
  };
}

export const PATCH_OP = "urn:ietf:params:scim:api:messages:2.0:PatchOp";

/** The body of a PATCH. */
export function patch(...operations: readonly object[]) {
  return { schemas: [PATCH_OP], Operations: operations };
}
