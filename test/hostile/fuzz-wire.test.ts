// Hostile bytes for `arbor serve`, a process of its own: it stays the same process, answers a good
// request afterwards, keeps its memory within bounds, is at fault in no response and no line of its log,
// and ends every connection that is left to it. A kind of input that cannot find the fault planted for
// it in another server would show nothing, so each has to.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type CampaignReport, CONNECTION_MS, goodResponses, runCampaign } from "./wire/campaign.js";
import { kinds } from "./wire/kinds.js";
import { startArbor, startFaulty, type Target } from "./wire/target.js";

const INPUTS = 10_000;
const SEED = 1;
/** Connections that the service has to end; few of HTTP/2, whose sessions may live for two minutes. */
const OPEN_CONNECTIONS = { http2: 4, others: 12 };
const MIB = 1024 * 1024;

describe(`${INPUTS} inputs of each kind, seed ${SEED}`, () => {
  let target: Target;
  const reports: [name: string, report: CampaignReport][] = [];

  before(async () => {
    target = await startArbor();
  });
  after(() => target?.stop());

  for (const name of Object.keys(kinds)) {
    it(name, async (t) => {
      const kind = await kinds[name]?.(target);
      assert.ok(kind !== undefined);
      const report = await runCampaign(kind, target, {
        inputs: INPUTS,
        seed: SEED,
        openConnections: name === "http2" ? OPEN_CONNECTIONS.http2 : OPEN_CONNECTIONS.others,
      });
      reports.push([name, report]);
      const { inputs, batches, seconds, counts, memory } = report;
      t.diagnostic(`seed ${SEED}: ${inputs} inputs in ${batches} batches, ${seconds.toFixed(1)} s`);
      t.diagnostic(
        `memory: ${mib(memory.before)} MiB before, ${mib(memory.peak)} MiB at most; ${JSON.stringify(counts)}`,
      );
      assert.deepEqual(report.faults, []);
      assert.ok(inputs >= INPUTS);
      // Most of what is sent has a response, of more kinds than errors of a parser.
      assert.ok(Object.keys(counts).length >= 6, JSON.stringify(counts));
    });
  }

  it(`no connection that was left as it is lives longer than ${CONNECTION_MS} ms`, async () => {
    assert.equal(reports.length, Object.keys(kinds).length);
    for (const [name, { faultsAfterwards }] of reports) assert.deepEqual(await faultsAfterwards(), [], name);
  });

  it("the same process answers, and has what memory it needs", async (t) => {
    assert.equal(target.describeEnd(), undefined);
    assert.deepEqual(await goodResponses(target), []);
    assert.deepEqual(target.complaints, []);
    const { now, peak } = target.memory();
    t.diagnostic(`process ${target.pid}: ${mib(now)} MiB now, ${mib(peak)} MiB at most`);
  });
});

describe("a planted fault is found", () => {
  for (const name of Object.keys(kinds)) {
    it(`by ${name}`, async () => {
      const target = await startFaulty(name);
      try {
        const kind = await kinds[name]?.(target);
        assert.ok(kind !== undefined);
        const { faults } = await runCampaign(kind, target, { inputs: INPUTS, seed: SEED, openConnections: 0 });
        const ended = faults.find((fault) => fault.startsWith("the process ended"));
        assert.match(ended ?? faults.join("\n"), PLANTED[name] ?? /^$/);
      } finally {
        await target.stop();
      }
    });
  }

  it("by the bound of the memory, and by what the log says", async () => {
    const target = await startArbor();
    try {
      const kind = await kinds.http1?.(target);
      assert.ok(kind !== undefined);
      const complaints = [...target.complaints, "planted"];
      const watched: Target = { ...target, complaints: [] };
      const run = runCampaign(kind, watched, { inputs: 200, seed: SEED, openConnections: 0, memoryBytes: 1 });
      (watched.complaints as string[]).push(...complaints);
      const { faults } = await run;
      assert.match(faults.join("\n"), /^the memory grew/m);
      assert.match(faults.join("\n"), /^the log says: planted/m);
    } finally {
      await target.stop();
    }
  });
});

const PLANTED: Readonly<Record<string, RegExp>> = {
  http1: /reading 'trim'/,
  http2: /reading 'socket'/,
  envelopes: /ERR_OUT_OF_RANGE|ERR_BUFFER_OUT_OF_BOUNDS/,
};

function mib(bytes: number): string {
  return (bytes / MIB).toFixed(0);
}
