// `arbor auth docker-credential`: the protocol of docker's credential helpers
// (github.com/docker/docker-credential-helpers). docker writes a request to standard input and reads the response from
// standard output. It starts the helper for every pull, so the helper loads only the modules that
// test/cli/remote/auth/docker-credential.test.ts lists.
import { text } from "node:stream/consumers";
import { Code, CommandError, reportError } from "../../errors.js";
import { parseJsonObject } from "../service.js";
import { getRegistryToken } from "./credentials.js";
import { findCredentialsFile, type Registry, readCredentials } from "./credentials-file.js";

/** The user name for a password that is an API token. */
const USERNAME = "_token";

/** With this response docker continues without credentials. */
const NONE = "credentials not found in native keychain";

const ADVICE = "run: arbor auth configure-docker";

/** The actions of the protocol. */
export const HELPER_ACTIONS = ["get", "store", "erase", "list", "version"] as const;

/** An action of the protocol. */
export type HelperAction = (typeof HELPER_ACTIONS)[number];

const withoutInput: readonly HelperAction[] = ["list", "version"];

/** Whether the protocol has an action of this name. */
export function isHelperAction(name: string): name is HelperAction {
  return HELPER_ACTIONS.some((action) => action === name);
}

/** Runs the helper without the parser of the command line, and returns the exit code. */
export async function runHelper(action: HelperAction): Promise<number> {
  try {
    await dockerCredentialCommand(action);
    return 0;
  } catch (error) {
    return reportError(error);
  }
}

/**
 * `arbor auth docker-credential`
 *
 * @throws CommandError after docker got the error as the response
 */
export async function dockerCredentialCommand(action: HelperAction): Promise<void> {
  const { stdin, stdout } = process;
  try {
    stdout.write(await respondToDocker(action, withoutInput.includes(action) ? "" : await text(stdin)));
  } catch (error) {
    const isNone = error instanceof CommandError && error.code === Code.Unauthenticated;
    stdout.write(`${isNone ? NONE : "arbor cannot answer; standard error says why"}\n`);
    throw error;
  }
}

/**
 * Handles a request of docker.
 *
 * @param input the server, or JSON with the credentials to store
 * @throws CommandError UNAUTHENTICATED without credentials for this server; FAILED_PRECONDITION for an action that needs
 * a store of passwords
 */
export async function respondToDocker(action: HelperAction, input: string): Promise<string> {
  if (action === "version") {
    const { VERSION } = await import("../../../kernel/version.js");
    return `docker-credential-arbor ${VERSION}\n`;
  }
  const { registries } = await readCredentials(findCredentialsFile());
  switch (action) {
    case "get": {
      const server = input.trim();
      const registry = registries.get(parseRegistryHost(server) ?? "");
      // Tokens are sent to configured registries only.
      if (registry === undefined)
        throw new CommandError(Code.Unauthenticated, `${server} is not configured; ${ADVICE}`);
      return `${JSON.stringify({ ServerURL: server, Username: USERNAME, Secret: await getToken(registry) })}\n`;
    }
    case "store":
      // `docker login` stores the credentials that it got from this helper.
      if (parseJsonObject(input).Username === USERNAME) return "";
      throw new CommandError(Code.FailedPrecondition, "arbor keeps no passwords; run: arbor auth login");
    case "erase":
      throw new CommandError(
        Code.FailedPrecondition,
        "docker uses the login of arbor; to end it run: arbor auth logout",
      );
    case "list":
      return `${JSON.stringify(Object.fromEntries([...registries.keys()].map((host) => [host, USERNAME])))}\n`;
  }
}

async function getToken({ api, workload }: Registry): Promise<string> {
  if (workload === undefined) return getRegistryToken(api);
  const [{ exchangeWorkloadToken }, { REGISTRY_CAPABILITIES }] = await Promise.all([
    import("./grants.js"),
    import("./registry-limit.js"),
  ]);
  return exchangeWorkloadToken(api, workload, api, REGISTRY_CAPABILITIES);
}

const HOST = /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(?::[1-9]\d{0,4})?$/;

/**
 * Parses the host of a registry from a host or a URL as docker gives it; undefined for anything else. The port is kept,
 * because another service may listen on another port, unless it is that of the scheme.
 */
export function parseRegistryHost(server: string): string | undefined {
  const [, scheme = "https", host = ""] = /^(?:(https?):\/\/)?([^/]*)/.exec(server.trim().toLowerCase()) ?? [];
  return HOST.test(host) ? host.replace(scheme === "https" ? /:443$/ : /:80$/, "") : undefined;
}
