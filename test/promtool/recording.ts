// Scrapes of a running service, recorded as Prometheus would have them, and replayed to the alert rules by promtool. All
// series of a replay come from a recording: a test has no way to make one up.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { Agent, get } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parse } from "yaml";
import { execFile } from "../support/child-process.js";
import { metricNamesIn, type ParsedMetrics, type ParsedSample, parseMetrics } from "../support/metrics.js";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

export const RULES = join(PROJECT, "deploy/prometheus/alerts.yml");

export interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
}
export interface Rules {
  readonly groups: { readonly name: string; readonly rules: Rule[] }[];
}

/** Reads the rules of a file. */
export function readRules(file = RULES): Rule[] {
  return (parse(readFileSync(file, "utf8")) as Rules).groups.flatMap(({ rules }) => rules);
}

/** A scrape. */
interface Scrape {
  /** Undefined where the target did not answer. */
  readonly metrics: ParsedMetrics | undefined;
  /** When it was due, counted in gaps between two scrapes. */
  readonly slot: number;
  /** The time of the service, in seconds since 1970. */
  readonly serviceTimeS: number;
}

/** The scrapes of one node before an outage and during it. */
export class Recording {
  readonly #scrapes: Scrape[] = [];
  #well = 0;
  /** The gap between two scrapes in milliseconds, where they are replayed at the times that they had: see {@link replay}. */
  readonly gapMs: number | undefined;
  #beganMs: number | undefined;

  constructor(gapMs?: number) {
    this.gapMs = gapMs;
  }

  get scrapes(): readonly Scrape[] {
    return this.#scrapes;
  }

  /** How many of them are before the outage. */
  get well(): number {
    return this.#well;
  }

  /**
   * Scrapes some times.
   *
   * @param url where the metrics are
   * @param step runs before each scrape
   * @param serviceTimeMs the clock of the service
   */
  async scrape(
    url: string | undefined,
    times: number,
    step: (i: number) => unknown = () => {},
    serviceTimeMs: () => number = Date.now,
  ): Promise<void> {
    for (let i = 0; i < times; i++) {
      await step(i);
      const slot = await this.#waitForSlot();
      const text = await readMetrics(url ?? "");
      const metrics = text === undefined ? undefined : parseMetrics(text);
      this.#scrapes.push({ metrics, slot, serviceTimeS: serviceTimeMs() / 1_000 });
    }
  }

  // As Prometheus, which leaves out scrapes for which it is too late, and takes the time when one was due for its own.
  async #waitForSlot(): Promise<number> {
    const next = (this.#scrapes.at(-1)?.slot ?? -1) + 1;
    if (this.gapMs === undefined) return next;
    this.#beganMs ??= performance.now();
    const slot = Math.max(next, Math.ceil((performance.now() - this.#beganMs) / this.gapMs));
    await sleep(Math.max(0, this.#beganMs + slot * this.gapMs - performance.now()));
    return slot;
  }

  /** Notes that the outage begins. All was well until here. */
  beginOutage(): void {
    assert.ok(this.#scrapes.length >= 3 && this.#scrapes.every(({ metrics }) => metrics !== undefined));
    this.#well = this.#scrapes.length;
  }

  /** Repeats the last scrape, for states that stay as they are. */
  hold(times: number): void {
    const last = this.#scrapes.at(-1);
    assert.ok(last);
    for (let i = 1; i <= times; i++) this.#scrapes.push({ ...last, slot: last.slot + i });
  }
}

// Prometheus keeps its connection too, which matters while the service accepts none.
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
// Longer than a busy machine takes to answer.
const SCRAPE_MS = 60_000;

function readMetrics(url: string, isRepeated = false): Promise<string | undefined> {
  return new Promise((resolve) => {
    const request = get(url, { agent, timeout: SCRAPE_MS }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", () => resolve(undefined));
      response.on("end", () =>
        resolve(response.statusCode === 200 ? Buffer.concat(chunks).toString("utf8") : undefined),
      );
    });
    request.on("timeout", () => request.destroy());
    // A kept connection may have been closed meanwhile, as by a process that has ended.
    request.on("error", () => resolve(request.reusedSocket && !isRepeated ? readMetrics(url, true) : undefined));
  });
}

/** What a node is called in a replay, and what it says. */
export interface Target {
  readonly job: string;
  readonly instance: string;
  readonly recording: Recording;
}

/** How a rule does with a recording. */
export interface Replayed {
  /** Whether it fires at the last scrape before the outage, and at the last one of it. */
  readonly before: boolean;
  readonly inOutage: boolean;
}

const MINUTE_MS = 60_000;

/**
 * Evaluates a file of rules over a recording with a scrape each minute, and tells whether an alert fires. Where the recording
 * has a gap of its own, the times of the rules are shortened instead, so that it stands for a minute: the rate of what is
 * counted in seconds means something in the time of the machine alone.
 */
export async function replay(recording: Recording, alert: string, rulesFile = RULES): Promise<Replayed> {
  const firesAt = prepareReplay([{ job: "arbor", instance: "recorded", recording }], rulesFile);
  const { scrapes, well } = recording;
  return { before: await firesAt(well - 1, alert), inOutage: await firesAt(scrapes.length - 1, alert) };
}

/**
 * Prepares to evaluate a file of rules over the recordings of several targets that are scraped at the same times.
 *
 * @returns tells whether an alert fires at a scrape, and if a number is given for as many targets, jobs or the like
 */
export function prepareReplay(targets: readonly Target[], rulesFile = RULES) {
  const [{ recording } = assert.fail("no target")] = targets;
  const { scrapes, gapMs = MINUTE_MS } = recording;
  const input = {
    rule_files: [gapMs === MINUTE_MS ? rulesFile : shortenRules(rulesFile, gapMs / MINUTE_MS)],
    evaluation_interval: `${gapMs}ms`,
  };
  const names = metricNamesIn(readFileSync(rulesFile, "utf8"));
  const series = targets.flatMap((target) => buildSeries(target, names, gapMs));
  return (scrape: number, alert: string, count?: number): Promise<boolean> => {
    const firing = `count(ALERTS{alertstate="firing", alertname="${alert}"})`;
    const expr = count === undefined ? `${firing} > bool 0` : firing;
    const sample = { labels: "{}", value: count ?? 1 };
    const test = { expr, eval_time: `${(scrapes[scrape]?.slot ?? 0) * gapMs}ms`, exp_samples: [sample] };
    return passes({ ...input, tests: [{ interval: `${gapMs}ms`, input_series: series, promql_expr_test: [test] }] });
  };
}

// promtool says no more than whether the samples are those that were expected.
async function passes(test: object): Promise<boolean> {
  const file = join(tempDir(), "test.yml");
  writeFileSync(file, JSON.stringify(test));
  try {
    await execFile("promtool", ["test", "rules", file]);
    return true;
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    // There is no such sample; anything else is a fault of the test.
    assert.match(stdout + stderr, /exp:[\s\S]*got:/, String(error));
    return false;
  }
}

function shortenRules(file: string, factor: number): string {
  const rules = parse(readFileSync(file, "utf8")) as Rules;
  const shorten = (time: string) => {
    const [, count, unit] = /^(\d+)([smhd])$/.exec(time) ?? assert.fail(time);
    const seconds = Number(count) * ({ s: 1, m: 60, h: 3_600, d: 86_400 }[unit as "s"] ?? 0);
    return `${Math.max(1, Math.round(seconds * 1_000 * factor))}ms`;
  };
  const change = ({ for: wait, expr, ...rule }: Rule): Rule => ({
    ...rule,
    ...(wait !== undefined && { for: shorten(wait) }),
    expr: expr.replace(/\[(\w+)\]/g, (_, time: string) => `[${shorten(time)}]`),
  });
  const shortened = join(tempDir(), "alerts.yml");
  const groups = rules.groups.map((group) => ({ ...group, rules: group.rules.map(change) }));
  writeFileSync(shortened, JSON.stringify({ groups }));
  return shortened;
}

interface InputSeries {
  readonly series: string;
  readonly values: string;
}

// A series that one scrape has and the next one has not is stale from there on, as all series of a target that does not
// answer, which has the value 0 of `up`.
function buildSeries(
  { recording: { scrapes }, ...target }: Target,
  names: ReadonlySet<string>,
  gapMs: number,
): InputSeries[] {
  const series = new Map<string, (string | undefined)[]>();
  const put = (name: string, labels: object, i: number, value: number) => {
    const key = `${name}{${Object.entries({ ...target, ...labels })
      .map(([label, text]) => `${label}=${JSON.stringify(text)}`)
      .join()}}`;
    const values = series.get(key) ?? Array<string | undefined>(scrapes.length).fill(undefined);
    values[i] = String(value).replace("Infinity", "Inf");
    series.set(key, values);
  };
  for (const [i, { metrics, slot, serviceTimeS }] of scrapes.entries()) {
    put("up", {}, i, metrics === undefined ? 0 : 1);
    for (const { name, labels, value } of metrics?.samples ?? []) {
      if (!names.has(name.replace(/_(bucket|sum|count)$/, ""))) continue;
      // The clock of a replay begins at 0: a time is as far away as it was in the service.
      const isTime = name.endsWith("_timestamp_seconds");
      put(name, labels, i, isTime ? value - serviceTimeS + (slot * gapMs) / 1_000 : value);
    }
  }
  return [...series].map(([key, values]) => {
    const all = Array<string>((scrapes.at(-1)?.slot ?? 0) + 1).fill("_");
    for (const [i, value] of values.entries()) {
      const isGone = i > 0 && values[i - 1] !== undefined;
      all[scrapes[i]?.slot ?? 0] = value ?? (isGone ? "stale" : "_");
    }
    return { series: key, values: all.join(" ") };
  });
}

const METRIC = /\b((?:arbor|nodejs|process)_[a-z0-9_]+)(?:\{([^}]*)\})?/g;
const MATCHER = /(\w+)(=~|=)"([^"]*)"/g;

/** Finds the selectors of an expression that no sample of a scrape matches. */
export function findUnserved(expr: string, { samples }: ParsedMetrics): string[] {
  return [...expr.matchAll(METRIC)].flatMap(([selector, name, matchers = ""]) => {
    const conditions = [...matchers.matchAll(MATCHER)].map(([, label = "", operator, text = ""]) => {
      const pattern = new RegExp(`^(?:${operator === "=" ? text.replace(/\W/g, "\\$&") : text})$`);
      return ({ labels }: ParsedSample) => pattern.test(labels[label] ?? "");
    });
    const found = samples.some((sample) => sample.name === name && conditions.every((holds) => holds(sample)));
    return found ? [] : [selector];
  });
}
