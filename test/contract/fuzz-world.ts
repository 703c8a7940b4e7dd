// The service that is fuzzed, and what is known of the things in it.
import { verifyGroup } from "../../src/iam/operator/operate.js";
import { randomIds } from "../../src/kernel/ids.js";
import { type Harness, startHarness } from "../support/harness.js";
import {
  type ApiDocument,
  createValidators,
  operationsOf,
  type PlacedOperation,
  type Validators,
} from "../support/openapi/document.js";
import type { Random } from "../support/openapi/random.js";
import { readDocument } from "../support/openapi/request.js";

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
  /** The token of a caller who may do everything in the organisation. */
  readonly owner: string;
  /** Tokens of callers who may do less, or nothing. */
  readonly others: readonly string[];
  /** Uids of things by the name of their collection. */
  readonly known: KnownThings;
  stop(): Promise<void>;
}

/** Uids by collection, bounded: what is added to a full collection takes the place of another. */
export interface KnownThings {
  add(collection: string, uid: string, random: Random): void;
  remove(collection: string, uid: string): void;
  /** One of them; undefined when there is none. */
  pick(collection: string, random: Random): string | undefined;
}

const DOMAIN = "acme.example";
const MAX_KNOWN = 500;

/** Starts the service on an empty data directory. */
export async function startFuzzWorld(): Promise<FuzzWorld> {
  const harness: Harness = await startHarness();
  const document = await readDocument(harness.url);
  const { group: organisation } = await harness.organisation(DOMAIN);
  const { group: foreign } = await harness.organisation("rival.example");
  const { store } = harness.app.installation;
  await store.write((tx) => verifyGroup(tx, organisation, "ORG_KIND_CUSTOMER", { ids: randomIds, nowMs: Date.now() }));
  const owner = await harness.identity({ email: `ann@${DOMAIN}` });
  await harness.bind(owner.uid, "owner", organisation);
  const viewer = await harness.identity();
  await harness.bind(viewer.uid, "viewer", organisation);
  const nobody = await harness.identity();
  const known = createKnown();
  return {
    url: harness.url,
    document,
    operations: operationsOf(document),
    validators: createValidators(document),
    organisation,
    foreign,
    owner: owner.token,
    others: [viewer.token, nobody.token, await harness.token(randomIds.newUid())],
    known,
    stop: () => harness.stop(),
  };
}

function createKnown(): KnownThings {
  const lists = new Map<string, string[]>();
  return {
    add(collection, uid, random) {
      const list = lists.get(collection) ?? [];
      lists.set(collection, list);
      if (list.length < MAX_KNOWN) list.push(uid);
      else list[random.int(MAX_KNOWN)] = uid;
    },
    remove(collection, uid) {
      const list = lists.get(collection) ?? [];
      const at = list.indexOf(uid);
      const last = list.pop();
      if (at >= 0 && at < list.length && last !== undefined) list[at] = last;
      else if (at < 0 && last !== undefined) list.push(last);
    },
    pick(collection, random) {
      const list = lists.get(collection) ?? [];
      return list.length === 0 ? undefined : random.pick(list);
    },
  };
}
