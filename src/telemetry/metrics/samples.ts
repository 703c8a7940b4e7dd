import type { Histogram } from "../../kernel/histogram.js";
import type { FamilyName } from "./families.js";

/** The text formats: that of Prometheus, version 0.0.4, and OpenMetrics 1.0. */
export type TextFormat = "prometheus" | "openmetrics";

export type Labels = Readonly<Record<string, string>>;

/** One value of a family, as prom-client renders it. */
export interface Sample {
  readonly value: number;
  readonly labels: Labels;
  /** The name of the series, if it is not that of the family, such as that of a bucket. */
  readonly metricName?: string;
}

/** A family with all its values. */
export interface FamilySamples {
  readonly name: string;
  readonly help: string;
  /** Such as `counter`. */
  readonly type: string;
  readonly values: readonly Sample[];
}

/** Reads the values of a family at a scrape, lazily if there are many. */
export type Collect = () => Iterable<Sample>;

/** A family and the function that reads its values. */
export interface Source {
  readonly name: FamilyName;
  readonly collect: Collect;
}

const NO_LABELS: Labels = {};

/** Creates the source of one value, which is read at each scrape; without a sample if it is undefined. */
export function readValue(name: FamilyName, read: () => number | undefined): Source {
  return {
    name,
    collect() {
      const value = read();
      return value === undefined ? [] : [{ value, labels: NO_LABELS }];
    },
  };
}

/** Creates the source of a value for each value of one label; without samples if they are undefined. */
export function readValues(
  name: FamilyName,
  label: string,
  read: () => Readonly<Record<string, number>> | undefined,
): Source {
  return {
    name,
    collect: () => Object.entries(read() ?? {}).map(([key, value]) => ({ value, labels: { [label]: key } })),
  };
}

/** Creates the source of a histogram without labels. */
export function readHistogram(name: FamilyName, read: () => Histogram): Source {
  return { name, collect: () => histogramSamples(name, read(), NO_LABELS) };
}

/** The samples of a histogram: cumulative buckets, sum and count. */
function* histogramSamples(name: FamilyName, { bounds, counts, sum }: Histogram, labels: Labels) {
  let count = 0;
  for (let i = 0; i < counts.length; i++) {
    count += counts[i] ?? 0;
    const le = i < bounds.length ? String(bounds[i]) : "+Inf";
    yield { value: count, labels: { ...labels, le }, metricName: `${name}_bucket` };
  }
  yield { value: sum, labels, metricName: `${name}_sum` };
  yield { value: count, labels, metricName: `${name}_count` };
}
