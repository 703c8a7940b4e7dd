// The service that is fuzzed, and what is known of the things in it.
import { verifyGroup } from "../../src/iam/operator/operate.js";
import { randomIds } from "../../src/kernel/ids.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { invite } from "../issuer/auth-world.js";
import { startExchangeWorld } from "../issuer/sts/exchange-world.js";
import type { Harness } from "../support/harness.js";
import {
  type ApiDocument,
  createValidators,
  endingOperationsOf,
  type PlacedOperation,
  type Validators,
} from "../support/openapi/document.js";
import type { Random } from "../support/openapi/random.js";
import { readDocument } from "../support/openapi/request.js";
import { groupRow } from "../support/rows.js";
import { chooseScale } from "../support/scale.js";
import { createKnownCaller, type KnownCaller } from "./known-caller.js";
import { createAdvisory, createBareRepo, createRepo, letDoEverything } from "./registry-things.js";

/** A service to be fuzzed. */
export interface FuzzWorld {
  readonly url: string;
  readonly document: ApiDocument;
  readonly operations: readonly PlacedOperation[];
  readonly validators: Validators;
  /** A verified organisation, which the first of the callers owns. */
  readonly organisation: string;
  /** An organisation that none of the callers belongs to. */
  readonly foreign: string;
  /** A repo of the organisation with an image, not copied from another and never deleted. */
  readonly repo: string;
  /** The token of a caller who may do everything in the organisation. */
  readonly owner: string;
  /** Tokens of callers who may do less, or nothing. */
  readonly others: readonly string[];
  /** Whom the methods know that authenticate their callers by themselves. */
  readonly somebody: KnownCaller;
  /** API tokens of people, by their uid. */
  readonly people: ReadonlyMap<string, string>;
  /** Uids of things by the name of their collection, and secrets that are good for one call. */
  readonly known: KnownThings;
  stop(): Promise<void>;
}

/** Uids by collection, bounded: what is added to a full collection takes the place of another. */
export interface KnownThings {
  add(collection: string, uid: string, random: Random): void;
  remove(collection: string, uid: string): void;
  /** Removes one of them and returns it; undefined when there is none. */
  take(collection: string, random: Random): string | undefined;
  /** One of them; undefined when there is none. */
  pick(collection: string, random: Random): string | undefined;
}

const DOMAIN = "acme.example";
const MAX_KNOWN = 500;
/** So many people to delete, callers without an access request, refresh tokens, and logins without a browser there are to begin with. */
const PREPARED = chooseScale(200, 40);
/** Failures count against an invite as well (docs/security.md), so one alone would soon be locked. */
const INVITES = 10;
const ADVISORIES = 20;
/** A repo has one binding of an overlay to all tags. */
const BARE_REPOS = 200;

/** Starts the service on an empty data directory. */
export async function startFuzzWorld(): Promise<FuzzWorld> {
  // Failures are counted by address, so requests come from many.
  const world = await startExchangeWorld({ trustedProxies: "127.0.0.1" });
  const { harness } = world;
  const document = await readDocument(harness.url);
  const { group: organisation } = await harness.organisation(DOMAIN);
  const { group: foreign } = await harness.organisation("other.example");
  const { store } = harness.app.installation;
  await store.write((tx) => verifyGroup(tx, organisation, "ORG_KIND_CUSTOMER", { ids: randomIds, nowMs: Date.now() }));
  const owner = await harness.identity({ email: `ann@${DOMAIN}` });
  await harness.bind(owner.uid, "owner", organisation);
  const { repo, bare, advisories } = await store.write(async (tx) => {
    await letDoEverything(tx, owner.uid, organisation);
    const advisories: string[] = [];
    while (advisories.length < ADVISORIES) {
      advisories.push(await createAdvisory(tx, organisation, `text ${advisories.length}`));
    }
    const bare: string[] = [];
    while (bare.length < BARE_REPOS) bare.push(await createBareRepo(tx, organisation, `bare-${bare.length}`));
    return { repo: await createRepo(tx, organisation, "application"), bare, advisories };
  });
  const bindings: string[] = [];
  while (bindings.length < PREPARED) bindings.push(await bindingBelow(harness, owner.uid, organisation));
  const viewer = await harness.identity();
  await harness.bind(viewer.uid, "viewer", organisation);
  const nobody = await harness.identity();
  const somebody = await createKnownCaller(world, organisation);
  const people = new Map((await somebody.people(PREPARED)).map(({ uid, token }) => [uid, token]));
  const asking = Array.from({ length: PREPARED }, (_, i) => harness.identity({ email: `person${i}@${DOMAIN}` }));
  const invites = Array.from({ length: INVITES }, () => invite(world, { group: organisation, by: owner }));
  const known = createKnown({
    advisories,
    bare,
    bindings,
    events: await recordEvents(harness.url, organisation, owner.token),
    delete: [...people.keys()],
    asking: (await Promise.all(asking)).map(({ token }) => token),
    refreshTokens: await somebody.refreshTokens(PREPARED),
    headlessCodes: await somebody.headlessCodes(PREPARED),
    inviteCodes: (await Promise.all(invites)).map(({ code }) => code),
  });
  return {
    url: harness.url,
    document,
    operations: endingOperationsOf(document),
    validators: createValidators(document),
    organisation,
    foreign,
    repo,
    owner: owner.token,
    somebody,
    people,
    others: [viewer.token, nobody.token, await harness.token(randomIds.newUid())],
    known,
    stop: () => world.stop(),
  };
}

// Ids of events of the audit log.
async function recordEvents(url: string, organisation: string, token: string): Promise<string[]> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const body = JSON.stringify({ name: "recorded" });
  await fetch(`${url}/iam/v2beta1/groups/${organisation}`, { method: "POST", headers, body });
  const response = await fetch(`${url}/audit/v1/events?scope=${organisation}`, { headers });
  return ((await response.json()) as { events: readonly { id: string }[] }).events.map(({ id }) => id);
}

// A binding that its holder may drop and keeps every right without.
async function bindingBelow(harness: Harness, identity: string, organisation: string): Promise<string> {
  const team = groupRow(randomIds.newUid(organisation));
  await harness.app.installation.store.write((tx) => tx.table(groupKind).insert(team));
  return harness.bind(identity, "viewer", team.uid);
}

/** Creates them. */
export function createKnown(first: Readonly<Record<string, string[]>>): KnownThings {
  const lists = new Map(Object.entries(first));

  function remove(collection: string, uid: string): void {
    const list = lists.get(collection) ?? [];
    const at = list.indexOf(uid);
    const last = list.pop();
    if (at >= 0 && at < list.length && last !== undefined) list[at] = last;
    else if (at < 0 && last !== undefined) list.push(last);
  }

  function pick(collection: string, random: Random): string | undefined {
    const list = lists.get(collection) ?? [];
    return list.length === 0 ? undefined : random.pick(list);
  }

  return {
    remove,
    pick,
    take(collection, random) {
      const one = pick(collection, random);
      if (one !== undefined) remove(collection, one);
      return one;
    },
    add(collection, uid, random) {
      const list = lists.get(collection) ?? [];
      lists.set(collection, list);
      if (list.length < MAX_KNOWN) list.push(uid);
      else list[random.int(MAX_KNOWN)] = uid;
    },
  };
}
