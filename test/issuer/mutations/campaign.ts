// A campaign of mutated tokens against both verifiers: none may be accepted. Controls fail for a verifier that
// rejects everything, and failures are counted apart from rejections, so that a verifier that crashes does not pass.
import { createRandom, type Random } from "../../support/openapi/random.js";
import { apiTokens } from "./api-tokens.js";
import { foreignTokens } from "./foreign-tokens.js";
import type { MutationClass } from "./good-token.js";
import { isGood } from "./reference.js";
import { addExample, emptyReport, type Report, reportOf, tallyOf, type VerifierReport } from "./report.js";
import type { Broken, Candidate, Verifier } from "./verifier.js";
import { startWorld, type World } from "./world.js";

/** What a campaign does. */
export interface Campaign {
  /** How many mutated tokens are presented: API tokens of both algorithms and foreign ones, half of each. */
  readonly tokens: number;
  readonly seed: number;
  /** Guards to break: a campaign that finds nothing then is worth nothing. */
  readonly broken?: Broken;
  /** Where it is carried out; a world of its own unless given. */
  readonly world?: World;
}

/** After so many tokens one goes over HTTP as well, and so do controls. */
const CONTROL_EVERY = 1_000;
/** A good token is mutated so often before the next one is made. */
const MUTANTS_OF_ONE = 20;

/** Runs a campaign. */
export async function runCampaign({ tokens, seed, broken = {}, world: given }: Campaign): Promise<Report> {
  const startMs = performance.now();
  const report = emptyReport();
  const world = given ?? (await startWorld());
  try {
    const random = createRandom(seed);
    const foreign = Math.floor(tokens / 2);
    const former = Math.floor((tokens - foreign) / 2);
    await run(apiTokens(world, "RS256", broken), tokens - foreign - former, random, report);
    await run(apiTokens(world, "ES256", broken), former, random, report);
    await run(foreignTokens(world, broken), foreign, random, report);
    report.calls = world.trap.calls;
    report.fetches = world.issuer.requests.length;
  } finally {
    if (given === undefined) await world.stop();
  }
  report.seconds = (performance.now() - startMs) / 1000;
  return report;
}

async function run(verifier: Verifier, count: number, random: Random, report: Report): Promise<void> {
  const counts = reportOf(report, verifier.name);
  const draw = createPicker(verifier.classes, random);
  let candidate = verifier.candidate(random);
  let httpDue = false;
  let presented = 0;
  for (let drawn = 0; presented < count; drawn++) {
    if (drawn > 2 * count + 1_000) throw new Error(`${verifier.name}: too few mutations make a token that is wrong`);
    if (drawn % MUTANTS_OF_ONE === 0) {
      candidate = verifier.candidate(random);
      // Before all that is made of it, so that what remembers good tokens has this one to mistake them for.
      await control(candidate.accepts, candidate.good.text, `${verifier.name} as it is`, counts, report);
    }
    const { name, oneClaim = false, mutate } = draw();
    const tally = tallyOf(counts, name, oneClaim);
    const text = mutate(candidate.good, random);
    if (text === undefined || text === candidate.good.text || isGood(text, candidate.rules, Date.now() / 1000)) {
      tally.passedOver++;
      continue;
    }
    if (presented % CONTROL_EVERY === 0) {
      await moreControls(verifier, candidate, presented / CONTROL_EVERY, counts, report);
      httpDue = true;
    }
    tally.presented++;
    presented++;
    const what = `${verifier.name}, ${name}`;
    if (await judgeResponse(() => candidate.accepts(text), what, text, report)) tally.accepted++;
    if (httpDue && isSendable(text)) {
      httpDue = false;
      counts.overHttp++;
      if (await judgeResponse(() => candidate.acceptsOverHttp(text), `${what}, HTTP`, text, report))
        counts.overHttpAccepted++;
    }
    // Lets a tick of the event loop end, and with it the snapshot that reads of one tick share.
    if (presented % 100 === 0) await new Promise(setImmediate);
  }
}

/** A good token as it is, over HTTP, and with a change that makes no difference, each kind of change in its turn. */
async function moreControls(
  { name, asGood }: Verifier,
  { good, accepts, acceptsOverHttp }: Candidate,
  kindIndex: number,
  counts: VerifierReport,
  report: Report,
): Promise<void> {
  await control(acceptsOverHttp, good.text, `${name} as it is, HTTP`, counts, report);
  const change = asGood[kindIndex % asGood.length];
  if (change === undefined) throw new RangeError("there are no changes");
  const text = change.make(good);
  await control(accepts, text, `${name}, ${change.name}`, counts, report);
  await control(acceptsOverHttp, text, `${name}, ${change.name}, HTTP`, counts, report);
}

async function control(
  present: Candidate["accepts"],
  text: string,
  what: string,
  counts: VerifierReport,
  report: Report,
): Promise<void> {
  counts.controls++;
  try {
    if (await present(text)) counts.controlsAccepted++;
    else addExample(report, `control: ${what}: rejected: ${formatToken(text)}`);
  } catch (error) {
    addExample(report, `control: ${what}: ${String(error)}: ${formatToken(text)}`);
  }
}

async function judgeResponse(
  present: () => ReturnType<Candidate["accepts"]>,
  what: string,
  text: string,
  report: Report,
): Promise<boolean> {
  try {
    const accepted = await present();
    if (accepted) addExample(report, `${what}: accepted: ${formatToken(text)}`);
    return accepted;
  } catch (error) {
    report.failures++;
    addExample(report, `${what}: ${String(error)}: ${formatToken(text)}`);
    return false;
  }
}

/** The content of a token, without its signature: reports must not hold tokens that are valid. */
function formatToken(text: string): string {
  const [header = "", payload = "", ...rest] = text.split(".");
  const decoded = [header, payload].map((part) => JSON.stringify(Buffer.from(part, "base64url").toString()));
  return `${decoded.join(".")} and ${rest.length} more`.slice(0, 1_000);
}

// What a header cannot hold never arrives, and blanks at its end are taken away.
function isSendable(text: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*(?<![\t ])$/.test(text);
}

function createPicker(classes: readonly MutationClass[], random: Random): () => MutationClass {
  const total = classes.reduce((sum, { weight }) => sum + weight, 0);
  const [first, ...rest] = classes;
  if (first === undefined) throw new RangeError("there are no mutations");
  return () => {
    let left = (random.int(2 ** 30) / 2 ** 30) * total - first.weight;
    let drawn = first;
    for (const next of rest) {
      if (left < 0) break;
      left -= next.weight;
      drawn = next;
    }
    return drawn;
  };
}
