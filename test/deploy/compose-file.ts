// Reads a compose file as `docker compose` does, as far as deploy/compose uses it.
import { readFileSync } from "node:fs";
import { parse } from "yaml";

/** A service of a compose file. */
export interface ComposeService {
  readonly image: string;
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly secrets?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly restart?: string;
  readonly user?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly stop_grace_period?: string;
}

/** A compose file. */
export interface ComposeFile {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly volumes: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
  readonly networks: { readonly default: { readonly ipam: { readonly config: readonly { gateway: string }[] } } };
}

/**
 * Parses a compose file.
 *
 * @param env the variables of the shell
 * @throws Error when a variable that must be given is not
 */
export function readComposeFile(path: string, env: Readonly<Record<string, string>>): ComposeFile {
  return interpolate(parse(readFileSync(path, "utf8"), { merge: true }), env) as ComposeFile;
}

// Values alone, after the YAML is parsed: a comment may name variables.
function interpolate(value: unknown, env: Readonly<Record<string, string>>): unknown {
  if (typeof value === "string") return interpolateText(value, env);
  if (Array.isArray(value)) return value.map((element) => interpolate(element, env));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, element]) => [key, interpolate(element, env)]));
}

function interpolateText(text: string, env: Readonly<Record<string, string>>): string {
  return text.replace(
    /\$(?:\$|\{(\w+)(?:(:[-?])([^}]*))?\})/g,
    (whole, name: string, operator: string, word: string) => {
      if (whole === "$$") return "$";
      const given = env[name] ?? "";
      if (given !== "" || operator === undefined) return given;
      if (operator === ":-") return word;
      throw new Error(`required variable ${name} is missing a value: ${word}`);
    },
  );
}
