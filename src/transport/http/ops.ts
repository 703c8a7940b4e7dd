import type { HttpResponse } from "./http-message.js";
import { sendJson } from "./send.js";

/** The routes for operators. */
export interface Ops {
  /** The paths, after which logs and metrics name the routes. */
  readonly paths: readonly string[];
  /** Answers if `path` is one of them; false if it is not. */
  handle(method: string, path: string, res: HttpResponse): boolean;
}

/** The paths of {@link createOps}. */
export const OPS_PATHS = ["/healthz", "/readyz"] as const;

/**
 * Creates `/healthz` (the process runs) and `/readyz` (it can serve: `ready` resolves and it is not
 * `draining`). It answers 200 as well while only writes fail, and says so. Both are open to everybody and say nothing else.
 */
export function createOps(ready: () => Promise<unknown>, draining: () => boolean): Ops {
  async function answerReady(res: HttpResponse): Promise<void> {
    if (draining()) return sendJson(res, 503, '{"status":"draining"}');
    let status: unknown;
    try {
      status = await ready();
    } catch {
      return sendJson(res, 503, '{"status":"unavailable"}');
    }
    sendJson(res, 200, status === "read-only" ? READ_ONLY : OK);
  }

  return {
    paths: OPS_PATHS,
    handle(method, path, res) {
      if (path !== "/healthz" && path !== "/readyz") return false;
      if (method !== "GET" && method !== "HEAD")
        sendJson(res, 405, '{"status":"method not allowed"}', { allow: "GET, HEAD" });
      else if (path === "/healthz") sendJson(res, 200, OK);
      else void answerReady(res);
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

const READ_ONLY = '{"status":"read-only"}';
const OK = '{"status":"ok"}';
