// One answer to a scrape for all workers: counters and histograms are summed, gauges are told apart by the label `worker`.
import type { FamilySamples, Sample } from "../../telemetry/metrics/samples.js";

/** What one process has told. */
export interface Collected {
  /** The value of the label `worker`. */
  readonly worker: string;
  readonly families: readonly FamilySamples[];
  /** Whether these are values of an earlier scrape, of which gauges mean nothing any more. */
  readonly isOld?: boolean;
}

/** The load of one event loop: a sum would hide that one of them is busy all the time. */
const TOLD_APART = "arbor_event_loop_active_seconds_total";
/** The parent has its own. */
const OF_PARENT = new Set([
  "arbor_build_info",
  "arbor_scrape_duration_seconds",
  "arbor_scrape_longest_slice_seconds",
  "arbor_workers",
  "arbor_workers_configured",
  "arbor_worker_exits_total",
  "arbor_worker_scrapes_missed_total",
]);

const isSummed = ({ name, type }: FamilySamples) => type !== "gauge" && name !== TOLD_APART;

/** Merges what processes have told. */
export function mergeMetrics(collected: readonly Collected[]): FamilySamples[] {
  const merged = new Map<string, { readonly family: FamilySamples; readonly values: Map<string, Sample> }>();
  for (const { worker, families, isOld = false } of collected) {
    for (const family of families) {
      if (OF_PARENT.has(family.name) || (isOld && !isSummed(family))) continue;
      const { values } = merged.get(family.name) ?? { values: new Map<string, Sample>() };
      merged.set(family.name, { family, values });
      for (const sample of family.values) {
        const labels = isSummed(family) ? sample.labels : { ...sample.labels, worker };
        const key = `${sample.metricName ?? ""} ${JSON.stringify(Object.entries(labels).sort())}`;
        values.set(key, { ...sample, labels, value: sample.value + (values.get(key)?.value ?? 0) });
      }
    }
  }
  return [...merged.values()].map(({ family, values }) => ({ ...family, values: [...values.values()] }));
}

/** Adds the counts of a worker that has ended to those of workers before it, so that no counter falls. */
export function keepCounts(...collected: readonly (readonly FamilySamples[])[]): FamilySamples[] {
  return mergeMetrics(collected.map((families) => ({ worker: "", families, isOld: true })));
}
