// Delivery of events: from the change to the receipt, and processor time per change beside a service without subscriptions.
//
//   node --import tsx bench/events.ts [--organisations 1000] [--rate 200] [--seconds 60]
//
// Each organisation has one subscription. One in ten is dead: half of those refuse connections, and half accept them and
// never answer.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { BootstrapResult } from "../src/iam/operator/bootstrap.js";
import { startReceiver } from "../test/events/receiver.js";
import { newDataDir } from "../test/support/data-dir.js";
import { scriptArguments } from "../test/support/project.js";
import { sendHttp } from "../test/support/send-http.js";

const { values } = parseArgs({
  options: {
    organisations: { type: "string", default: "1000" },
    rate: { type: "string", default: "200" },
    seconds: { type: "string", default: "60" },
  },
});
const [organisations, rate, seconds] = [values.organisations, values.rate, values.seconds].map(Number) as [
  number,
  number,
  number,
];

const [script = "", ...before] = [...scriptArguments("bench/events-service.ts")].reverse();
const service = fork(script, [newDataDir()], {
  execArgv: before.reverse(),
  stdio: ["ignore", "inherit", "inherit", "ipc"],
});
await once(service, "message");

async function ask<T>(child: ChildProcess, request: object): Promise<T> {
  child.send(request);
  const [response] = (await once(child, "message")) as [T];
  return response;
}

interface Usage {
  readonly cpuMs: number;
  readonly rss: number;
}

type Organisation = BootstrapResult & { readonly token: string; readonly child: string };
const { url, made } = await ask<{ url: string; made: Organisation[] }>(service, {
  kind: "organisations",
  count: organisations,
});

let count = 0;
async function change({ group, token }: Organisation): Promise<void> {
  const response = await sendHttp(`${url}/iam/v2/groups/${group}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ name: `g${count++}` }),
  });
  if (!response.ok) throw new Error(response.text);
}

/** Makes changes at the rate for some seconds; returns the processor time per change, in milliseconds. */
async function load(seconds: number): Promise<number> {
  const first = await ask<Usage>(service, { kind: "usage" });
  const startMs = performance.now();
  const open = new Set<Promise<void>>();
  let sent = 0;
  while (sent < rate * seconds) {
    const due = Math.min(((performance.now() - startMs) / 1_000) * rate, rate * seconds);
    for (; sent < due; sent++) {
      const one: Promise<void> = change(made[sent % made.length] as Organisation).finally(() => open.delete(one));
      open.add(one);
    }
    await sleep(2);
  }
  await Promise.all(open);
  // What the last changes cause belongs to them.
  await sleep(2_000);
  const last = await ask<Usage>(service, { kind: "usage" });
  return (last.cpuMs - first.cpuMs) / sent;
}

await load(Math.min(seconds, 10));
const without = await load(seconds);

const receiver = await startReceiver();
// What a change costs its service where nothing is sent: the log is sealed sooner and read.
const unmatched = { groups: made.map(({ child }) => child), sinks: made.map(() => receiver.url) };
await ask(service, { kind: "subscribe", ...unmatched });
await sleep(12_000);
const withUnmatched = await load(seconds);
const sinks: string[] = [];
for (let i = 0; i < organisations; i++) {
  if (i % 10 !== 0) sinks.push(receiver.url);
  else if (i % 20 === 0) sinks.push(`https://127.0.${1 + (i >> 8)}.${i & 255}:9/`);
  else {
    const hanging = createServer(() => {}).listen(0, "127.0.0.1");
    await once(hanging, "listening");
    sinks.push(`https://127.0.0.1:${(hanging.address() as { port: number }).port}/`);
  }
}
await ask(service, { kind: "subscribe", groups: made.map(({ group }) => group), sinks });
// Until the job has given all of them a position.
await sleep(12_000);
const [from, startMs] = [receiver.received.length, Date.now()];
const withEvents = await load(seconds);
await sleep(5_000);

const received = receiver.received.slice(from);
const delays = received.map(({ event, atMs }) => atMs - Date.parse(event.time ?? "")).sort((a, b) => a - b);
const quantile = (share: number) => delays[Math.min(delays.length - 1, Math.floor(delays.length * share))];
const expected = Math.round(rate * seconds * 0.9);
console.log(`${received.length} events of ${expected} received in ${((Date.now() - startMs) / 1_000).toFixed(0)} s`);
console.log(
  `from the change to the receipt: ${quantile(0.5)} ms (median), ${quantile(0.99)} ms (p99), ${delays.at(-1)} ms (longest)`,
);
console.log(
  `processor time per change: ${without.toFixed(2)} ms without subscriptions, ` +
    `${withUnmatched.toFixed(2)} ms with those of other groups (×${(withUnmatched / without).toFixed(2)}), ` +
    `${withEvents.toFixed(2)} ms with a delivery (×${(withEvents / without).toFixed(2)})`,
);
service.kill();
process.exit(0);
