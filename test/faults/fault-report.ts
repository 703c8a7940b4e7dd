// What all faults of the machine share: a service that is written to before, and a report afterwards.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { PROJECT } from "../support/project.js";
import { HostService, type HostServiceOptions, type Responses } from "./host-service.js";

/** What a fault led to. */
export interface FaultReport {
  readonly fault: string;
  readonly answers: Responses;
  /** The lines of the log about it, and all of level warn and above. */
  readonly logged: readonly string[];
  readonly warnings: readonly string[];
  readonly recovery: string;
  readonly acknowledged: number;
  readonly lost: readonly string[];
  readonly problems: readonly string[];
}

/** Runs one fault in an empty directory. */
export type HostFault = (directory: string, control: boolean) => Promise<FaultReport>;

/** For how long writers write before a fault, and during it. */
export const WRITE_MS = 700;
/** The arguments of node that load a module of this folder before the program. */
export const preloadOf = (file: string) => ["--import", pathToFileURL(join(PROJECT, "test/faults", file)).href];

/** Starts a service and writes to it for a moment. */
export async function startWritten(options: HostServiceOptions): Promise<HostService> {
  const service = new HostService(options);
  await service.start();
  service.write();
  await sleep(WRITE_MS);
  if (service.recorder.acknowledged === 0) service.problems.push("nothing was written before the fault");
  return service;
}

interface Observed {
  readonly fault: string;
  readonly service: HostService;
  readonly answers: Responses;
  readonly recovery: string;
  readonly lost: readonly string[];
}

/** Builds the report of a fault when the process has ended. */
export function report({ fault, service, answers, recovery, lost }: Observed): FaultReport {
  const warnings = service.lines.filter(({ level }) => ["warn", "error", "fatal"].includes(level));
  const relevant = service.lines.filter((line) => line.fault !== undefined || /clock|connections|files/.test(line.msg));
  return {
    ...{ fault, answers, recovery, lost },
    logged: relevant.map(({ level, msg }) => `${level}: ${msg}`),
    warnings: warnings.map(({ msg }) => msg),
    acknowledged: service.recorder.acknowledged,
    problems: service.problems,
  };
}

/** Notes answers that are others than expected as problems. */
export function expectResponses(
  service: HostService,
  responses: Responses,
  expected: Partial<Record<keyof Responses, RegExp>>,
): void {
  for (const [name, pattern] of Object.entries(expected)) {
    const response = responses[name as keyof Responses];
    if (!pattern.test(response)) service.problems.push(`${name} was answered ${response} and not ${pattern}`);
  }
}
