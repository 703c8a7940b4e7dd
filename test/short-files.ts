// Why some files of src have fewer lines than architecture.test.ts asks for: others are fragments of their neighbours.

const lazy = "loaded only by its command, or by the service once it needs it";
const shared = "a type or a function that folders share which may not import each other";
/** The files of src that may be short, each with the reason. */
export const shortFiles: Readonly<Record<string, string>> = {
  "src/app/definitions.ts": "the list of all kinds, which grows with them",
  "src/cli/host/config.ts": lazy,
  "src/cli/host/serve.ts": lazy,
  "src/cli/output/audit-log.ts": "printed by commands on the host and over the network, which load different modules",
  "src/cli/remote/registry/commands.ts": lazy,
  "src/cli/young-generation.ts": "called before the service is loaded, and again once it runs",
  "src/client/error-details.ts": "what callers read of errors, and calls to know when to retry",
  "src/client/index.ts": "the entry of the client package",
  "src/codec/base64.ts": "read by several codecs",
  "src/config/command-variables.ts": "apart from the table of settings, which takes clients time to load",
  "src/kernel/capability-set.ts": shared,
  "src/kernel/histogram.ts": shared,
  "src/kernel/principal.ts": shared,
  "src/kernel/re2.ts": shared,
  "src/kernel/reject-reason.ts": "the closed list of reasons; errors.ts would be too long with it",
  "src/kernel/seal.ts": shared,
  "src/kernel/time.ts": shared,
  "src/kernel/version.ts": shared,
  "src/main.ts": "the entry of the command",
  "src/pipeline/mount-options.ts": "types of the entry for programs, which would import in a circle otherwise",
  "src/pipeline/resource/delete.ts": "the deletion of resources of all kinds",
  "src/pipeline/unit-of-work.ts": "what the three ways to call a method share",
  "src/registry/settings/settings-v1.ts": "a kind of resource",
  "src/store/migrate/data-migrations.ts": "the list of migrations, which grows with them",
  "src/store/migrate/order-index/layout.ts": "a migration, which is never changed",
  "src/store/schema-sqlite.ts": "read by the generator of migrations, beside schema-pg.ts",
  "src/store/sqlite-driver.ts": "deleted once Node 20 is no longer supported",
  "src/store/tables/columns-sqlite.ts": "its types are those of all tables, which schema-sqlite.ts imports",
  "src/telemetry/metrics/process-metrics.ts": "the metrics of the process alone",
  "src/telemetry/tracing.ts": lazy,
  "src/transport/openapi/security.ts": "a part of the document with its own rules",
  "src/transport/rpc/web-text.ts": "an encoding of gRPC-Web alone",
};
