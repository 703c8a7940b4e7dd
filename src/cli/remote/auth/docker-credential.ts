// `arbor auth docker-credential`: the protocol that docker speaks with programs
// that know credentials (github.com/docker/docker-credential-helpers). A request
// comes on standard input; answers, and what went wrong, go to standard output.
import { text } from "node:stream/consumers";
import { Code, ConnectError } from "@connectrpc/connect";
import { jsonObject } from "./claims.js";
import { storedToken } from "./credentials.js";
import { credentialsFile, type Registry, readCredentials } from "./credentials-file.js";
import { failure, notLoggedIn } from "./failure.js";
import { workloadToken } from "./grants.js";
import { registryHost } from "./registry-host.js";

/** The user name that says that the password is an API token. */
const USERNAME = "_token";

/** By these words docker knows that it may go on without credentials. */
const NONE = "credentials not found in native keychain";

const ADVICE = "run: arbor auth configure-docker";

/** What docker may ask for. */
export type HelperAction = "get" | "store" | "erase" | "list";

/**
 * `arbor auth docker-credential`, which docker runs.
 *
 * @throws what went wrong, after telling docker
 */
export async function dockerCredentialCommand(action: HelperAction): Promise<void> {
  const { stdin, stdout } = process;
  try {
    stdout.write(await answerDocker(action, action === "list" ? "" : await text(stdin)));
  } catch (error) {
    const isNone = error instanceof ConnectError && error.code === Code.Unauthenticated;
    stdout.write(`${isNone ? NONE : "arbor cannot answer; standard error says why"}\n`);
    throw error;
  }
}

/**
 * The answer to one request of docker.
 *
 * @param input what docker writes: the server, or as JSON what to store
 * @throws ConnectError UNAUTHENTICATED when there is nothing for this server, FAILED_PRECONDITION for
 * what a helper without passwords of its own cannot do
 */
export async function answerDocker(action: HelperAction, input: string): Promise<string> {
  const { registries } = await readCredentials(credentialsFile());
  switch (action) {
    case "get": {
      const server = input.trim();
      const registry = registries.get(registryHost(server) ?? "");
      // No token ever goes to a registry that nobody named.
      if (registry === undefined) throw failure(Code.Unauthenticated, `${server} is not configured; ${ADVICE}`);
      return `${JSON.stringify({ ServerURL: server, Username: USERNAME, Secret: await tokenOf(registry) })}\n`;
    }
    case "store":
      // `docker login` gives back what it got from us.
      if (jsonObject(input).Username === USERNAME) return "";
      throw failure(Code.FailedPrecondition, "arbor keeps no passwords; run: arbor auth login");
    case "erase":
      throw failure(Code.FailedPrecondition, "docker uses the login of arbor; to end it run: arbor auth logout");
    case "list":
      return `${JSON.stringify(Object.fromEntries([...registries.keys()].map((host) => [host, USERNAME])))}\n`;
  }
}

async function tokenOf({ api, workload }: Registry): Promise<string> {
  if (workload) return workloadToken(api, workload, api);
  const source = await storedToken(api);
  if (source === undefined) throw notLoggedIn(api);
  return source.token();
}
