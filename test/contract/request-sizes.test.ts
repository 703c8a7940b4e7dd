// How large a request of each method may be, and that nobody sends a body before
// the service knows who they are.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { after, before, describe, it } from "node:test";
import { createFileRegistry, type DescMethod, fromBinary, hasOption } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { iam } from "#gen/chainguard/annotations/annotations_pb.js";
import { readAuthRule } from "../../src/pipeline/method-table.js";
import { type Harness, startHarness } from "../support/harness.js";
import { isCampaign } from "../support/scale.js";
import { sendHttp } from "../support/send-http.js";

const KIB = 1024;
const MIB = 1024 * KIB;

/** The methods that take more than the rest, by the end of their path. */
const LARGER: Readonly<Record<string, number>> = {
  "ReposService/CreateRepo": MIB,
  "ReposService/UpdateRepo": MIB,
  "ReposService/UpdateRepoReadme": 512 * KIB,
  "OverlaysService/CreateOverlay": MIB,
  "OverlaysService/UpdateOverlay": MIB,
  "Registry/CreateRepo": MIB,
  "Registry/UpdateRepo": MIB,
  "AdvisoriesService/ListAdvisories": MIB,
  "Advisories/Create": MIB,
  "Advisories/Update": MIB,
  "Advisories/List": MIB,
};

const image = fromBinary(FileDescriptorSetSchema, readFileSync(new URL("../../gen/api.binpb", import.meta.url)));
const methods = [...createFileRegistry(image)]
  .filter((type) => type.kind === "service" && /^(?:chainguard|arbor)\./.test(type.typeName))
  .flatMap((service) => (service.kind === "service" ? service.methods : []))
  // Streams take messages in frames, which are tested with the front ends.
  .filter(({ methodKind }) => methodKind === "unary");

function pathOf(method: DescMethod): string {
  return `${method.parent.typeName}/${method.name}`;
}

function maxBytesOf(method: DescMethod): number {
  const larger = Object.entries(LARGER).find(([end]) => pathOf(method).endsWith(`.${end}`));
  return larger?.[1] ?? (hasOption(method, iam) && readAuthRule(method).mode === "guarded" ? 256 * KIB : 16 * KIB);
}

let harness: Harness;
let token: string;
before(async () => {
  harness = await startHarness();
  ({ token } = await harness.organisation("acme.example"));
});
after(() => harness.stop());

// An empty message of any size.
const padMessage = (bytes: number) => `{${" ".repeat(bytes - 2)}}`;

async function post(method: DescMethod, bytes: number): Promise<string> {
  const response = await sendHttp(`${harness.url}/${pathOf(method)}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: padMessage(bytes),
  });
  const { code } = JSON.parse(response.text) as { code?: string };
  return code ?? "ok";
}

it("there are methods to try, and all that take more are among them", () => {
  assert.ok(methods.length > 180, `${methods.length} methods`);
  for (const end of Object.keys(LARGER))
    assert.ok(
      methods.some((method) => pathOf(method).endsWith(`.${end}`)),
      end,
    );
});

// Version 2 has the limits of its beta, which the authorization matrix shows.
for (const method of methods.filter(({ parent }) => isCampaign || !parent.typeName.includes(".v2."))) {
  const maxBytes = maxBytesOf(method);
  it(`${pathOf(method)} takes ${maxBytes} bytes and not one more`, async () => {
    assert.notEqual(await post(method, maxBytes), "resource_exhausted");
    assert.equal(await post(method, maxBytes + 1), "resource_exhausted");
  });
}

describe("a caller who is not known is answered before the body", () => {
  for (const [name, path, contentType] of [
    ["REST", "/iam/v2beta1/groups/abc", "application/json"],
    ["Connect", "/chainguard.platform.iam.v2beta1.GroupsService/CreateGroup", "application/json"],
    ["gRPC-Web", "/chainguard.platform.iam.v2beta1.GroupsService/CreateGroup", "application/grpc-web+proto"],
  ] as const) {
    it(name, async () => {
      const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: ${contentType}\r\nContent-Length: 100000\r\n\r\n`;
      const text = await new Promise<string>((resolve, reject) => {
        const socket = connect(Number(new URL(harness.url).port), "127.0.0.1", () => socket.write(head));
        socket.once("data", (bytes) => {
          resolve(bytes.toString("latin1"));
          socket.destroy();
        });
        socket.on("error", reject);
      });
      assert.match(text, contentType === "application/json" ? /^HTTP\/1\.1 401 / : /grpc-status: 16\r\n/i);
    });
  }
});
