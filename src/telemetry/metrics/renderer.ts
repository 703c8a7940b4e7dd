// Renders metrics as text with prom-client, which the first scrape loads. Values are kept in plain counters, which are
// read at a scrape.
import type { Metric, Registry, RegistryContentType } from "prom-client";
import { type Family, families } from "./families.js";
import type { FamilySamples, Sample, Source, TextFormat } from "./samples.js";

export interface RenderedMetrics {
  readonly contentType: string;
  readonly text: string;
}

/** How many samples are rendered between two checks of the time, and the time after which the event loop continues. */
const SLICE_SAMPLES = 250;
const SLICE_MS = 5;

/** Renders metrics; see {@link createRenderer}. */
export type Renderer = ReturnType<typeof createRenderer>;

export interface RendererOptions {
  /** Called before the sources are read, for those that need to wait. */
  readonly prepare?: () => Promise<void>;
  /** Reads the families that `sources` do not have; by default those of this process that Node and prom-client measure. */
  readonly others?: () => Promise<readonly FamilySamples[]>;
  /** Called when a family cannot be read, and again only after it could be read. */
  readonly onUnreadable?: (family: string, error: unknown) => void;
}

/**
 * Creates a renderer. A family that cannot be read is left out, so that the others can still be scraped.
 *
 * @param sources read at each scrape; more may be added to the array
 */
export function createRenderer(sources: readonly Source[], { prepare, others, onUnreadable }: RendererOptions = {}) {
  const timing = { durationS: 0, longestSliceS: 0 };
  const unreadable = new Set<string>();
  const running: Partial<Record<TextFormat, Promise<RenderedMetrics>>> = {};

  type ReadFamily = (name: string, family: Pick<FamilySamples, "help" | "type">, samples: Iterable<Sample>) => unknown;

  async function readFamilies(found: readonly FamilySamples[] | undefined, read: ReadFamily): Promise<void> {
    for (const { name, collect } of sources)
      await skipUnreadable(name, async () => read(name, families[name], collect()));
    for (const family of found ?? [])
      await skipUnreadable(family.name, async () => read(family.name, family, family.values));
    if (found !== undefined) return;
    const { readProcessMetrics } = await import("./process-metrics.js");
    for (const metric of readProcessMetrics()) {
      await skipUnreadable(metric.name, async () => {
        const { name, values, ...family } = await metric.get();
        await read(name, family, values);
      });
    }
  }

  async function skipUnreadable(name: string, read: () => Promise<unknown>): Promise<void> {
    try {
      await read();
      unreadable.delete(name);
    } catch (error) {
      if (!unreadable.has(name)) onUnreadable?.(name, error);
      unreadable.add(name);
    }
  }

  async function renderAll(format: TextFormat): Promise<RenderedMetrics> {
    const { createRegistry } = await import("./process-metrics.js");
    const isOpen = format === "openmetrics";
    const registry = createRegistry(format);
    const blocks: string[] = [];
    await prepare?.();
    const found = await others?.();
    const startMs = performance.now();
    const slices = createSlices();
    await readFamilies(found, async (name, family, samples) => {
      blocks.push(await renderFamily(registry, name, family, samples));
    });
    timing.longestSliceS = slices.end() / 1000;
    timing.durationS = (performance.now() - startMs) / 1000;
    const text = isOpen ? `${blocks.join("\n")}\n# EOF\n` : `${blocks.join("\n")}\n`;
    return { contentType: registry.contentType, text };

    async function renderFamily(
      into: Registry<RegistryContentType>,
      name: string,
      { help, type }: Pick<Family, "help"> & { readonly type: string },
      samples: Iterable<Sample>,
    ): Promise<string> {
      // In OpenMetrics the name of a counter has no suffix `_total`, which prom-client appends to its series.
      const shown = isOpen && type === "counter" ? name.replace(/_total$/, "") : name;
      const texts: string[] = [];
      for (const part of split(samples, SLICE_SAMPLES)) {
        const values = isOpen && type === "counter" ? part.map(({ metricName, ...rest }) => rest) : part;
        into.registerMetric(metricOf({ name: shown, help, type, values }));
        const rendered = await into.getSingleMetricAsString(shown);
        into.removeSingleMetric(shown);
        texts.push(texts.length === 0 ? rendered : removeHeader(rendered));
        await slices.next();
      }
      return texts.join("\n");
    }
  }

  return {
    /** How long the last rendering took. */
    timing,
    /** Reads all metrics, for another process that renders them. */
    async collect(): Promise<FamilySamples[]> {
      const all: FamilySamples[] = [];
      await prepare?.();
      await readFamilies(undefined, (name, { help, type }, samples) => {
        all.push({ name, help, type, values: [...samples] });
      });
      return all;
    },
    /** Renders all metrics. Calls at the same time share one rendering. */
    render(format: TextFormat): Promise<RenderedMetrics> {
      running[format] ??= renderAll(format).finally(() => {
        delete running[format];
      });
      return running[format];
    },
  };
}

interface MetricValues {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly values: readonly Sample[];
}

// The part of a metric that a registry uses.
function metricOf(values: MetricValues): Metric {
  return { ...values, get: async () => values } as unknown as Metric;
}

// A family without samples has one empty slice, so that its header is rendered.
function* split(samples: Iterable<Sample>, size: number): Generator<Sample[]> {
  let part: Sample[] = [];
  let isFirst = true;
  for (const sample of samples) {
    part.push(sample);
    if (part.length < size) continue;
    yield part;
    part = [];
    isFirst = false;
  }
  if (part.length > 0 || isFirst) yield part;
}

// Removes the lines HELP and TYPE, which a family has only once.
function removeHeader(rendered: string): string {
  return rendered.slice(rendered.indexOf("\n", rendered.indexOf("\n") + 1) + 1);
}

// Yields to the event loop when a slice has taken long enough, and measures the longest slice.
function createSlices() {
  let startMs = performance.now();
  let longestMs = 0;
  const end = () => {
    longestMs = Math.max(longestMs, performance.now() - startMs);
    return longestMs;
  };
  return {
    end,
    async next(): Promise<void> {
      if (performance.now() - startMs < SLICE_MS) return;
      end();
      await new Promise((resolve) => setImmediate(resolve));
      startMs = performance.now();
    },
  };
}
