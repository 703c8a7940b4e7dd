// The commands of `arbor auth`, and what they take.
import { Argument, type Command, Option } from "commander";
import { FORMATS } from "../../output/formats.js";
import { withCommon } from "../iam/commands.js";

/** Adds `auth` and the commands below it. */
export function addAuthCommands(arbor: Command): void {
  const auth = arbor.command("auth").description("log in, and use the login elsewhere");

  withApi(auth.command("login"))
    .description("log in with a browser, or as an identity with an OIDC token")
    .option("--headless", "with a browser on another machine")
    .option("--no-browser", "only print the address of the page")
    .option("--identity-provider <uid>", "uid of your organisation's login provider, or the organisation's name")
    .option("--connection <name>", "login provider of the service")
    .option("--invite-file <file>", "file with the code of an invite to accept, or - for standard input")
    .addOption(list("--scope <uid>", "limit the login to this group; repeatable"))
    .addOption(list("--cap <name>", "limit the login to this capability; repeatable"))
    .option("--identity <uid>", "the identity to assume")
    .option("--identity-token <file>", "file with the OIDC token to assume it with, read again for each renewal")
    .action(worded(async () => (await import("./login.js")).loginCommand));

  withApi(auth.command("token"))
    .description("print an API token")
    .option("--audience <url>", "what it is for; the service itself unless set")
    .action(worded(async () => (await import("./token.js")).tokenCommand));

  withApi(auth.command("status"))
    .description("show who is logged in")
    .addOption(new Option("-o, --output <format>", "the form of the answer").choices(FORMATS).default(FORMATS[0]))
    .action(worded(async () => (await import("./status.js")).statusCommand));

  withApi(auth.command("logout"))
    .description("forget the login on this machine")
    .action(worded(async () => (await import("./logout.js")).logoutCommand));

  withApi(auth.command("configure-docker"))
    .description("have docker use the login at a registry")
    .requiredOption("--registry <host>", "the registry, with its port where it has one")
    .option("--identity <uid>", "pull as this identity instead")
    .option("--identity-token <file>", "file with the OIDC token to assume it with")
    .option("--bin-dir <directory>", "where the helper goes that docker runs; ~/.local/bin unless set")
    .action(worded(async () => (await import("./configure-docker.js")).configureDockerCommand));

  const bindings = auth.command("bindings").description("your roles in groups, and those you have yet to accept");
  withCommon(bindings.command("list"))
    .description("list them, the pending ones first")
    .option("--pending", "only those that are pending")
    .action(worded(async () => (await import("./bindings.js")).listOwnBindings));
  withCommon(bindings.command("accept <uid>"))
    .description("accept one, and with it all that are pending in the same organization")
    .action(async (uid, given) => (await import("./bindings.js")).acceptOwnBinding(uid, given));
  withCommon(bindings.command("drop <uid>"))
    .description("give one up")
    .option("--yes", "do not ask whether to")
    .action(async (uid, given) => (await import("./bindings.js")).dropOwnBinding(uid, given));

  const pullToken = auth.command("pull-token").description("passwords for registries that live for weeks");
  withCommon(pullToken.command("create"))
    .description("make one, and print it this one time")
    .requiredOption("--group <uid>", "the group to pull from, with all below it")
    .option("--name <name>", "what to call it, behind pull-token-; random unless set")
    .option("--ttl <duration>", "how long it is valid, at most 8760h", "30d")
    .action(worded(async () => (await import("./pull-token.js")).createPullToken));
  withCommon(pullToken.command("list"))
    .description("list those there are")
    .option("--group <uid>", "only those at this group and below it")
    .action(worded(async () => (await import("./pull-token.js")).listPullTokens));
  withCommon(pullToken.command("revoke <uid>"))
    .description("end one for good")
    .action(async (uid, given) => (await import("./pull-token.js")).revokePullToken(uid, given));

  auth
    .command("docker-credential", { hidden: true })
    .description("answer docker")
    .addArgument(new Argument("<action>", "what docker asks for").choices(["get", "store", "erase", "list"]))
    .action(worded(async () => (await import("./docker-credential.js")).dockerCredentialCommand));
}

function withApi(command: Command): Command {
  return command.option("--api <url>", "where the service is; http://127.0.0.1:8080 unless set (ARBOR_API)");
}

// Kept in a list, as commander by itself would take the words behind a repeatable flag for its values.
function list(flags: string, description: string): Option {
  return new Option(flags, description).argParser<readonly string[]>((value, before = []) => [...before, value]);
}

// Loads what a command does when it is called, and words its errors for the terminal.
function worded<T>(load: () => Promise<(given: T) => Promise<void>>): (given: T) => Promise<void> {
  return async (given) => {
    try {
      await (await load())(given);
    } catch (error) {
      const { failureOf } = await import("../../output/failure.js");
      throw failureOf(error, false);
    }
  };
}
