// The service whose document is tried out, and requests that its examples show with things of their
// own in them, so that nothing depends on what ran before.
import { verifyGroup } from "../../src/iam/operator/operate.js";
import { createTokens } from "../../src/issuer/tokens.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { parentOf } from "../../src/kernel/uidp.js";
import { groupKind } from "../../src/store/iam/groups.js";
import type { Store } from "../../src/store/store.js";
import { invite } from "../issuer/auth-world.js";
import { type ExchangeWorld, startExchangeWorld } from "../issuer/sts/exchange-world.js";
import {
  type AnyObject,
  type ApiDocument,
  endingOperationsOf,
  type PlacedOperation,
} from "../support/openapi/document.js";
import {
  collectionOf,
  createOperation,
  type PlainRequest,
  queryPart,
  readDocument,
  requestOf,
} from "../support/openapi/request.js";
import { parentsOf, type Subject, subjectOf } from "../support/openapi/subject.js";
import { setLimits } from "../support/quotas.js";
import { groupRow } from "../support/rows.js";
import { sample } from "../support/scale.js";
import { insertScimToken } from "../support/scim.js";
import { sendHttp } from "../support/send-http.js";
import { waitUntil } from "../support/wait-until.js";
import { createKnownCaller, type KnownCaller } from "./known-caller.js";
import { createAdvisory, createBareRepo, createRepo, imageDigest, letDoEverything } from "./registry-things.js";

const ORGANISATION = "acme.example";
const APPLICATION = "application";
/** What these are sent may be used up by requests that are rejected. */
const USED_UP = /^\/(?:sts|auth)\//;
/** Every text of an advisory that is put straight into the store. */
const TEXT = "text";

/** A request and who sends it. */
export interface Arranged extends PlainRequest {
  readonly bearer: string | undefined;
  /** Sent as a form. */
  readonly form?: string;
}

/** The service, and what is known of its document. */
export interface OperationWorld {
  readonly url: string;
  readonly document: ApiDocument;
  readonly operations: readonly PlacedOperation[];
  /** The root group that everything lies in, and where it is stored. */
  readonly organisation: string;
  readonly store: Store;
  /** The example of an operation, to be accepted: the same as before until such a request may have changed something. */
  arrange(operation: PlacedOperation): Promise<Arranged>;
  /**
   * Parts of a query for each parameter that need not be given: one for each value of an enum, for one of the other values
   * in turn, and in a campaign for each of them.
   */
  optionalParts(operation: PlacedOperation): Promise<string[]>;
  /** The name of the security scheme; undefined for what is open to everybody. */
  schemeOf(operation: PlacedOperation): string | undefined;
  /** Bearers that a call is accepted with, by the security scheme that the document names. */
  readonly bearers: Readonly<Record<string, () => string | undefined | Promise<string | undefined>>>;
  send(request: Arranged): Promise<{ readonly status: number; readonly text: string }>;
  stop(): Promise<void>;
}

type Known = Map<string, unknown>;
type Make = (known: Known, operation: PlacedOperation) => unknown;

/** Starts the service with an organisation in it. */
export async function startOperationWorld(): Promise<OperationWorld> {
  const world = await startExchangeWorld();
  const document = await readDocument(world.url);
  const operations = endingOperationsOf(document);
  const { organisation, caller, repo } = await createFilled(world);
  const somebody = await createKnownCaller(world, organisation);
  const { token } = caller;
  const bearers: OperationWorld["bearers"] = {
    bearer: () => token,
    foreignToken: () => somebody.oidcToken(),
    refreshToken: async () => (await somebody.refreshTokens(1))[0],
  };
  const identity = () => create("identities", organisation);

  // What parameters and properties stand for, by their names; some are known together.
  const things: Readonly<Record<string, Make>> = {
    group: () => organisation,
    scope: () => organisation,
    registry_id: () => organisation,
    identity_provider_uidp: () => create("identityProviders"),
    subscription: () => create("subscriptions"),
    overlay: () => create("overlays"),
    identityUid: identity,
    // Where one is created, it is the new one and no uid.
    identity: (_, { operationId }) => (/_CreateIdentity/.test(operationId) ? undefined : identity()),
    identityId: () => somebody.identity,
    aud: () => world.url,
    // Without a resource only methods can be asked about that need none.
    actions: () => "chainguard.platform.iam.v2beta1.GroupsService.ListGroups",
    resource: () => organisation,
    code: async (_, { operationId }) =>
      operationId === "Auth_GetHeadlessSession"
        ? (await somebody.headlessCodes(1))[0]
        : (await invite(world, { group: organisation, by: { token } })).code,
    source: (_, { path }) => (path.endsWith("/deployment") ? undefined : repo),
    digest: () => imageDigest,
    // That of a stored advisory cannot change.
    legacyAdvisoryID: (_, { method }) => (method === "PUT" ? TEXT : undefined),
    names: mappings,
    ids: mappings,
    parentId: freshGroup,
    parent: (_, operation) => createSubject(parentsOf(collectionOf(operation))),
  };
  const values = buildValues({ organisation, somebody, url: world.url });

  // Some things are good for one caller alone, or go with what a response told.
  const arrangements: readonly (readonly [path: RegExp, arrange: (known: Known) => Promise<void>])[] = [
    [
      // Only the caller itself may delete it.
      /\/auth\/v1\/delete\//,
      async (known) => {
        const [person] = await somebody.people(1);
        known.set("bearer", person?.token).set("id", person?.uid);
      },
    ],
    [
      // A caller requests access once only.
      /:requestGroupAccess$/,
      async (known) => {
        const asking = await world.harness.identity({ email: `bob@${ORGANISATION}` });
        known.set("bearer", asking.token);
      },
    ],
    [
      // An event from before the subscription is behind its position.
      /:redeliver$/,
      async (known) => {
        const eventId = await waitUntil(findSealedEvent);
        known.set("eventId", eventId).set("subscription", await create("subscriptions", organisation));
      },
    ],
    [
      // It is about a person who came through the provider.
      /:revokePersonTokens$/,
      async (known) => {
        const providerUid = await create("identityProviders");
        const { uid } = await world.harness.identity({ providerUid });
        known.set("identity_provider", providerUid).set("uid", uid);
      },
    ],
    [
      // The guard of an organisation of its own: it decides which identities the other operations may create.
      /\/issuerGuard$|:checkIssuerGuard$/,
      async (known) => {
        const { group, token: bearer } = await world.harness.organisation(`guarded-${randomIds.newId()}`);
        known.set("group", group).set("bearer", bearer);
      },
    ],
    [
      // Operations on SCIM tokens need one, and its etag.
      /:(?:regenerate|revoke)ScimToken$|:setScimEnabled$/,
      async (known) => {
        const provider = await create("identityProviders");
        const { etag } = await world.write((tx) => insertScimToken(tx, provider));
        known.set("etag", etag).set("identity_provider_uid", provider).set("identity_provider_id", provider);
      },
    ],
  ];

  async function mappings(known: Known) {
    const mapping = await create("externalGroupRoleMappings");
    known.set("parent", parentOf(mapping)).set("parentId", parentOf(mapping));
    return [mapping];
  }

  async function findSealedEvent(): Promise<string | undefined> {
    const { events } = await sendAccepted(await arrange(operationTo("GET", /^\/audit\/v1\/events$/)));
    const found = events as readonly { readonly id: string; readonly type: string; readonly sealed: boolean }[];
    return found.find(({ type, sealed }) => sealed && type.startsWith("dev.chainguard.api."))?.id;
  }

  // Straight into the store, since most operations need one.
  async function freshGroup(): Promise<string> {
    const uid = randomIds.newUid(organisation);
    await world.write((tx) => tx.table(groupKind).insert(groupRow(uid)));
    return uid;
  }

  // A new thing, or one that all may share.
  async function createSubject(subject: Subject): Promise<string> {
    switch (subject) {
      case "organisation":
        return organisation;
      case "image":
        return repo;
      case "groups":
        return freshGroup();
      // The caller's own.
      case "bindings":
        return world.harness.bind(caller.uid, "viewer", await freshGroup());
      case "sessions": {
        const { keys } = world.harness.app.installation;
        const tokens = createTokens({ keys, ids: randomIds, issuer: world.url });
        await world.write((tx) => tokens.createRefreshToken(tx, caller.uid, { audience: world.url }, Date.now()));
        const { sessions } = await sendAccepted(await arrange(operationTo("GET", /^\/sessions\/v1\/sessions$/)));
        return (sessions as readonly { id: string }[])[0]?.id ?? "";
      }
      case "bare":
        return world.write((tx) => createBareRepo(tx, organisation, `bare-${randomIds.newId()}`));
      case "deployed": {
        const deployed = await create("repos");
        await sendAccepted(await arrange(operationTo("POST", /\/deployment$/), deployed));
        return deployed;
      }
      case "events": {
        await create("groups", organisation);
        const { events } = await sendAccepted(await arrange(operationTo("GET", /^\/audit\/v1\/events$/)));
        return (events as readonly { id: string }[])[0]?.id ?? "";
      }
      case "advisories":
        return world.write((tx) => createAdvisory(tx, organisation, TEXT));
      case "advisoryEvents":
        return String((await sendAccepted(await arrange(operationTo("POST", /\/advisories\/\{\w+\}\/events$/)))).id);
      default:
        return create(subject);
    }
  }

  async function create(collection: string, parent?: string): Promise<string> {
    const operation = createOperation(operations, collection);
    if (operation === undefined) throw new Error(`nothing creates ${collection}`);
    return String((await sendAccepted(await arrange(operation, parent))).uid);
  }

  function operationTo(method: string, path: RegExp): PlacedOperation {
    const found = operations.find((one) => one.method === method && path.test(one.path));
    if (found === undefined) throw new Error(`no operation ${method} ${path}`);
    return found;
  }

  async function arrange(operation: PlacedOperation, subject?: string): Promise<Arranged> {
    const known: Known = new Map();
    for (const [path, arrange] of arrangements) if (path.test(operation.path)) await arrange(known);
    const [parameter] = operation.parameters;
    const named = subjectOf(operation);
    if (named !== undefined && parameter?.in === "path" && !known.has(parameter.name)) {
      known.set(parameter.name, subject ?? (await createSubject(named)));
    }
    for (const name of namesIn(operation)) {
      if (!known.has(name)) known.set(name, await things[name]?.(known, operation));
    }
    const request = requestOf(operation, (name) => known.get(name));
    const bearer = (known.get("bearer") as string | undefined) ?? (await bearers[schemeOf(operation) ?? ""]?.());
    return { ...request, bearer };
  }

  function schemeOf({ security = document.security }: PlacedOperation): string | undefined {
    return security.flatMap((one) => Object.keys(one))[0];
  }

  async function send({ method, path, body, form, bearer }: Arranged) {
    const sent = form ?? (body === undefined ? undefined : JSON.stringify(body));
    const type = form === undefined ? "application/json" : "application/x-www-form-urlencoded";
    const headers = {
      ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      ...(sent !== undefined && { "content-type": type }),
    };
    const response = await sendHttp(world.url + path, { method, headers, ...(sent !== undefined && { body: sent }) });
    return { status: response.status, text: response.text };
  }

  async function sendAccepted(request: Arranged): Promise<AnyObject> {
    const { status, text } = await send(request);
    if (status !== 200) throw new Error(`${request.method} ${request.path}: ${status} ${text}`);
    return JSON.parse(text) as AnyObject;
  }

  const rounds = new Map<string, number>();
  let kept: { readonly operation: PlacedOperation; readonly request: Arranged } | undefined;

  return {
    url: world.url,
    document,
    operations,
    organisation,
    store: world.harness.app.installation.store,
    async arrange(operation) {
      if (kept?.operation === operation) return kept.request;
      const request = await arrange(operation);
      kept = USED_UP.test(operation.path) ? undefined : { operation, request };
      return request;
    },
    schemeOf,
    bearers,
    async send(request) {
      const answer = await send(request);
      if (answer.status === 200 && request.method !== "GET") kept = undefined;
      return answer;
    },
    async optionalParts(operation) {
      const parts: string[] = [];
      for (const { name, required, schema } of operation.parameters) {
        if (required === true) continue;
        const { enum: all = (schema.items as AnyObject | undefined)?.enum } = schema;
        const known = (all as readonly unknown[] | undefined) ?? (await values[name]?.(operation));
        if (known === undefined) throw new Error(`${operation.operationId}: no value for the parameter ${name}`);
        const more = companions[name] ?? "";
        // Of enums every value, as each stands for itself.
        const round = rounds.get(name) ?? 0;
        rounds.set(name, round + 1);
        parts.push(...(all === undefined ? sample(known, round) : known).map((value) => queryPart(name, value) + more));
      }
      return parts;
    },
    stop: () => world.stop(),
  };
}

// An organisation, who may do everything there, and a repo in it.
async function createFilled(world: ExchangeWorld) {
  const { harness } = world;
  const { group: organisation } = await harness.organisation(ORGANISATION);
  const context = { ids: randomIds, nowMs: Date.now() };
  await world.write((tx) => verifyGroup(tx, organisation, "ORG_KIND_CUSTOMER", context));
  // More than an organisation ever needs: most operations are tried on a provider of their own.
  await setLimits(harness.app.installation.store, organisation, { providers: 10_000 });
  const caller = await harness.identity({ email: `ann@${ORGANISATION}` });
  await harness.bind(caller.uid, "owner", organisation);
  const repo = await world.write(async (tx) => {
    await letDoEverything(tx, caller.uid, organisation);
    return createRepo(tx, organisation, APPLICATION);
  });
  return { organisation, caller, repo };
}

function namesIn({ parameters, requestBody }: PlacedOperation): string[] {
  const names = parameters.filter(({ required }) => required === true).map(({ name }) => name);
  JSON.stringify(requestBody?.content["application/json"]?.example ?? {}, (key, value) => {
    names.push(key);
    return value;
  });
  return names;
}

interface ValueContext {
  readonly organisation: string;
  readonly somebody: KnownCaller;
  readonly url: string;
}
type Values = (operation: PlacedOperation) => readonly unknown[] | Promise<readonly unknown[]>;

// Values of parameters that need not be given; of enums it is every one there is.
const orders: Readonly<Record<string, readonly string[]>> = {
  // Of tags it is not told when they were created.
  ListTags: ["updated_at", "updated_at desc"],
  ListEvents: ["time asc", "time desc"],
  ListScimUsers: ["uid", "uid desc"],
};

// What a parameter is not accepted without.
const companions: Readonly<Record<string, string>> = { request_id: "&start_time=2026-01-31T12:00:00Z" };

function buildValues({ organisation, somebody, url }: ValueContext): Readonly<Record<string, Values>> {
  return {
    "uidp.ancestors_of": () => [`${organisation}/0123456789abcdef`],
    "uidp.descendants_of": () => [organisation],
    "uidp.children_of": () => [organisation, "/"],
    "uidp.in_root": () => [true, false],
    "uidp.ids": () => [organisation],
    identity: () => [somebody.identity],
    group: () => [organisation],
    role: () => [builtinRoleUid("viewer")],
    resource: () => [organisation],
    identity_provider_uid: () => [`${organisation}/0123456789abcdef`],
    identity_provider_uidp: () => [`${organisation}/0123456789abcdef`],
    id: () => [`${organisation}/0123456789abcdef`],
    issuer: () => ["https://issuer.example.org"],
    subject: ({ path }) => [path.startsWith("/audit/") ? organisation : "somebody"],
    actor: () => [somebody.identity],
    type: () => ["dev.chainguard.api.iam.group.created.v1"],
    request_id: () => ["request"],
    start_time: () => ["2026-01-31T12:00:00Z"],
    end_time: () => ["2026-01-31T12:00:00Z"],
    parent: () => [organisation],
    prevent_existing: () => [true, false],
    pending: () => [true, false],
    overlay: () => [`${organisation}/0123456789abcdef`],
    exclude_referrers: () => [true, false],
    exclude_dates: () => [true, false],
    exclude_epochs: () => [true, false],
    exclude_vcs_snapshots: () => [true, false],
    start: () => ["2026-01-31T12:00:00Z"],
    end: () => ["2026-01-31T12:00:00Z"],
    user_name: () => ["somebody"],
    external_id: () => ["somebody"],
    active: () => [true, false],
    arch: () => ["amd64"],
    registry: () => [true, false],
    registry_id: () => [organisation],
    artifact_name: () => ["repo"],
    artifact_type: () => ["apk"],
    artifact_architecture: () => ["x86_64"],
    component_name: () => ["repo"],
    component_type: () => ["go-module"],
    component_location: () => ["/usr/bin"],
    event_author: () => ["somebody"],
    event_reviewer: () => ["somebody"],
    exclude_event_author: () => ["somebody"],
    key_id: () => ["key"],
    name: () => ["team"],
    page_size: () => [1, 200, 1000],
    page_token: () => [""],
    order_by: ({ operationId }) => orders[operationId.replace(/.*_/, "")] ?? ["created_at", "created_at desc"],
    skip: () => [0, 3],
    updateMask: () => ["*"],
    aud: () => [url],
    cap: () => ["groups.list"],
    scope: () => [organisation],
    scopes: () => [organisation],
    identity_provider: () => [somebody.provider],
    updated_since: () => ["2026-01-31T12:00:00Z"],
    include_referrers: () => [true, false],
    include_dates: () => [true, false],
    include_epochs: () => [true, false],
    include_vcs_snapshots: () => [true, false],
    digest: () => [imageDigest],
    architecture: () => ["amd64"],
    advisory_ids: () => ["CGA-2345-6789-cfgh"],
    legacy_advisory_ids: () => ["CVE-2026-1"],
    artifact_names: () => ["repo"],
    artifact_types: () => ["apk"],
    artifact_architectures: () => ["x86_64"],
    component_names: () => ["repo"],
    component_types: () => ["go-module"],
    component_locations: () => ["/usr/bin"],
    aliases: () => ["CVE-2026-1"],
    origin: () => ["repo"],
    event_authors: () => ["somebody"],
    exclude_event_authors: () => ["somebody"],
    event_reviewers: () => ["somebody"],
    query: () => ["Re%"],
  };
}
