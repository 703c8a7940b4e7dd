// The settings of the data: where it is, and how PostgreSQL is reached.
import { parseMasterKey } from "../kernel/files.js";
import { checkAuthorities, checkCertificate, checkPrivateKey } from "./pem.js";
import { file, flag, integer, oneOf, text } from "./setting-types.js";

const URL_PATTERN = "(?:postgres(?:ql)?://|socket:|/)\\P{Cc}*";

/** The rows of the table of settings about the data. */
export const dataSettings = {
  data: text({
    help: "directory with the SQLite database and the master key",
    placeholder: "directory",
    range: "a path",
    pattern: "[\\s\\S]+",
    default: "./data",
    see: "operations.md#data-and-durability",
    since: "0.1.0",
  }),
  databaseUrl: text({
    help: "PostgreSQL database to use instead of SQLite, such as postgres://user:password@host:5432/arbor",
    placeholder: "url",
    range: "a postgres:// URL",
    pattern: URL_PATTERN,
    unset: "SQLite",
    secret: true,
    see: "operations.md#postgresql",
    since: "0.1.0",
  }),
  databaseUrlFile: file({
    help: "file that contains the database URL, so that its password does not appear in process lists; mode 0600",
    unset: "none",
    contentOf: "databaseUrl",
    isPrivate: true,
    see: "operations.md#postgresql",
    since: "0.6.0",
  }),
  databasePooler: oneOf(["none", "transaction"], {
    help: "transaction if the database URL leads to a pooler in transaction mode, such as PgBouncer",
    default: "none",
    see: "operations.md#poolers",
    since: "1.4.0",
  }),
  databaseDirectUrl: text({
    help: "URL of the same database without the pooler, for the start, migrations, and commands that read the whole database",
    placeholder: "url",
    range: "a postgres:// URL",
    pattern: URL_PATTERN,
    unset: "none",
    secret: true,
    see: "operations.md#poolers",
    since: "1.4.0",
  }),
  databaseDirectUrlFile: file({
    help: "file that contains this URL; mode 0600",
    unset: "none",
    contentOf: "databaseDirectUrl",
    isPrivate: true,
    see: "operations.md#poolers",
    since: "1.4.0",
  }),
  databasePoolSize: integer({
    help: "maximum number of connections to PostgreSQL, for all workers together",
    placeholder: "number",
    min: 2,
    max: 1_000,
    unset: "2 for each core, from 10 to 20",
    see: "operations.md#postgresql",
    since: "1.4.0",
  }),
  databaseTlsMode: oneOf(["disable", "require", "verify-ca", "verify-full"], {
    help: "TLS mode of connections to PostgreSQL, as sslmode of libpq; do not set sslmode in the URL as well",
    unset: "what the URL says",
    see: "operations.md#postgresql",
    since: "0.6.0",
  }),
  databaseTlsCa: file({
    help: "certificate authorities that PostgreSQL may use, in PEM",
    unset: "those of Node",
    checkContent: checkAuthorities,
    since: "0.6.0",
  }),
  databaseTlsCert: file({
    help: "client certificate of this service for PostgreSQL, in PEM",
    unset: "none",
    checkContent: checkCertificate,
    since: "0.6.0",
  }),
  databaseTlsKey: file({
    help: "private key of that certificate, in PEM; mode 0600",
    unset: "none",
    checkContent: checkPrivateKey,
    isPrivate: true,
    since: "0.6.0",
  }),
  masterKeyFile: file({
    help: "file with the key that encrypts secrets at rest; required with PostgreSQL",
    unset: "<data>/master.key",
    checkContent: (content) => void parseMasterKey(content.toString()),
    isPrivate: true,
    see: "operations.md#keys",
    since: "0.1.0",
  }),
  create: flag({
    help: "whether `arbor serve` creates an installation if none exists; otherwise only `arbor bootstrap` does",
    default: "true",
    see: "operations.md#data-and-durability",
    since: "0.11.0",
  }),
  migrate: flag({
    help: "whether a SQLite database of an older version is migrated at the start",
    default: "true",
    see: "upgrade.md",
    since: "0.5.0",
  }),
} as const;
