// Records spans and sends them with OTLP over HTTP. This is the only module that loads OpenTelemetry's SDK, and it is
// loaded only when traces are on. The SDK reads the variables of the sampler, the exporter and its batches itself.
import { DiagLogLevel, diag } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, NodeTracerProvider, type SpanExporter } from "@opentelemetry/sdk-trace-node";
import type { Logger } from "./logger.js";
import { createSpans, type Tracing } from "./spans.js";
import type { TraceSettings } from "./trace-settings.js";

/** How often the same kind of problem is logged, in milliseconds. */
const LOG_PAUSE_MS = 60_000;
/** The longest text of the SDK that is logged, in characters. */
const MAX_TEXT = 300;

export function createTracing(options: {
  readonly settings: TraceSettings;
  readonly logger: Logger;
  readonly version: string;
}): Tracing {
  const { settings, logger, version } = options;
  logDiagnostics(logger);
  const resource = defaultResource()
    .merge(resourceFromAttributes({ "service.name": "arbor", "service.version": version }))
    .merge(detectResources({ detectors: [envDetector] }));
  const exporter = reportFailures(new OTLPTraceExporter(), logger);
  const provider = new NodeTracerProvider({ resource, spanProcessors: [new BatchSpanProcessor(exporter)] });
  const spans = createSpans(provider.getTracer("arbor", version), settings.propagate);
  return {
    ...spans,
    async stop(maxMs) {
      const limit = new Promise<void>((resolve) => setTimeout(resolve, maxMs).unref());
      await Promise.race([provider.shutdown().catch(() => {}), limit]);
    },
  };
}

// Limits the lines about a collector that is down. The next line has the number of lost spans.
function reportFailures(exporter: SpanExporter, logger: Logger): SpanExporter {
  const isDue = createPause();
  let lost = 0;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        if (result.code !== 0) {
          lost += spans.length;
          if (isDue()) {
            const reason = String(result.error?.message ?? "").slice(0, MAX_TEXT);
            logger.warn({ reason, spans: lost }, "spans could not be exported and are lost");
            lost = 0;
          }
        }
        // The processor would report the failure again.
        done({ code: 0 });
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}

// The SDK reports variables with wrong values, and spans that did not fit into its queue.
function logDiagnostics(logger: Logger): void {
  const pauses = new Map<string, () => boolean>();
  const warn = (message: string) => {
    const text = message.slice(0, MAX_TEXT);
    const kind = text.replaceAll(/\d+/g, "0");
    if (pauses.size > 100) pauses.clear();
    const isDue = pauses.get(kind) ?? createPause();
    pauses.set(kind, isDue);
    if (isDue()) logger.warn({ reason: text }, "OpenTelemetry");
  };
  const ignore = () => {};
  diag.setLogger(
    { error: warn, warn, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}

/** Creates a function that returns true at most once a minute. */
function createPause(): () => boolean {
  let nextMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = performance.now();
    if (nowMs < nextMs) return false;
    nextMs = nowMs + LOG_PAUSE_MS;
    return true;
  };
}
