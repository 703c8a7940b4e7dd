// Whether traces are on, by the standard variables of OpenTelemetry. The SDK reads all others itself
// (docs/observability.md#traces).

/** The variables of the process. */
export type Environment = Readonly<Record<string, string | undefined>>;

export interface TraceSettings {
  /** Whether `traceparent` and `tracestate` are read and sent. */
  readonly propagate: boolean;
}

const ENDPOINTS = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"] as const;
const PROTOCOLS = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] as const;

/**
 * Reads the variables that turn traces on and off. A value that is not supported is reported, and treated as the
 * specification says: as if the variable were not set.
 *
 * @param warn called with a text for the operator's log, which contains no value that may have a password
 * @returns undefined when traces are off
 */
export function readTraceSettings(env: Environment, warn: (problem: string) => void): TraceSettings | undefined {
  const read = (name: string) => env[name]?.trim() || undefined;
  const exporter = read("OTEL_TRACES_EXPORTER");
  const endpoint = ENDPOINTS.find((name) => read(name) !== undefined);
  if (exporter === undefined && endpoint === undefined) return undefined;
  if (isDisabled(read("OTEL_SDK_DISABLED"), warn) || exporter === "none") return undefined;
  if (exporter !== undefined && exporter !== "otlp") {
    warn(`OTEL_TRACES_EXPORTER must be otlp or none; ${quote(exporter)} is not supported`);
    if (endpoint === undefined) return undefined;
  }
  if (endpoint !== undefined && !isHttpUrl(read(endpoint))) {
    warn(`${endpoint} must be an http or https URL; traces are off`);
    return undefined;
  }
  for (const name of PROTOCOLS) {
    const protocol = read(name);
    if (protocol === undefined || protocol === "http/json") continue;
    warn(`${name} must be http/json; ${quote(protocol)} is not supported, and spans are sent as http/json`);
  }
  return { propagate: readPropagators(read("OTEL_PROPAGATORS"), warn) };
}

function isDisabled(value: string | undefined, warn: (problem: string) => void): boolean {
  const lower = value?.toLowerCase();
  if (lower !== undefined && lower !== "true" && lower !== "false") {
    warn(`OTEL_SDK_DISABLED must be true or false; ${quote(lower)} counts as false`);
  }
  return lower === "true";
}

// Baggage is not supported, and not reported, because it is in the default of all services.
function readPropagators(value: string | undefined, warn: (problem: string) => void): boolean {
  const names = (value ?? "tracecontext,baggage").split(",").map((name) => name.trim());
  for (const name of names) {
    if (!["tracecontext", "baggage", "none"].includes(name)) {
      warn(`OTEL_PROPAGATORS: ${quote(name)} is not supported; tracecontext and none are`);
    }
  }
  return names.includes("tracecontext") && !names.includes("none");
}

function isHttpUrl(value: string | undefined): boolean {
  return value !== undefined && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);
}

function quote(value: string): string {
  return JSON.stringify(value.slice(0, 40));
}
