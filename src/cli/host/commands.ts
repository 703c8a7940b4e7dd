// The commands on the host and their flags. Their modules load the service, so each is imported when its command is
// called.
import { type Command, Option } from "commander";
import {
  type Resolution,
  resolveWithSources,
  type SettingName,
  type Settings,
  type Sources,
  settingNames,
} from "../../config/config.js";
import { describeFlags } from "../../config/describe.js";
import { findOtherVariables, replacedSettings } from "../../config/names.js";
import type { Setting } from "../../config/setting-types.js";
import { flagOf, settings } from "../../config/settings.js";
import { type AuditOnHost, addAuditCommands } from "../remote/audit/commands.js";
import {
  addConfirmation,
  addJsonOutput,
  addListOutput,
  FormerFlag,
  type JsonFormats,
  TEXT_OR_JSON,
  TEXT_OR_LINES,
} from "../remote/flags.js";
import type { HostCommands } from "../top-commands.js";

/** The settings with which a command opens the database. */
const databaseSettings: readonly SettingName[] = [
  "data",
  "databaseUrl",
  "databaseUrlFile",
  "databasePooler",
  "databaseDirectUrl",
  "databaseDirectUrlFile",
  "databasePoolSize",
  "databaseTlsMode",
  "databaseTlsCa",
  "databaseTlsCert",
  "databaseTlsKey",
  "masterKeyFile",
];

/** The settings with which a command opens the installation. */
const hostSettings: readonly SettingName[] = [
  ...databaseSettings,
  "listen",
  "baseUrl",
  "issuer",
  "tlsCert",
  "tlsKey",
  "migrate",
];

/** The commands by the first words of their names. */
export const hostCommands: HostCommands = {
  ...{ serve: addServe, bootstrap: addBootstrap, config: addConfigCommands, migrate: addMigrate, check: addCheck },
  ...{ copy: addCopy, backup: addBackup, restore: addRestore, admin: addAdmin, demo: addDemo },
  audit: (audit) => addAuditCommands(audit, auditOnHost),
  "advisories import": addAdvisoriesImport,
  "registry configure": addRegistryConfigure,
  "registry sync": addRegistrySync,
  "registry move": addRegistryMove,
};

function addServe(serve: Command): void {
  addSettings(serve, settingNames);
  for (const key of Object.keys(replacedSettings)) serve.addOption(new Option(`${flagOf(key)} <value>`).hideHelp());
  restrictFiles(serve).action(async (options) => {
    const { serve } = await import("./serve.js");
    await serve(readResolution(options, { checkFiles: true }).settings, findOtherVariables(process.env).ignored);
  });
}

function addBootstrap(bootstrap: Command): void {
  restrictFiles(addSettings(bootstrap, hostSettings, TEXT_OR_JSON))
    .requiredOption("--org <name>", "name of the organisation")
    .option("--owner-issuer <url>", "issuer of the login provider that knows the owner")
    .option("--owner-subject <subject>", "the owner's subject at that issuer")
    .option(
      "--owner-email <address>",
      "the owner's e-mail address: who signs in with it within 7 days becomes an owner, if the login provider has confirmed it",
    )
    .option(
      "--write <new-file>",
      "write all that is printed, with the token, to a new file of mode 0600, and print no token",
    )
    .action(async (options) => (await import("./bootstrap.js")).bootstrapCommand(readSettings(options), options));
}

function addMigrate(migrate: Command): void {
  restrictFiles(addSettings(migrate, databaseSettings))
    .option("--expand", "add what this version needs; servers of the version before can run meanwhile")
    .option("--contract", "remove what only older versions need, when none of them runs")
    .option("--dry-run", "print what a phase would run, and change nothing")
    .option("--force", "contract although servers of an older version seem to use the database")
    .option("--vacuum", "make a SQLite file smaller afterwards; servers cannot write meanwhile")
    .action(async (options) => (await import("./migrate.js")).migrateCommand(readSettings(options), options));
}

function addCheck(check: Command): void {
  addSettings(check, [...databaseSettings, "quotas"], TEXT_OR_LINES)
    .option("--repair", "rebuild derived data with faults; no server may run")
    .option("--progress", "show progress on standard error, even if that is not a terminal")
    .action(async (options) => (await import("./check.js")).checkCommand(readSettings(options), options));
}

function addCopy(copy: Command): void {
  addSettings(copy, databaseSettings, TEXT_OR_LINES)
    .option("--to <target>", "an empty data directory, or the URL of an empty database (ARBOR_COPY_TO)")
    .option("--to-url-file <file>", "file that contains the URL to copy to, which may have a password; mode 0600")
    .option("--verify", "compare with --to without writing")
    .option("--progress", "show progress on standard error, even if that is not a terminal")
    .action(async (options) => {
      const { copyCommand, readTarget } = await import("./copy.js");
      const target = readTarget(options, process.env);
      const { settings } = readResolution(options, { targetUrl: target.url });
      await copyCommand(settings, target, options);
    });
}

function addAdmin(admin: Command): void {
  addSettings(admin.command("token").description("print an API token for an identity"), hostSettings)
    .requiredOption("--identity <uid-or-name>", "the identity that calls with the token")
    .option("--ttl <duration>", "how long it is valid, at most 1h", "1h")
    .option("--audience <url>", "audience of the token; the base URL unless set")
    .action(async (options) => (await import("./host.js")).tokenCommand(readSettings(options), options));
  addSettings(admin.command("bind").description("grant an identity a role in a group"), hostSettings, TEXT_OR_JSON)
    .requiredOption("--identity <uid-or-name>", "the identity")
    .requiredOption("--role <uid-or-name>", "the role")
    .requiredOption("--group <uid-or-name>", "the group")
    .option("--internal", "the role is an operator role")
    .action(async (options) => (await import("./host.js")).bindCommand(readSettings(options), options));
  addConfirmation(addSettings(admin.command("unbind <uid>").description("delete a role binding"), hostSettings)).action(
    async (uid, options) => (await import("./host.js")).unbindCommand(readSettings(options), uid, options),
  );
  addMemberCommands(admin);
  addRoleCommands(admin);
  addSettings(
    admin
      .command("groups")
      .alias("group")
      .description("verify organisations, on the host")
      .command("verify <uid>")
      .description("confirm that a root group is the organisation that its name says"),
    hostSettings,
  )
    .option("--kind <kind>", "kind of the organisation, such as ORG_KIND_CUSTOMER")
    .option("--keep-uid-pulls", "keep pulls by its uid in the registry until `arbor registry move` has run")
    .option(
      "--reuse-registry-name",
      "allow the name of a deleted organisation; delete the images of that organisation first",
    )
    .action(async (uid, options) => (await import("./host.js")).verifyCommand(readSettings(options), uid, options));
  const quotas = admin.command("quotas").alias("quota").description("quotas of an organisation, on the host");
  addOrganisation(
    addListOutput(
      addSettings(quotas.command("list").description("print the usage and the limits of an organisation"), [
        ...hostSettings,
        "quotas",
      ]),
    ),
  ).action(async (options) => (await import("./admin.js")).quotaListCommand(readSettings(options), options));
  const setQuotas = addSettings(
    quotas
      .command("set <quota=limit...>")
      .description("set limits for an organisation, such as repos=500; repos=default removes a limit"),
    hostSettings,
  );
  addOrganisation(setQuotas).action(async (limits, options) =>
    (await import("./admin.js")).quotaSetCommand(readSettings(options), limits, options),
  );
  const keys = admin.command("keys").description("keys of the installation, on the host");
  addSettings(keys.command("rotate").description("create a new key"), hostSettings, TEXT_OR_JSON)
    .addOption(
      new Option("--purpose <purpose>", "what the key is for")
        .choices(["api-token", "page-token", "audit", "registry"])
        .makeOptionMandatory(),
    )
    .action(async (options) => (await import("./keys.js")).rotateCommand(readSettings(options), options));
  const revokeKey = addSettings(
    keys.command("revoke <kid>").description("revoke a key of API tokens, and so all tokens that it has signed"),
    [...hostSettings, "jwksMaxAge"],
  );
  addConfirmation(revokeKey).action(async (kid, options) =>
    (await import("./keys.js")).revokeCommand(readSettings(options), kid, options),
  );
  addListOutput(addSettings(keys.command("list").description("print the keys, the newest first"), hostSettings)).action(
    async (options) => (await import("./keys.js")).listCommand(readSettings(options), options),
  );

  const masterKey = admin.command("master-key").description("the key that encrypts secrets at rest, on the host");
  addSettings(
    masterKey.command("rotate").description("create a new key and encrypt everything again, while servers run"),
    hostSettings,
  )
    .option("--shared-file", "with PostgreSQL: all nodes read this same file")
    .action(async (options) => (await import("./master-key.js")).rotateCommand(readSettings(options), options));
  const retire = addSettings(
    masterKey
      .command("retire")
      .description("remove old keys from the file after everything was encrypted with the new one"),
    hostSettings,
  );
  addConfirmation(retire).action(async (options) =>
    (await import("./master-key.js")).retireCommand(readSettings(options), options),
  );

  const jobs = admin.command("jobs").description("background jobs of the servers, on the host");
  addListOutput(
    addSettings(jobs.command("list").description("print each job with its leader and its last run"), hostSettings),
  ).action(async (options) => (await import("./admin.js")).jobListCommand(readSettings(options), options));
}

function addAdvisoriesImport(importing: Command): void {
  addSettings(importing.argument("<paths...>", "files and directories of OSV records"), hostSettings)
    .requiredOption("--group <uid-or-name>", "the group that the advisories belong to")
    .option("--progress", "show progress on standard error, even if that is not a terminal")
    .action(async (paths, options) =>
      (await import("./import-advisories.js")).importCommand(readSettings(options), paths, options),
    );
}

function addRegistryConfigure(configure: Command): void {
  addSettings(configure, [...hostSettings, "registryService", "registrySecretFile"])
    .requiredOption("--out <directory>", "where to write it")
    .option("--mounted-at <path>", "path of that directory for the registry; the same path unless set")
    .action(async (options) =>
      (await import("./registry/configure.js")).configureCommand(readSettings(options), options),
    );
}

function addRegistrySync(sync: Command): void {
  addSettings(sync, [...hostSettings, "registryUrl", "registryService"])
    .option("--allow-mass-removal", "remove tags even if more than half of all tags would be removed")
    .option("--progress", "show progress on standard error, even if that is not a terminal")
    .action(async (options) => (await import("./registry/content.js")).syncCommand(readSettings(options), options));
}

function addRegistryMove(move: Command): void {
  addSettings(move, [...hostSettings, "registryUrl", "registryService"]);
  addConfirmation(move, ({ deleteOld }) => deleteOld === true)
    .option("--delete-old", "then delete the images under the uids, after a confirmation")
    .option("--skip-broken", "continue although some images cannot be copied, because the registry lacks parts of them")
    .option("--progress", "show progress on standard error, even if that is not a terminal")
    .action(async (options) => (await import("./registry/content.js")).moveCommand(readSettings(options), options));
}

function addDemo(demo: Command): void {
  demo
    .option("--data <directory>", "directory of the demo; unless set, a directory that is removed when the demo ends")
    .option("--listen <host:port>", "address to listen on: 127.0.0.1 or localhost", "127.0.0.1:8080")
    .option("--no-open", "do not open the console in a browser")
    .action(async (options) => (await import("./demo/demo.js")).demoCommand(options));
}

function addBackup(backup: Command): void {
  addSettings(backup.argument("<directory>", "where to write it; it must not exist"), databaseSettings, TEXT_OR_JSON)
    .option("--with-master-key", "copy the file of the master key as well; the backup then contains all secrets")
    .option("--progress", "show progress on standard error, even if that is not a terminal")
    .action(async (directory, options) =>
      (await import("./backup.js")).backupCommand(readSettings(options), directory, options),
    );
}

function addRestore(restore: Command): void {
  addSettings(restore.argument("<directory>", "the backup"), databaseSettings)
    .option(
      "--keep-sessions",
      "keep the tokens and logins of the backup valid, including those that were revoked since",
    )
    .option("--progress", "show progress on standard error, even if that is not a terminal")
    .action(async (directory, options) =>
      (await import("./backup.js")).restoreCommand(readSettings(options), directory, options),
    );
}

function addConfigCommands(config: Command): void {
  addSettings(config.command("print").description("print every setting and where it comes from"), settingNames, [
    "table",
    "json",
  ]).action(async (options) =>
    (await import("./config.js")).configPrintCommand(readResolution(options), { json: options.json === true }),
  );
  addSettings(config.command("check").description("check the settings and the files they name"), settingNames).action(
    async (options) => {
      readResolution(options, { checkFiles: true });
      await (await import("./config.js")).configCheckCommand();
    },
  );
  config
    .command("schema")
    .description("print the JSON schema of the file that --config names")
    .action(async () => (await import("./config.js")).configSchemaCommand());
}

const auditOnHost: AuditOnHost = {
  addFlags: (command, orgHelp) => {
    const org = new Option("--org <uid-or-name>", orgHelp);
    return addSettings(command, hostSettings).addOption(org).addOption(new FormerFlag("--root <uid>", org));
  },
  list: async (flags) => {
    const { pageSize, output } = flags;
    await (await import("./audit.js")).auditListCommand(readSettings(flags), { ...flags, pageSize, output });
  },
  tail: async (flags) => {
    const { output } = flags;
    await (await import("./audit.js")).auditTailCommand(readSettings(flags), { ...flags, output });
  },
  verify: async (flags) => (await import("./audit.js")).auditVerifyCommand(readSettings(flags), flags),
  export: async (flags, command) => {
    const { org } = flags;
    // The text of commander for a required option.
    if (org === undefined) command.error("error: required option '--org <uid-or-name>' not specified");
    await (await import("./audit.js")).auditExportCommand(readSettings(flags), { org });
  },
};

/** Adds the organisation that a command needs. */
function addOrganisation(command: Command): Command {
  const org = new Option("--org <uid-or-name>", "the organisation").makeOptionMandatory();
  return command.addOption(org).addOption(new FormerFlag("--group <uid>", org));
}

function addMemberCommands(admin: Command): void {
  const addPage = (command: Command) =>
    addListOutput(addSettings(command, hostSettings))
      .option("--page-size <rows>", "how many rows at most, 1 to 1000", "50")
      .option("--page-token <uid>", "continue after this uid", "");
  const organisations = admin.command("organisations").description("the organisations, on the host");
  addPage(organisations.command("list").description("print the organisations and their owners")).action(
    async (options) => (await import("./members.js")).organisationListCommand(readSettings(options), options),
  );
  const identities = admin.command("identities").alias("identity").description("identities, on the host");
  addPage(identities.command("list").description("print the identities of an organisation, and those with roles in it"))
    .requiredOption("--org <uid-or-name>", "the organisation")
    .action(async (options) => (await import("./members.js")).identityListCommand(readSettings(options), options));
  const revoke = identities.command("revoke <uid>").description("invalidate all tokens and logins of an identity");
  addConfirmation(addSettings(revoke, hostSettings)).action(async (uid, options) =>
    (await import("./host.js")).revokeCommand(readSettings(options), uid, options),
  );
}

function addRoleCommands(admin: Command): void {
  const roles = admin
    .command("roles")
    .alias("role")
    .description("operator roles, which organisations cannot create, on the host");
  addSettings(
    roles.command("create").description("create an operator role and print its uid"),
    hostSettings,
    TEXT_OR_JSON,
  )
    .requiredOption(
      "--capability <names>",
      "what it allows, such as repo.update,repo.internal.admin; can be given more than once",
      (text: string, before: readonly string[] = []) => [...before, ...text.split(",")],
    )
    .option("--name <name>", "the name that is shown on its bindings", "operator")
    .option("--description <text>", "what it is for", "")
    .action(async (options) => (await import("./admin.js")).roleCreateCommand(readSettings(options), options));
  addListOutput(
    addSettings(
      roles.command("list").description("print the operator roles and how often each is bound"),
      hostSettings,
    ),
  ).action(async (options) => (await import("./admin.js")).roleListCommand(readSettings(options), options));
  const remove = roles.command("delete <uid>").description("delete an operator role that is not bound");
  addConfirmation(addSettings(remove, hostSettings)).action(async (uid, options) =>
    (await import("./admin.js")).roleDeleteCommand(readSettings(options), uid, options),
  );
}

function addSettings(command: Command, names: readonly SettingName[], formats?: JsonFormats): Command {
  for (const { flags, help } of names.flatMap((name) => describeFlags(name)))
    command.addOption(new Option(flags, help).helpGroup("Settings:"));
  for (const name of names) {
    const { formerName }: Setting<unknown> = settings[name];
    if (formerName !== undefined) command.addOption(new Option(`${flagOf(formerName)} <value>`).hideHelp());
  }
  const config = new Option("--config <file>", "JSON file of settings (ARBOR_CONFIG)");
  command.addOption(config.helpGroup("Settings:")).exitOverride();
  return formats === undefined ? command : addJsonOutput(command, formats);
}

// Files that a command creates in an installation are readable by its user only.
function restrictFiles(command: Command): Command {
  return command.hook("preAction", () => {
    process.umask(0o077);
  });
}

type Flags = Readonly<Record<string, string | boolean | undefined>>;

function readSettings(options: Flags): Settings {
  return readResolution(options).settings;
}

function readResolution(options: Flags, checks: Pick<Sources, "checkFiles" | "targetUrl"> = {}): Resolution {
  const { config, ...flags } = options;
  const file = typeof config === "string" ? config : process.env.ARBOR_CONFIG;
  return resolveWithSources({ flags, env: process.env, ...checks, ...(file && { file }) });
}
