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
  "arbor_worker_connections_refused_total",
  "arbor_worker_exits_total",
  "arbor_worker_scrapes_missed_total",
]);

const isGauge = ({ type }: FamilySamples) => type === "gauge";

/** Merges what processes have told. */
export function mergeMetrics(collected: readonly Collected[]): FamilySamples[] {
  const merged = new Map<string, { readonly family: FamilySamples; readonly values: Map<string, Sample> }>();
  for (const { worker, families, isOld = false } of collected) {
    for (const family of families) {
      if (OF_PARENT.has(family.name) || (isOld && isGauge(family))) continue;
      const { values } = merged.get(family.name) ?? { values: new Map<string, Sample>() };
      merged.set(family.name, { family, values });
      for (const sample of family.values) {
        const isToldApart = isGauge(family) || family.name === TOLD_APART;
        const labels = isToldApart ? { ...sample.labels, worker: sample.labels.worker ?? worker } : sample.labels;
        const key = `${sample.metricName ?? ""} ${JSON.stringify(Object.entries(labels).sort())}`;
        values.set(key, { ...sample, labels, value: sample.value + (values.get(key)?.value ?? 0) });
      }
    }
  }
  return [...merged.values()].map(({ family, values }) => ({ ...family, values: [...values.values()] }));
}

/** What one worker has counted, as far as it has told. */
export class WorkerMetrics {
  readonly #worker: string;
  #families: readonly FamilySamples[] = [];
  #scrape = 0;

  constructor(worker: number) {
    this.#worker = String(worker);
  }

  /**
   * Notes what the worker has told.
   *
   * @param scrape the number of the scrape: an answer that later ones have overtaken has smaller counts, and is dropped
   */
  note(scrape: number, families: readonly FamilySamples[]): void {
    if (scrape <= this.#scrape) return;
    this.#scrape = scrape;
    // A family that could not be read is not there. Its counts are those of the scrape before.
    const names = new Set(families.map(({ name }) => name));
    const unread = this.#families.filter((family) => !names.has(family.name) && !isGauge(family));
    this.#families = [...families, ...unread];
  }

  /** @param scrape of which scrape gauges are, where there are any */
  read(scrape: number): Collected {
    return { worker: this.#worker, families: this.#families, isOld: this.#scrape < scrape };
  }
}

/** What workers have counted that have ended. */
export class EndedMetrics {
  #families: FamilySamples[] = [];

  /** Adds the counts of a worker that has ended. It must not be read beside them any more. */
  add(ended: WorkerMetrics): void {
    this.#families = mergeMetrics([this.read(), ended.read(Number.POSITIVE_INFINITY)]);
  }

  read(): Collected {
    return { worker: "", families: this.#families, isOld: true };
  }
}
