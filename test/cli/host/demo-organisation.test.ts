// The sample organisation of `arbor demo` on a machine so busy that the service rejects calls.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { createSampleResources, sampleWrites } from "../../../src/cli/host/demo/organisation.js";
import { connectTo } from "../../../src/client/index.js";
import { type Harness, startHarness } from "../../support/harness.js";

const UNAVAILABLE = JSON.stringify({ code: "unavailable", message: "the service is overloaded, try again" });

let harness: Harness;
before(async () => {
  harness = await startHarness();
});
after(() => harness.stop());

/** Rejects the first call of each method, and forwards all others to the service. */
async function startBusyService() {
  const rejected = new Set<string>();
  const server = createServer(async (req, res) => {
    const { url = "", headers } = req;
    const isFirst = !rejected.has(url);
    rejected.add(url);
    const body = Buffer.concat(await req.toArray());
    res.setHeader("content-type", "application/json");
    if (isFirst) return res.writeHead(503).end(UNAVAILABLE);
    const forwarded = { authorization: headers.authorization ?? "", "content-type": headers["content-type"] ?? "" };
    const answer = await fetch(`${harness.url}${url}`, { method: "POST", headers: forwarded, body });
    res.setHeader("content-type", answer.headers.get("content-type") ?? "");
    return res.writeHead(answer.status).end(Buffer.from(await answer.arrayBuffer()));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, rejected, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test("is created although the first call of each method is rejected, and only with retries of its writes", async (t) => {
  const { group, token } = await harness.organisation("demo.example");
  const create = async (retryWrites: typeof sampleWrites) => {
    const { server, rejected, url } = await startBusyService();
    t.after(() => server.close());
    const connection = connectTo({
      baseUrl: url,
      token: { token: () => token },
      protocol: "connect",
      retryWrites,
      backoffMs: 1,
    });
    t.after(() => connection.close());
    return { sample: await createSampleResources(connection, group, "https://issuer.example"), rejected };
  };
  await assert.rejects(create([]), /overloaded/, "the control");
  const { sample, rejected } = await create(sampleWrites);
  assert.equal(sample.root, group);
  for (const { parent, name } of sampleWrites) assert.ok(rejected.has(`/${parent.typeName}/${name}`), name);
});
