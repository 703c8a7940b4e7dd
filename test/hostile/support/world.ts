// Two organisations: one that calls honestly, one that attacks. Both are made
// through the commands and the API, as users make them.
import { arbor, type ServiceProcess } from "./service.js";

/** What the good client is told. */
export interface GoodWorld {
  readonly url: string;
  /** The address it calls from. */
  readonly address: string;
  readonly token: string;
  readonly group: string;
  /** Identities of the good client, each with an issuer of its own. */
  readonly workloads: readonly Workload[];
}

/** An identity, and the issuer whose tokens for the subject `ci` may be exchanged for it. */
export interface Workload {
  readonly identity: string;
  readonly issuer: string;
}

/** What attacks are told. */
export interface Target {
  readonly url: string;
  readonly pid: number;
  readonly data: string;
  /** Addresses to attack from; the good client's is not among them. */
  readonly addresses: readonly string[];
  /** The owner of the attackers' organisation: a valid token. */
  readonly token: string;
  readonly group: string;
  /** Ports whose origins on 127.0.0.1 are trusted issuers: attacks may listen there. */
  readonly issuerPorts: readonly number[];
}

/** Enough for every row to meet some that are new. */
const WORKLOADS = 300;
const WIDTH = 16;
const GOOD_ADDRESS = "127.0.0.9";
const ADDRESSES = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"];

/** Makes both organisations. @param origin of the good client's issuers, which the service trusts */
export async function makeWorld(
  service: ServiceProcess,
  origin: string,
  issuerPorts: readonly number[],
): Promise<{ readonly good: GoodWorld; readonly target: Target }> {
  const { url, data, pid } = service;
  const [honest, hostile] = await Promise.all([bootstrap(data, "honest.example"), bootstrap(data, "hostile.example")]);
  const workloads = await createIdentities(url, honest, origin, WORKLOADS);
  const good = { url, address: GOOD_ADDRESS, token: honest.token, group: honest.group, workloads };
  const target = { url, pid, data, addresses: ADDRESSES, token: hostile.token, group: hostile.group, issuerPorts };
  return { good, target };
}

/** A group and a token of its owner. */
export interface Owner {
  readonly group: string;
  readonly token: string;
}

async function bootstrap(data: string, org: string): Promise<Owner> {
  return JSON.parse(await arbor("bootstrap", "--org", org, "--data", data, "--json")) as Owner;
}

/** Creates an identity in the owner's group; returns its uid. */
export async function createIdentity(url: string, { group, token }: Owner, identity: object): Promise<string> {
  const made = await api(url, token, "POST", `/iam/v2beta1/identities/${group}`, identity);
  return String(made.uid);
}

/** Creates identities in the owner's group, each of an issuer of its own below the origin. */
export async function createIdentities(url: string, owner: Owner, origin: string, count: number): Promise<Workload[]> {
  const made: Workload[] = [];
  for (let i = 0; i < count; i += WIDTH) {
    const some = Array.from({ length: Math.min(WIDTH, count - i) }, async (_, j) => {
      const issuer = `${origin}/i/${i + j}`;
      const claimMatch = { issuer, subject: "ci" };
      return { issuer, identity: await createIdentity(url, owner, { name: `ci ${i + j}`, claimMatch }) };
    });
    made.push(...(await Promise.all(some)));
  }
  return made;
}

/** Makes a call of the REST API; rejects when it is refused. */
export async function api(
  url: string,
  token: string,
  method: string,
  path: string,
  body?: object,
): Promise<Record<string, unknown>> {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body && { "content-type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: HTTP ${response.status} ${text.slice(0, 300)}`);
  return text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
}
