// A token in a file that another program renews, as container platforms do with the tokens of workloads.
import { readFile } from "node:fs/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { isBearerToken, type TokenSource } from "./token-source.js";

/** How often the file is read, in milliseconds. */
const REREAD_MS = 1_000;

/** The options of {@link tokenFile}. */
export interface TokenFileOptions {
  /** Tells the time in epoch milliseconds. */
  readonly clock?: () => number;
}

/**
 * The token in a file, without white space around it. A change takes effect within a second, or at once
 * when the service rejects the token. While the file cannot be read, for example during its replacement, the last token
 * stays in use. Its `token` also serves as `upstream` of `exchangedToken`.
 *
 * Calls fail with UNAUTHENTICATED until the file has contained a token.
 */
export function tokenFile(path: string, options: TokenFileOptions = {}): TokenSource {
  const { clock = Date.now } = options;
  let current: string | undefined;
  let readAtMs = 0;
  let reading: Promise<string> | undefined;

  const read = () => {
    reading ??= readToken(path, current).then(
      (token) => {
        reading = undefined;
        readAtMs = clock();
        current = token;
        return token;
      },
      (error) => {
        reading = undefined;
        throw error;
      },
    );
    return reading;
  };
  return {
    token: () => (current !== undefined && Math.abs(clock() - readAtMs) < REREAD_MS ? current : read()),
    renew: read,
  };
}

async function readToken(path: string, last: string | undefined): Promise<string> {
  let cause: unknown;
  try {
    const token = (await readFile(path, "utf8")).trim();
    if (isBearerToken(token)) return token;
  } catch (error) {
    cause = error;
  }
  if (last !== undefined) return last;
  throw new ConnectError(`no token in the file ${path}`, Code.Unauthenticated, undefined, undefined, cause);
}
