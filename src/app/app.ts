// The composition root: the only file that sees everything.
import { readFileSync } from "node:fs";
import type { ConnectError } from "@connectrpc/connect";
import type { Logger } from "pino";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import { SecurityTokenService } from "#gen/chainguard/platform/oidc/oidc_pb.js";
import { Health } from "#gen/health/v1/health_pb.js";
import { createSealer } from "../audit/sealer.js";
import type { Settings } from "../config/config.js";
import { originOf } from "../config/origin.js";
import { createAcceptances } from "../iam/people/acceptances.js";
import { createIssuer, type Issuer } from "../issuer/issuer.js";
import type { Clock } from "../kernel/clock.js";
import { type Ids, randomIds } from "../kernel/ids.js";
import { createPageTokens } from "../kernel/page-token.js";
import { createAuthenticate } from "../pipeline/auth/authenticate.js";
import type { Call } from "../pipeline/call.js";
import { createInvoke } from "../pipeline/invoke.js";
import { createInvokeStream } from "../pipeline/invoke-stream.js";
import { createMethodTable } from "../pipeline/method-table.js";
import { createProve } from "../pipeline/prove.js";
import { createQuotas } from "../pipeline/quotas.js";
import { buildRoomChecks } from "../pipeline/resource/quota.js";
import { notificationRoutes } from "../registry/oci/notification-routes.js";
import { createRegistryClient } from "../registry/oci/registry-client.js";
import { createInternalTokens } from "../registry/oci/registry-token.js";
import { tokenRoutes } from "../registry/oci/token-routes.js";
import { createLogger } from "../telemetry/logger.js";
import { defaultLimits, type Limits } from "../transport/http/limits.js";
import { createDocs } from "../transport/openapi/docs.js";
import { createGateway } from "../transport/rest/gateway.js";
import { createHealth } from "../transport/rpc/health.js";
import { createReflection } from "../transport/rpc/reflection.js";
import { createServer } from "../transport/server.js";
import { openApiJson } from "./api-document.js";
import { definitions } from "./definitions.js";
import { type Installation, openInstallation } from "./installation.js";
import { platformServices } from "./services.js";

/** A running service. */
export interface App {
  /** Where it listens. */
  readonly url: string;
  readonly installation: Installation;
  /** Stops accepting, lets calls in flight finish, and closes the store. */
  stop(): Promise<void>;
  /**
   * Stops because of an error of which nobody knows what it left behind: no unit of work begins from the
   * moment of the call, and calls whose work is committed get their answer.
   *
   * @param drainMs how long calls in flight may take to end, in milliseconds
   */
  abandon(drainMs: number): Promise<void>;
}

/** What tests replace. */
export interface AppOptions {
  readonly settings: Settings;
  readonly clock?: Clock;
  readonly ids?: Ids;
  readonly logger?: Logger;
}

/**
 * Opens the installation and serves it.
 *
 * @throws Error when it cannot be opened, the address is taken, or the protos do not fit together.
 */
export async function startApp(options: AppOptions): Promise<App> {
  const { settings, ids = randomIds } = options;
  const logger = options.logger ?? createLogger(settings.logLevel);
  const installation = await openInstallation({
    settings,
    exclusive: true,
    ...(options.clock && { clock: options.clock }),
  });
  const { store, keys, masterKey, clock } = installation;
  let issuer: Issuer | undefined;
  try {
    const policy = { ...originOf(settings) };
    const onProblem = (problem: string, err?: unknown) => logger.error({ err }, problem);
    const quotas = createQuotas(settings.quotas);
    const started = createIssuer({
      settings,
      store,
      keys,
      masterKey,
      clock,
      ids,
      origin: () => policy,
      quotas,
      onNews: (news) => logger.info(news, "a key moved on"),
      onProblem,
      onRedirectNotice: ({ message, ...named }) => logger.warn(named, message),
    });
    issuer = started;
    const registry =
      settings.registryUrl === undefined
        ? undefined
        : createRegistryClient({
            url: settings.registryUrl,
            token: createInternalTokens({
              keys,
              clock,
              ids,
              issuer: () => policy.issuer,
              service: settings.registryService,
            }),
          });
    const services = [
      ...platformServices({
        tokens: createPageTokens(keys.pageKeys),
        ids,
        seal: masterKey.seal,
        rootCreation: settings.rootCreation,
        limits: settings.quotas,
        trustedIssuers: settings.trustedIssuers,
        store,
        registry,
      }),
      ...issuer.services,
    ];
    const methods = createMethodTable(services, buildRoomChecks(definitions, quotas));
    const ready = () => store.check();
    const described = services.map(({ desc, published = desc }) => published);
    const { errorDomain } = policy;
    const onInternalError = (error: ConnectError, call: Call | undefined) => {
      logger.error({ err: error.cause ?? error, method: call?.method.name, requestId: call?.requestId }, "call failed");
    };
    const authenticate = createAuthenticate({ keys, policy, clock });
    const { exchanger, lastSeen } = issuer;
    const registryRoutes = [
      ...tokenRoutes({
        store,
        keys,
        ids,
        clock,
        authenticate,
        exchanger,
        service: settings.registryService,
        issuer: () => policy.issuer,
        baseUrl: () => policy.baseUrl,
        onToken: lastSeen.touch,
      }),
      ...notificationRoutes({
        secretFile: settings.registrySecretFile,
        store,
        clock,
        ids,
        onEvents: (counts) => logger.info(counts, "events of the registry"),
      }),
    ];
    const acceptances = createAcceptances({ store, clock, ids, onProblem });
    const onPendingUsed = acceptances.note;
    const pipeline = { store, clock, authenticate, errorDomain, onInternalError, onPendingUsed };
    const invoke = createInvoke(pipeline);
    const invokeStream = createInvokeStream(pipeline);
    const prove = createProve(authenticate);
    const gateway = createGateway({
      methods: methods.values(),
      invoke,
      prove,
      invokeStream,
      clock,
      errorDomain,
      strictBody: settings.strictBody,
      // Clients of other versions send parameters of their own there, and expect none to be refused.
      allowUnknownQuery: ({ desc }) => desc.parent === SecurityTokenService || desc === Auth.method.getHeadlessSession,
      proxies: settings.trustedProxies,
      onInternalError,
    });
    const stopping = new AbortController();
    let address = settings.listen;
    const server = createServer({
      methods,
      invoke,
      prove,
      invokeStream,
      limits: limitsOf(settings),
      gateway,
      clock,
      errorDomain,
      listen: settings.listen,
      tls: tlsOf(settings),
      behindProxy: settings.behindProxy,
      proxies: settings.trustedProxies,
      ready,
      extraRoutes: [createDocs(() => openApiJson(gateway.routes, originOf(settings, address).baseUrl))],
      webRoutes: [...issuer.routes, ...registryRoutes],
      extraServices: [
        createHealth({
          services: described.map(({ typeName }) => typeName),
          ready,
          stopping: stopping.signal,
          errorDomain,
        }),
        ...createReflection([...described, Health]),
      ],
      logger,
      accessLog: settings.accessLog,
      corsOrigins: settings.corsOrigins,
    });
    const listening = await server.start();
    address = listening;
    // With port 0 the address, and so the name of the issuer, is known only now.
    const origin = originOf(settings, { ...settings.listen, port: listening.port });
    Object.assign(policy, origin);
    const stated = { baseUrl: origin.baseUrl, issuer: origin.issuer };
    await store.write((tx) => tx.settings.put("origin", JSON.stringify(stated)));
    issuer.start();
    const sealer = createSealer({ store, keys, clock, holder: randomIds.newId(), onProblem });
    sealer.start();
    const scheme = settings.tlsCert === undefined ? "http" : "https";
    const host = listening.host.includes(":") ? `[${listening.host}]` : listening.host;
    const stop = async (drainMs?: number) => {
      stopping.abort();
      await server.stop(drainMs);
      await started.stop();
      await acceptances.stop();
      await sealer.stop();
      await installation.close();
    };
    return {
      url: `${scheme}://${host}:${listening.port}`,
      installation,
      stop: () => stop(),
      abandon(drainMs) {
        installation.refuseWork();
        return stop(drainMs);
      },
    };
  } catch (error) {
    await issuer?.stop();
    await installation.close();
    throw error;
  }
}

function limitsOf({ requestBuffer, answerBuffer }: Settings): Limits {
  return { ...defaultLimits, requestBufferBytes: requestBuffer, answerBufferBytes: answerBuffer };
}

function tlsOf({ tlsCert, tlsKey }: Settings) {
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  return { cert: readFileSync(tlsCert), key: readFileSync(tlsKey) };
}
