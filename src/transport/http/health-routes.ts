import type { Request } from "./request.js";
import { sendJson } from "./send.js";

/** Routes with fixed paths, such as those of health checks and documentation. */
export interface RouteGroup {
  /** The paths; logs and metrics name the routes after them. One that ends in `/*` stands for all below it. */
  readonly paths: readonly string[];
  /** Answers if `path` is one of the paths; false if it is not. */
  handle(request: Request, path: string): boolean;
}

/** The paths of {@link createHealthRoutes}. */
export const HEALTH_PATHS = ["/healthz", "/readyz"] as const;

/** The response to a health check: an HTTP status and a JSON body. */
export interface HealthResponse {
  readonly status: number;
  readonly body: string;
}

/** Answers a health check of one of {@link HEALTH_PATHS}; undefined for every other path. Never rejects. */
export type CheckHealth = (path: string) => Promise<HealthResponse> | undefined;

/**
 * Creates the checks `/healthz`, which is 200 while the process runs, and `/readyz`, which is 200 while `ready`
 * resolves and the service is not `draining`. While only writes fail, its body says `read-only`.
 */
export function createHealthCheck(ready: () => Promise<unknown>, draining: () => boolean): CheckHealth {
  async function checkReady(): Promise<HealthResponse> {
    if (draining()) return { status: 503, body: '{"status":"draining"}' };
    try {
      return (await ready()) === "read-only" ? READ_ONLY : OK;
    } catch {
      return { status: 503, body: '{"status":"unavailable"}' };
    }
  }

  return (path) => {
    if (path === "/healthz") return Promise.resolve(OK);
    return path === "/readyz" ? checkReady() : undefined;
  };
}

/** Creates the routes of the health checks, which need no authentication. */
export function createHealthRoutes(checkHealth: CheckHealth): RouteGroup {
  return {
    paths: HEALTH_PATHS,
    handle(request, path) {
      if (path !== "/healthz" && path !== "/readyz") return false;
      const { method } = request;
      if (method !== "GET" && method !== "HEAD")
        sendJson(request, 405, '{"status":"method not allowed"}', { allow: "GET, HEAD" });
      else void checkHealth(path)?.then(({ status, body }) => sendJson(request, status, body));
      return true;
    },
  };
}

/** Combines groups of routes; the first one with the path answers. */
export function combineRoutes(all: readonly RouteGroup[]): RouteGroup {
  return {
    paths: all.flatMap(({ paths }) => paths),
    handle: (request, path) => all.some((group) => group.handle(request, path)),
  };
}

const READ_ONLY: HealthResponse = { status: 200, body: '{"status":"read-only"}' };
const OK: HealthResponse = { status: 200, body: '{"status":"ok"}' };
