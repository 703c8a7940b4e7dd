// The services of the API with their method table, and the routes of the container registry beside them.
import type { DescService } from "@bufbuild/protobuf";
import { auditV1, createEventIds, readEventIdKey } from "../../audit/audit-v1.js";
import { createEventFeed, createEventStreams } from "../../audit/event-feed.js";
import type { Origin } from "../../config/origin.js";
import { type CloudEvents, createCloudEvents } from "../../events/cloud-event.js";
import type { Sender } from "../../events/delivery/sender.js";
import { eventsV1 } from "../../events/events-v1.js";
import { accessV1 } from "../../iam/access/access-v1.js";
import { sealForStore } from "../../issuer/keys/master-key.js";
import { sessionsV1 } from "../../issuer/sessions-v1.js";
import { createFailureThrottle } from "../../issuer/sts/failure-throttle.js";
import { createPageTokens } from "../../kernel/page-token.js";
import type { WebRoutes } from "../../kernel/web.js";
import { createMethodTable, findBodyReaders, type MethodTable } from "../../pipeline/method-table.js";
import type { Mount } from "../../pipeline/mount-options.js";
import { buildRoomChecks, type Quotas } from "../../pipeline/resource/quota.js";
import { notificationRoutes } from "../../registry/oci/notification-routes.js";
import { createRegistryClient } from "../../registry/oci/registry-client.js";
import { createInternalTokens } from "../../registry/oci/registry-token.js";
import { TOKEN_FAILURES, tokenRoutes } from "../../registry/oci/token-routes.js";
import { scimRoutes } from "../../scim/endpoint.js";
import type { Tx } from "../../store/transaction.js";
import { bodiesOfOthers, definitions } from "../definitions.js";
import { addMounts } from "../mounts.js";
import { createPlatformServices } from "../services.js";
import type { AreaDeps } from "./area.js";
import type { IssuerArea } from "./issuer.js";
import type { StoreArea } from "./store.js";

export interface PlatformDeps extends AreaDeps {
  readonly origin: Origin;
  readonly storage: StoreArea;
  readonly issuer: IssuerArea;
  readonly eventSender: Sender;
  readonly quotas: Quotas;
  readonly mounts: readonly Mount[];
  /** Ends streams. */
  readonly stopping: AbortSignal;
}

export interface Platform {
  /** The methods of all services, those of mounted ones included. */
  readonly methods: MethodTable;
  /** All services under the names with which reflection and health show them. */
  readonly described: readonly DescService[];
  /** The routes of the issuer and of the container registry. */
  readonly webRoutes: WebRoutes;
  /** What describes the events of subscriptions. */
  readonly events: CloudEvents;
}

/**
 * Creates the services.
 *
 * @throws TypeError when a declaration of a service is wrong, or a mounted service is served already
 */
export async function createPlatform(deps: PlatformDeps): Promise<Platform> {
  const { settings, ids, onProblem, origin, storage, issuer, quotas, mounts, stopping } = deps;
  const { store, callStore, keys, masterKey, clock } = storage;
  const tokens = createPageTokens(keys.pageKeys, async (tx: Tx) => (await keys.at(tx)).pageKeys());
  const platformServices = [
    ...createPlatformServices({
      tokens,
      ids,
      seal: (tx, secret, context) => sealForStore(tx, masterKey, secret, context),
      rootCreation: settings.rootCreation,
      limits: settings.quotas,
      quotas,
      trustedIssuers: settings.trustedIssuers,
      baseUrl: origin.baseUrl,
      store: callStore,
      registry: createRegistry(deps),
      catalogGroup: settings.catalogGroup,
    }),
    ...issuer.services,
  ];
  const eventIds = createEventIds(await store.write(readEventIdKey));
  const events = createCloudEvents({
    methods: platformServices.flatMap(({ desc, published = desc }) => published.methods),
    baseUrl: origin.baseUrl,
    registryHost: settings.registryUrl === undefined ? settings.registryService : new URL(settings.registryUrl).host,
    formatId: eventIds.format,
  });
  // The streams of both services share the reader of the log and the limits.
  const shared = {
    ...{ store: callStore, clock, tokens, stopping, eventIds },
    eventFeed: createEventFeed({ store, onProblem }),
    streams: createEventStreams(),
    bodyReaders: findBodyReaders(platformServices, bodiesOfOthers),
  };
  const services = [
    ...platformServices,
    auditV1({ ...shared, keys }),
    eventsV1({ ...shared, events, sender: deps.eventSender }),
    sessionsV1({ tokens }),
    // It answers about the methods of the table that it is in.
    accessV1({ tokens, findMethod: (path) => methods.get(path), eventIds, clock, testClaims: issuer.testClaims }),
  ];
  const methods: MethodTable = addMounts(createMethodTable(services, buildRoomChecks(definitions, quotas)), mounts);
  return {
    methods,
    described: [...services.map(({ desc, published = desc }) => published), ...mounts.map(({ desc }) => desc)],
    webRoutes: [...issuer.routes, ...createRegistryRoutes(deps), ...createScimRoutes(deps)],
    events,
  };
}

function createRegistry({ settings, ids, origin, storage }: PlatformDeps) {
  const { registryUrl: url, registryService: service } = settings;
  if (url === undefined) return undefined;
  const { keys, clock } = storage;
  const token = createInternalTokens({ keys, clock, ids, issuer: origin.issuer, service });
  return createRegistryClient({ url, token });
}

function createScimRoutes({ ids, onProblem, origin, storage, quotas }: PlatformDeps): WebRoutes {
  const { callStore: store, clock } = storage;
  return scimRoutes({
    ...{ store, clock, ids, quotas, baseUrl: origin.baseUrl },
    onInternalError: (error, requestId) => onProblem(`the request ${requestId} of a directory failed`, error),
  });
}

function createRegistryRoutes(deps: PlatformDeps): WebRoutes {
  const { settings, ids, logger, origin, storage, issuer, failureNews: news } = deps;
  const { callStore: store, keys, clock } = storage;
  return [
    ...tokenRoutes({
      ...{ store, keys, ids, clock, authenticate: issuer.authenticate },
      exchanger: issuer.exchanger,
      service: settings.registryService,
      issuer: origin.issuer,
      baseUrl: origin.baseUrl,
      failures: createFailureThrottle(TOKEN_FAILURES, { news, kind: "registry" }),
      onToken: issuer.lastSeen.touch,
    }),
    ...notificationRoutes({
      ...{ store, ids, clock },
      secretFile: settings.registrySecretFile,
      onEvents: (counts) => logger.info(counts, "events of the registry"),
    }),
  ];
}
