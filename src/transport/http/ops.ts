import type { HttpResponse } from "./http-message.js";
import { sendJson } from "./send.js";

/** The routes for operators. */
export interface Ops {
  /** The paths, after which logs and metrics name the routes. One that ends in `/*` stands for all below it. */
  readonly paths: readonly string[];
  /** Answers if `path` is one of them; false if it is not. */
  handle(method: string, path: string, res: HttpResponse): boolean;
}

/** The paths of {@link createOps}. */
export const OPS_PATHS = ["/healthz", "/readyz"] as const;

/** What a health check is answered: an HTTP status and a body of JSON. */
export interface HealthAnswer {
  readonly status: number;
  readonly body: string;
}

/** Answers a health check of one of {@link OPS_PATHS}; undefined for every other path. Never rejects. */
export type CheckHealth = (path: string) => Promise<HealthAnswer> | undefined;

/**
 * Creates the checks `/healthz` (the process runs) and `/readyz` (it can serve: `ready` resolves and it is not `draining`).
 * `/readyz` is 200 as well while only writes fail, and says so.
 */
export function createHealthCheck(ready: () => Promise<unknown>, draining: () => boolean): CheckHealth {
  async function checkReady(): Promise<HealthAnswer> {
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

/** Creates the routes of the health checks, which are open to everybody. */
export function createOps(checkHealth: CheckHealth): Ops {
  return {
    paths: OPS_PATHS,
    handle(method, path, res) {
      if (path !== "/healthz" && path !== "/readyz") return false;
      if (method !== "GET" && method !== "HEAD")
        sendJson(res, 405, '{"status":"method not allowed"}', { allow: "GET, HEAD" });
      else void checkHealth(path)?.then(({ status, body }) => sendJson(res, status, body));
      return true;
    },
  };
}

/** Routes that are asked one after the other until one answers. */
export function firstOf(all: readonly Ops[]): Ops {
  return {
    paths: all.flatMap(({ paths }) => paths),
    handle: (method, path, res) => all.some((ops) => ops.handle(method, path, res)),
  };
}

const READ_ONLY: HealthAnswer = { status: 200, body: '{"status":"read-only"}' };
const OK: HealthAnswer = { status: 200, body: '{"status":"ok"}' };
