// Renders metrics as text with prom-client, which the first scrape loads. Values are kept in plain counters, which are
// read at a scrape.
import type { Metric, Registry, RegistryContentType } from "prom-client";
import { type Family, families } from "./families.js";
import type { Sample, Source, TextFormat } from "./samples.js";

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
  /** Called when a family cannot be read, and again only after it could be read. */
  readonly onUnreadable?: (family: string, error: unknown) => void;
}

/**
 * Creates a renderer. A family that cannot be read is left out, so that the others can still be scraped.
 *
 * @param sources read at each scrape; more may be added to the array
 */
export function createRenderer(sources: readonly Source[], { prepare, onUnreadable }: RendererOptions = {}) {
  const timing = { durationS: 0, longestSliceS: 0 };
  const unreadable = new Set<string>();
  const running: Partial<Record<TextFormat, Promise<RenderedMetrics>>> = {};

  async function renderAll(format: TextFormat): Promise<RenderedMetrics> {
    const { createRegistry, readProcessMetrics } = await import("./process-metrics.js");
    const isOpen = format === "openmetrics";
    const registry = createRegistry(format);
    const blocks: string[] = [];
    await prepare?.();
    const startMs = performance.now();
    const slices = createSlices();
    for (const { name, collect } of sources) {
      await addReadable(name, () => renderFamily(registry, name, families[name], collect()));
    }
    for (const metric of readProcessMetrics()) {
      await addReadable(metric.name, async () => {
        const { name, help, type, values } = await metric.get();
        return renderFamily(registry, name, { help, type }, values);
      });
    }
    timing.longestSliceS = slices.end() / 1000;
    timing.durationS = (performance.now() - startMs) / 1000;
    const text = isOpen ? `${blocks.join("\n")}\n# EOF\n` : `${blocks.join("\n")}\n`;
    return { contentType: registry.contentType, text };

    async function addReadable(name: string, render: () => Promise<string>): Promise<void> {
      try {
        blocks.push(await render());
        unreadable.delete(name);
      } catch (error) {
        if (!unreadable.has(name)) onUnreadable?.(name, error);
        unreadable.add(name);
      }
    }

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
