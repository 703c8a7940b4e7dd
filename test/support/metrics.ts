// Reads metrics in the text format of Prometheus.
import { LIMIT_MS } from "./wait-until.js";

/** A sample: the name of the series, its labels and its value. */
export interface ParsedSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Metrics as text, read. */
export interface ParsedMetrics {
  /** The types of the families by their names. */
  readonly types: ReadonlyMap<string, string>;
  readonly samples: readonly ParsedSample[];
  /** The sum of all samples of a series that have these labels; undefined where there is none. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number | undefined;
}

/** Parses metrics. @throws Error naming a line that is none */
export function parseMetrics(text: string): ParsedMetrics {
  const types = new Map<string, string>();
  const samples: ParsedSample[] = [];
  for (const line of text.split("\n")) {
    const type = /^# TYPE (\S+) (\S+)$/.exec(line);
    if (type !== null) types.set(type[1] ?? "", type[2] ?? "");
    if (line === "" || line.startsWith("#")) continue;
    const match = /^([a-z0-9_]+)(?:\{(.*)\})? (\S+)$/i.exec(line);
    if (match === null) throw new Error(`no sample: ${line}`);
    const labels = [...(match[2] ?? "").matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"(?:,|$)/g)];
    const value = match[3] === "+Inf" ? Number.POSITIVE_INFINITY : Number(match[3]);
    samples.push({
      name: match[1] ?? "",
      labels: Object.fromEntries(labels.map(([, key, text]) => [key, text])),
      value,
    });
  }
  return {
    types,
    samples,
    sum(name, labels = {}) {
      const found = samples.filter(
        (sample) =>
          sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
      );
      return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
    },
  };
}

/** Scrapes a server. */
export async function scrape(url: string | undefined): Promise<ParsedMetrics> {
  const response = await fetch(url ?? "", { signal: AbortSignal.timeout(LIMIT_MS) });
  if (response.status !== 200) throw new Error(`the scrape was answered with ${response.status}`);
  return parseMetrics(await response.text());
}

/** The names of the metrics of the service and of Node in a text, such as queries, without the suffixes of histograms. */
export function metricNamesIn(text: string): Set<string> {
  const names = [...text.matchAll(/\b(?:arbor|nodejs|process)_[a-z0-9_]+/g)].map(([name]) => name);
  return new Set(names.map((name) => name.replace(/_(bucket|sum|count)$/, "")));
}
