// The token that a command was given, where it is from, and why the service may have refused it.
import { ConnectError } from "@connectrpc/connect";
import { staticToken, type TokenSource, tokenFile } from "../../client/index.js";
import { CommandError } from "../errors.js";
import { checkFlagFile } from "../flag-file.js";
import type { CommonFlags } from "./flags.js";
import { asFlagError, fetchIssuer } from "./service.js";

/** Where a token is from. */
export type Credential = "ARBOR_TOKEN" | "--token-file" | "login";

/** The token of a command, and what to do when the service rejects it. */
export interface GivenToken {
  /** Absent where no token was given: calls are anonymous. */
  readonly token?: TokenSource | undefined;
  /** Where it is from. */
  readonly credential?: Credential;
  /** What it is in, where the user has put it there. */
  readonly place?: string;
  readonly remedy: string;
}

/** Finds the token in the order of docs/cli.md: the variable, the flag, the stored login. Without any, calls are anonymous. */
export async function findToken(flags: Pick<CommonFlags, "tokenFile">, api: string): Promise<GivenToken> {
  const login = `arbor auth login --api ${api}`;
  const given = process.env.ARBOR_TOKEN;
  if (given) {
    const token = asFlagError("ARBOR_TOKEN", () => staticToken(given.trim()));
    const remedy = `set ARBOR_TOKEN to a new token, or unset it and run: ${login}`;
    return { token, credential: "ARBOR_TOKEN", place: "ARBOR_TOKEN", remedy };
  }
  const { tokenFile: path } = flags;
  if (path !== undefined) {
    await checkFlagFile("--token-file", path);
    const remedy = `write a new token to ${path}, or without --token-file run: ${login}`;
    return { token: tokenFile(path), credential: "--token-file", place: path, remedy };
  }
  const { findStoredToken } = await import("./auth/credentials.js");
  const stored = await findStoredToken(api);
  if (stored !== undefined) {
    return { token: withConnectErrors(stored), credential: "login", remedy: `log in again: ${login}` };
  }
  return { remedy: `run: ${login}; or set ARBOR_TOKEN to an API token` };
}

// The client repeats only the text of a ConnectError, because that of other errors may contain a token.
function withConnectErrors({ token, renew }: TokenSource): TokenSource {
  const convert = async (get: () => string | Promise<string>) => {
    try {
      return await get();
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      throw new ConnectError(error.message, error.code, undefined, undefined, error);
    }
  };
  return { token: () => convert(token), ...(renew && { renew: (rejected) => convert(() => renew(rejected)) }) };
}

/**
 * Explains why the service may have refused a token: what the token says of itself, and what to do. Stored logins are
 * renewed, so nothing is wrong with their tokens.
 *
 * @param text the error of the service
 */
export async function explainRefusal(given: GivenToken, api: string, text: string): Promise<readonly string[]> {
  const { token, place, remedy } = given;
  if (token === undefined || place === undefined) return [remedy];
  // A file without a token is the error already.
  const value = await Promise.resolve(token.token()).catch(() => undefined);
  if (value === undefined) return [remedy];
  const { describeToken } = await import("./auth/describe-token.js");
  const issuer = await fetchIssuer(api).catch(() => undefined);
  // The service names the reason where it has verified the signature, as for a token that has expired by its own clock.
  const isVerified = !text.endsWith("a valid bearer token is required");
  const use = { audience: api, isUpstream: false, isVerified, ...(issuer !== undefined && { issuer }) };
  return [...describeToken(value, use, Date.now()).map((fault) => `${place} ${fault}`), remedy];
}
