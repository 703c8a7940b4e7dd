// Which service the client commands call, and as whom. A token is never an
// argument: arguments are seen by everybody on the machine and stay in the
// history of the shell.
import { type Connection, connectTo, staticToken, type TokenSource, tokenFile } from "../../client/index.js";
import { assertMayCarryToken, serviceUrl } from "../../client/secure-url.js";
import { invalidArgument } from "../../kernel/errors.js";
import { DEFAULT_API } from "./default-api.js";

/** The flags that say so. */
export interface ConnectionFlags {
  /** `--api`, before `ARBOR_API`. */
  readonly api?: string;
  /** `--token-file`, behind `ARBOR_TOKEN` and before what `arbor auth login` has stored. */
  readonly tokenFile?: string;
}

/** A connection, and whether it has credentials. */
export interface CommandConnection extends Connection {
  /** No token was found: calls are anonymous. */
  readonly anonymous: boolean;
}

/**
 * Prepares the connection of a command.
 *
 * @throws ApiError INVALID_ARGUMENT for an address that is none, that a token may not be sent to, or a
 * token that is none
 */
export async function connectionOf(flags: ConnectionFlags): Promise<CommandConnection> {
  const { name, api } = apiOf(flags);
  const token = await tokenOf(flags, api);
  return checked(name, () => {
    const url = serviceUrl(api, name);
    if (token !== undefined) assertMayCarryToken(url, name);
    const connection = connectTo({ baseUrl: api, ...(token !== undefined && { token }) });
    return { ...connection, anonymous: token === undefined };
  });
}

function apiOf({ api }: ConnectionFlags): { name: string; api: string } {
  if (api !== undefined) return { name: "--api", api };
  return { name: "ARBOR_API", api: process.env.ARBOR_API || DEFAULT_API };
}

async function tokenOf(flags: ConnectionFlags, api: string): Promise<TokenSource | undefined> {
  const given = process.env.ARBOR_TOKEN;
  if (given) return checked("ARBOR_TOKEN", () => staticToken(given.trim()));
  if (flags.tokenFile !== undefined) return tokenFile(flags.tokenFile);
  const { storedToken } = await import("./auth/credentials.js");
  return storedToken(api);
}

// The client throws TypeErrors, which a program may not expect to see; a person mistyped something.
function checked<T>(field: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (error instanceof TypeError) throw invalidArgument({ field, description: error.message });
    throw error;
  }
}
