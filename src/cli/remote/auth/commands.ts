// The commands of `arbor auth` and their flags. What a command does is in a file that is loaded when it is called, so the
// help loads this file alone.
import { Argument, type Command } from "commander";
import {
  addApiFlag,
  addCommonFlags,
  addConfirmation,
  addFilterFlag,
  addOutputFlags,
  createColumnsOption,
  createRepeatableOption,
} from "../flags.js";
import { setMethods } from "../methods.js";
import type { HelperAction } from "./docker-credential.js";

/** Fills `login`. */
export function addLogin(login: Command): void {
  setMethods(
    login,
    "chainguard.platform.oidc.SecurityTokenService/Exchange",
    "chainguard.platform.auth.Auth/GetHeadlessSession",
  );
  addApiFlag(login)
    .option("--headless", "log in with a browser on another machine")
    .option("--no-browser", "only print the address of the page")
    .option("--identity-provider <uid>", "uid of your organisation's login provider, or the organisation's name")
    .option("--connection <name>", "login provider of the service")
    .option("--invite-file <file>", "file with the code of an invite to accept, or - for standard input")
    .addOption(
      createRepeatableOption(
        "--scope <group>",
        "limit the login to the group with this uid, or a verified organisation; repeatable",
      ),
    )
    .addOption(createRepeatableOption("--cap <name>", "limit the login to this capability; repeatable"))
    .option("--identity <uid-or-name>", "uid of the identity to assume; also its name, while somebody is logged in")
    .option("--identity-token <file>", "file with the OIDC token to assume it with, read again for each renewal")
    .action(async (flags) => (await import("./login.js")).loginCommand(flags));
}

/** Fills `status`. */
export function addStatus(status: Command): void {
  addOutputFlags(addApiFlag(setMethods(status, "chainguard.platform.auth.Auth/Validate"))).action(async (flags) =>
    (await import("./status.js")).statusCommand(flags),
  );
}

/** Fills `logout`. */
export function addLogout(logout: Command): void {
  addApiFlag(logout).action(async (flags) => (await import("./credentials.js")).logoutCommand(flags));
}

/** Fills `auth`. */
export function addAuthCommands(auth: Command): void {
  addLogin(auth.command("login").description("the same as `arbor login`"));

  addApiFlag(setMethods(auth.command("token"), "chainguard.platform.oidc.SecurityTokenService/ExchangeRefreshToken"))
    .description("print an API token")
    .option("--audience <names>", "audiences, comma-separated; the service itself unless set")
    .action(async (flags) => (await import("./credentials.js")).tokenCommand(flags));

  addStatus(auth.command("status").description("the same as `arbor status`"));
  addLogout(auth.command("logout").description("the same as `arbor logout`"));

  addApiFlag(auth.command("configure-docker"))
    .description("make docker use the login at a registry")
    .requiredOption("--registry <host>", "the registry, with its port if it has one")
    .option(
      "--identity <uid-or-name>",
      "pull as this identity instead: its uid, or its name while somebody is logged in",
    )
    .option("--identity-token <file>", "file with the OIDC token to assume it with")
    .option("--bin-dir <directory>", "directory of the helper that docker runs; ~/.local/bin unless set")
    .action(async (flags) => (await import("./configure-docker.js")).configureDockerCommand(flags));

  const bindings = auth.command("bindings").description("your roles in groups, and pending ones");
  const listBindings = setMethods(bindings.command("list"), "arbor.bindings.v1.BindingsService/ListBindings")
    .description("list your roles in groups, pending ones first")
    .option("--pending", "only pending ones")
    .option("--no-pending", "only those that are not pending");
  addCommonFlags(addFilterFlag(listBindings, ["pending"]).addOption(createColumnsOption())).action(async (flags) =>
    (await import("./bindings.js")).listOwnBindings(flags),
  );
  addCommonFlags(setMethods(bindings.command("accept <uid>"), "arbor.bindings.v1.BindingsService/AcceptBinding"))
    .description("accept a pending role and all others in the same organisation")
    .action(async (uid, flags) => (await import("./bindings.js")).acceptOwnBinding(uid, flags));
  const drop = setMethods(bindings.command("drop <uid>"), "arbor.bindings.v1.BindingsService/DropBinding");
  addCommonFlags(addConfirmation(drop))
    .description("drop a role")
    .action(async (uid, flags) => (await import("./bindings.js")).dropOwnBinding(uid, flags));

  const sessions = auth.command("sessions").description("your logins, on this machine and on others");
  const listSessions = addCommonFlags(sessions.command("list").addOption(createColumnsOption()))
    .description("list your logins that have a refresh token, the newest first")
    .action(async (flags) => (await import("./sessions.js")).listOwnSessions(flags));
  setMethods(listSessions, "arbor.sessions.v1.SessionsService/ListSessions");
  const revokeSession = addCommonFlags(addConfirmation(sessions.command("revoke <id>")))
    .description("end a login")
    .action(async (id, flags) => (await import("./sessions.js")).revokeOwnSession(id, flags));
  setMethods(revokeSession, "arbor.sessions.v1.SessionsService/RevokeSession");

  const pullTokens = auth
    .command("pull-tokens")
    .alias("pull-token")
    .description("long-lived passwords for container registries");
  addCommonFlags(pullTokens.command("create"))
    .description("create a pull token and print it once")
    .requiredOption("--group <uid-or-name>", "the group to pull from, with its descendants")
    .option("--name <name>", "its name after the prefix pull-token-; random unless set")
    .option("--ttl <duration>", "how long it is valid, at most 8760h", "30d")
    .action(async (flags) => (await import("./pull-token.js")).createPullToken(flags));
  const listTokens = pullTokens
    .command("list")
    .option("--group <uid-or-name>", "only those of this group and its descendants");
  addCommonFlags(addFilterFlag(listTokens, ["group"]).addOption(createColumnsOption()))
    .description("list pull tokens")
    .action(async (flags) => (await import("./pull-token.js")).listPullTokens(flags));
  addCommonFlags(addConfirmation(pullTokens.command("revoke <uid>")))
    .description("revoke a pull token")
    .action(async (uid, flags) => (await import("./pull-token.js")).revokePullToken(uid, flags));

  // Not HELPER_ACTIONS, whose module would be loaded for all commands of auth.
  auth
    .command("docker-credential", { hidden: true })
    .description("handle a request of docker")
    .addArgument(
      new Argument("<action>", "the action that docker requests").choices([
        "get",
        "store",
        "erase",
        "list",
        "version",
      ] satisfies HelperAction[]),
    )
    .action(async (action) => (await import("./docker-credential.js")).dockerCredentialCommand(action));
}
