// The flags that commands share.
import { type Command, Option } from "commander";

/** The formats of `--output`, the default first. */
const FORMATS = ["table", "json", "jsonl", "yaml"] as const;

/** A format of `--output`. */
export type Format = (typeof FORMATS)[number];

/** The flags of all commands that call methods. */
export interface CommonFlags {
  readonly output: Format;
  /** `--api`, which takes precedence over `ARBOR_API`. */
  readonly api?: string;
  /** `--token-file`, after `ARBOR_TOKEN` and before the login of `arbor auth login`. */
  readonly tokenFile?: string;
}

const COMMON = "Connection and output:";

/** Adds `--api`. */
export function addApiFlag(command: Command): Command {
  return command.addOption(createApiOption());
}

/** Adds the flags for the service to call, the token to call it with, and the format of the answer. */
export function addCommonFlags(command: Command): Command {
  return command
    .addOption(createOutputOption("format of the output").helpGroup(COMMON))
    .addOption(createApiOption().helpGroup(COMMON))
    .addOption(
      new Option(
        "--token-file <file>",
        "file with an API token, in place of `arbor auth login`; ARBOR_TOKEN takes precedence",
      ).helpGroup(COMMON),
    );
}

/** Creates the flag `--output`. */
export function createOutputOption(description: string): Option {
  return new Option("-o, --output <format>", description).choices(FORMATS).default(FORMATS[0]);
}

/**
 * Creates a flag that may be given more than once. With a variadic option, commander would take the words after it as
 * values too.
 */
export function createRepeatableOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser<readonly string[]>((value, before = []) => [...before, value]);
}

function createApiOption(): Option {
  return new Option("--api <url>", "URL of the service; http://127.0.0.1:8080 unless set (ARBOR_API)");
}
