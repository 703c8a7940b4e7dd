// Asks a service for its health ten times a second, on connections of its own, as a load balancer does.
import { get } from "node:http";

const EVERY_MS = 100;
const TIMEOUT_MS = 2_000;
const PATHS: readonly string[] = ["/healthz", "/readyz"];

/** What the checks got. */
export interface HealthReport {
  readonly answered: number;
  /** Without a response of 200 in two seconds. */
  readonly failed: number;
  readonly slowestMs: number;
}

/**
 * Begins to ask.
 *
 * @param paths what to ask for in turn, and how often, in milliseconds
 */
export function watchHealth(url: string, paths = PATHS, everyMs = EVERY_MS): { stop(): HealthReport } {
  let answered = 0;
  let failed = 0;
  let slowestMs = 0;
  let asked = 0;
  const timer = setInterval(() => {
    const startMs = performance.now();
    let isOver = false;
    const finish = (status: number | undefined) => {
      if (isOver) return;
      isOver = true;
      slowestMs = Math.max(slowestMs, performance.now() - startMs);
      if (status === 200) answered++;
      else failed++;
    };
    const path = paths[asked++ % paths.length];
    const req = get(`${url}${path}`, { agent: false, timeout: TIMEOUT_MS }, (res) => {
      res.resume();
      finish(res.statusCode);
    });
    req.on("timeout", () => req.destroy());
    req.on("error", () => finish(undefined));
  }, everyMs);
  return {
    stop() {
      clearInterval(timer);
      return { answered, failed, slowestMs };
    },
  };
}
