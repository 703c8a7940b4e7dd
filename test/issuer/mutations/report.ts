// The results of campaigns, their sum and their report.

/** What became of the tokens of one class of mutations. */
export interface Tally {
  presented: number;
  /** Not presented and not counted: by the reference as good as before, or a mutation that did not apply. */
  passedOver: number;
  accepted: number;
  /** Whether one claim is wrong in each, and nothing else. */
  readonly oneClaim: boolean;
}

/** What became of the tokens presented to one verifier. */
export interface VerifierReport {
  readonly classes: Record<string, Tally>;
  /** Good tokens presented, over HTTP too, and how many were accepted. */
  controls: number;
  controlsAccepted: number;
  /** Mutated tokens presented over HTTP as well. */
  overHttp: number;
  overHttpAccepted: number;
}

/** What a campaign found. */
export interface Report {
  readonly verifiers: Record<string, VerifierReport>;
  /** Responses that neither accepted nor rejected the token. */
  failures: number;
  /** Connections to an address that only tokens name. */
  calls: number;
  /** Requests to the issuer of the foreign tokens. */
  fetches: number;
  seconds: number;
  /** The first few unexpected results. */
  readonly examples: string[];
}

const MAX_EXAMPLES = 20;

/** A report of nothing. */
export function emptyReport(): Report {
  return { verifiers: {}, failures: 0, calls: 0, fetches: 0, seconds: 0, examples: [] };
}

/** The report of a verifier, created on first use. */
export function reportOf({ verifiers }: Report, verifier: string): VerifierReport {
  verifiers[verifier] ??= { classes: {}, controls: 0, controlsAccepted: 0, overHttp: 0, overHttpAccepted: 0 };
  return verifiers[verifier];
}

/** The tally of a class, created on first use. */
export function tallyOf({ classes }: VerifierReport, name: string, oneClaim: boolean): Tally {
  classes[name] ??= { presented: 0, passedOver: 0, accepted: 0, oneClaim };
  return classes[name];
}

/** Records an unexpected result. */
export function addExample({ examples }: Report, example: string): void {
  if (examples.length < MAX_EXAMPLES) examples.push(example);
}

/** What several campaigns found that ran side by side. */
export function sumReports(reports: readonly Report[]): Report {
  const total = emptyReport();
  for (const report of reports) {
    total.failures += report.failures;
    total.calls += report.calls;
    total.fetches += report.fetches;
    total.seconds = Math.max(total.seconds, report.seconds);
    for (const example of report.examples) addExample(total, example);
    for (const [verifier, { classes, ...counts }] of Object.entries(report.verifiers)) {
      const sum = reportOf(total, verifier);
      for (const [name, count] of Object.entries(counts)) sum[name as keyof typeof counts] += count;
      for (const [name, { presented, passedOver, accepted, oneClaim }] of Object.entries(classes)) {
        const tally = tallyOf(sum, name, oneClaim);
        tally.presented += presented;
        tally.passedOver += passedOver;
        tally.accepted += accepted;
      }
    }
  }
  return total;
}

/** The sums over all classes of a verifier. */
export function totalsOf({ classes, overHttpAccepted }: VerifierReport) {
  const tallies = Object.values(classes);
  const sum = (of: (tally: Tally) => number) => tallies.reduce((total, tally) => total + of(tally), 0);
  return {
    presented: sum(({ presented }) => presented),
    passedOver: sum(({ passedOver }) => passedOver),
    /** In process or over HTTP. */
    accepted: sum(({ accepted }) => accepted) + overHttpAccepted,
    oneClaim: sum(({ presented, oneClaim }) => (oneClaim ? presented : 0)),
  };
}

/** Whether a campaign found everything as it should be. */
export function isClean(report: Report): boolean {
  const verifiers = Object.values(report.verifiers);
  return (
    verifiers.length > 0 &&
    report.failures === 0 &&
    report.calls === 0 &&
    verifiers.every((verifier) => {
      const { presented, accepted, oneClaim } = totalsOf(verifier);
      const { controls, controlsAccepted } = verifier;
      return accepted === 0 && oneClaim * 3 >= presented && controls > 0 && controls === controlsAccepted;
    })
  );
}

/** The report as lines of text. */
export function linesOf(report: Report): string[] {
  const lines: string[] = [];
  for (const [name, verifier] of Object.entries(report.verifiers)) {
    lines.push(
      `${name}${"presented".padStart(38 - name.length)}${"passed over".padStart(13)}${"accepted".padStart(10)}`,
    );
    for (const [mutation, { presented, passedOver, accepted }] of Object.entries(verifier.classes).sort()) {
      lines.push(`  ${mutation.padEnd(26)}${[presented, passedOver, accepted].map(column).join("")}`);
    }
    const { presented, passedOver, accepted, oneClaim } = totalsOf(verifier);
    lines.push(`  ${"in all".padEnd(26)}${[presented, passedOver, accepted].map(column).join("")}`);
    lines.push(`  with one claim wrong, and good form and signature: ${oneClaim}`);
    lines.push(`  over HTTP as well: ${verifier.overHttp}, accepted ${verifier.overHttpAccepted}`);
    lines.push(`  controls: ${verifier.controls}, accepted ${verifier.controlsAccepted}`);
  }
  lines.push(`failures: ${report.failures}, calls to addresses in tokens: ${report.calls}`);
  lines.push(`requests to the issuer: ${report.fetches}, seconds: ${report.seconds.toFixed(1)}`);
  return lines;
}

function column(count: number, i: number): string {
  return String(count).padStart([10, 13, 10][i] ?? 10);
}
