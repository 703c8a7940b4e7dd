// The flags that commands share.
import { type Command, Option } from "commander";
import { invalidFlag } from "../errors.js";
import type { CreateFilter } from "../output/terminal.js";

/** The formats of `--output`, the default first. */
const FORMATS = ["table", "wide", "name", "csv", "json", "jsonl", "yaml"] as const;

/** A format of `--output`. */
export type Format = (typeof FORMATS)[number];

/** Whether a format is a table, for people. */
export function isTable(format: Format): format is "table" | "wide" {
  return format === "table" || format === "wide";
}

/** Whether a format has columns. */
export function hasColumns(format: Format): boolean {
  return isTable(format) || format === "csv";
}

/** The flags of all commands that call methods. */
export interface CommonFlags {
  readonly output: Format;
  /** `--jq`, an expression for the JSON of the response. */
  readonly jq?: string;
  /** `--api`, which takes precedence over `ARBOR_API`. */
  readonly api?: string;
  /** `--token-file`, after `ARBOR_TOKEN` and before the login of `arbor auth login`. */
  readonly tokenFile?: string;
}

/** The group of these flags in the help. */
export const COMMON = "Connection and output:";

/** Adds `--api`. */
export function addApiFlag(command: Command): Command {
  return command.addOption(createApiOption());
}

/** Adds the flags for the service to call, the token to call it with, and the format of the response. */
export function addCommonFlags(command: Command): Command {
  return addConnectionFlags(addOutputFlags(command));
}

/** Adds the format of the output, and `--jq`. */
export function addOutputFlags(command: Command): Command {
  return addJqFlag(command.addOption(createOutputOption().helpGroup(COMMON)));
}

/** Creates what `--jq` does to the output; undefined without it. */
export function createOutputFilter({ jq, output }: Pick<CommonFlags, "jq" | "output">): CreateFilter | undefined {
  if (jq === undefined) return undefined;
  return async (print) => (await import("../output/jq.js")).createJqFilter(jq, output === "jsonl", print);
}

/** Adds `--jq` to a command with `--output`, whose format is then JSON. */
export function addJqFlag(command: Command): Command {
  const option = new Option(
    "-q, --jq <expression>",
    "print what this expression of jq makes of the JSON; with -o jsonl, of each line of it",
  );
  return command.addOption(option.helpGroup(COMMON)).hook("preAction", (_, called) => {
    const { jq, output } = called.opts();
    if (jq === undefined) return;
    if (called.getOptionValueSource("output") !== "cli") called.setOptionValue("output", "json");
    else if (output !== "json" && output !== "jsonl") {
      throw invalidFlag("--jq", `goes with -o json and -o jsonl, not with -o ${output}`);
    }
  });
}

/** Adds the flags for the service to call, and the token to call it with. */
export function addConnectionFlags(command: Command): Command {
  return command
    .addOption(createApiOption().helpGroup(COMMON))
    .addOption(
      new Option(
        "--token-file <file>",
        "file with an API token, in place of `arbor auth login`; ARBOR_TOKEN takes precedence",
      ).helpGroup(COMMON),
    );
}

function createOutputOption(): Option {
  return new Option("-o, --output <format>", "format of the output").choices(FORMATS).default(FORMATS[0]);
}

/**
 * Creates a flag that may be given more than once. With a variadic option, commander would take the words after it as
 * values too.
 */
export function createRepeatableOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser<readonly string[]>((value, before = []) => [...before, value]);
}

/** The former name of a flag: it still works, and no help shows it. */
export class FormerFlag extends Option {
  readonly #now: Option;

  constructor(flags: string, now: Option) {
    super(flags);
    this.#now = now;
    if (now.parseArg !== undefined && !this.isBoolean()) this.parseArg = now.parseArg;
    this.hideHelp();
  }

  override attributeName(): string {
    return this.#now.attributeName();
  }
}

/** The formats of a command that prints a table or a text, or JSON for programs. */
export type JsonFormats = readonly [plain: "table" | "text", forPrograms: "json" | "jsonl"];

export const TEXT_OR_JSON: JsonFormats = ["text", "json"];
export const TEXT_OR_LINES: JsonFormats = ["text", "jsonl"];

/** An `-o` whose value is whether to print JSON. */
class JsonOutput extends Option {
  constructor(formats: JsonFormats) {
    super("-o, --output <format>", "format of the output");
    const [plain, forPrograms] = formats;
    this.choices(formats).default(false, plain);
    const check = this.parseArg;
    this.argParser((text: string, before: unknown) => check?.(text, before) === forPrograms);
  }

  override attributeName(): string {
    return "json";
  }
}

/**
 * Adds `-o` of a list that has no other members than its rows, and its former name `--json`.
 *
 * @param without formats that it does not have
 */
export function addListOutput(command: Command, ...without: readonly Format[]): Command {
  const formats = FORMATS.filter((format) => !["json", "yaml", ...without].includes(format));
  const output = new Option("-o, --output <format>", "format of the output").choices(formats).default(FORMATS[0]);
  return command.addOption(output).addOption(new FormerFlag("--json", output).preset("jsonl"));
}

/** Adds `-o` of these formats, and its former name `--json`. */
export function addJsonOutput(command: Command, formats: JsonFormats): Command {
  const output = new JsonOutput(formats);
  return command.addOption(output).addOption(new FormerFlag("--json", output));
}

/**
 * Adds `--yes` to a command that does what cannot be undone. Where nobody can be asked it fails without `--yes`, before it
 * does anything; otherwise the command asks when it knows what about.
 *
 * @param isIrreversible whether it is with these flags; always unless given
 */
export function addConfirmation(
  command: Command,
  isIrreversible: (flags: Readonly<Record<string, unknown>>) => boolean = () => true,
): Command {
  return command.option("--yes", "do not ask for confirmation").hook("preAction", async (_, called) => {
    const flags = called.opts();
    if (flags.yes === true || !isIrreversible(flags)) return;
    (await import("../output/confirm.js")).requireTerminal();
  });
}

/** Creates `--columns`. */
export function createColumnsOption(): Option {
  return new Option(
    "--columns <names>",
    "the columns of the table or of CSV, comma-separated: fields such as name or createTime",
  );
}

/** Adds `--filter`, which sets the flags of these names. */
export function addFilterFlag(command: Command, names: readonly string[]): Command {
  return command
    .addOption(createRepeatableOption("--filter <name=value>", `the same as --name value, for: ${names.join(", ")}`))
    .hook("preAction", async (_, called) => {
      const { filter, ...given } = called.opts();
      if (filter === undefined) return;
      const { readFilters } = await import("./iam/filters.js");
      const flags = called.options.filter((flag) => names.includes(flag.name()));
      for (const [name, value] of Object.entries(readFilters(flags, filter, given))) called.setOptionValue(name, value);
    });
}

function createApiOption(): Option {
  return new Option("--api <url>", "URL of the service; http://127.0.0.1:8080 unless set (ARBOR_API)");
}

// The times of `--since` and `--until`.

/** The flags. Each is a time, or how long ago. */
export interface TimeFlags {
  readonly since?: string;
  readonly until?: string;
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Parses both flags into epoch milliseconds, the end exclusive.
 *
 * @throws CommandError INVALID_ARGUMENT for an invalid time, and for a range that ends before it begins
 */
export function parseTimeRange({ since, until }: TimeFlags): { readonly startMs?: number; readonly endMs?: number } {
  const nowMs = Date.now();
  const startMs = since === undefined ? undefined : parseTime("--since", since, nowMs);
  const endMs = until === undefined ? undefined : parseTime("--until", until, nowMs);
  if (startMs !== undefined && endMs !== undefined && endMs <= startMs) {
    throw invalidFlag("--until", "must be after --since");
  }
  return { ...(startMs !== undefined && { startMs }), ...(endMs !== undefined && { endMs }) };
}

/**
 * Parses a time, or how long until then, into epoch milliseconds.
 *
 * @throws CommandError INVALID_ARGUMENT
 */
export function parseExpiry(flag: string, value: string): number {
  return parseTime(flag, value, Date.now(), 1);
}

/**
 * Parses a duration such as `24h` into milliseconds.
 *
 * @throws CommandError INVALID_ARGUMENT
 */
export function parseDuration(flag: string, value: string): number {
  const ms = findDuration(value);
  if (ms === undefined) throw invalidFlag(flag, "must be a duration such as 30m, 24h or 7d");
  return ms;
}

function findDuration(value: string): number | undefined {
  const [, count, unit = ""] = /^(\d{1,6})([smhd])$/.exec(value) ?? [];
  return count === undefined ? undefined : Number(count) * (unitMs[unit] ?? 0);
}

function parseTime(flag: string, value: string, nowMs: number, direction: 1 | -1 = -1): number {
  const duration = findDuration(value);
  if (duration !== undefined) return Math.max(0, nowMs + direction * duration);
  const ms = /^\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d))?$/.test(value) ? Date.parse(value) : Number.NaN;
  if (ms >= 0) return ms;
  throw invalidFlag(flag, "must be a time such as 2026-01-31T12:00:00Z, or a duration such as 24h");
}
