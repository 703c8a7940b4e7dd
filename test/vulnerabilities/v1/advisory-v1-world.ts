// A service with advisories and people who write them, for tests of version 1.
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  Advisories,
  type Advisory,
  type AdvisoryEvent,
  type AdvisoryEventSchema,
  type AdvisorySchema,
  ReviewStatus,
} from "#gen/chainguard/platform/vulnerabilities/v1/advisories_pb.js";
import { randomIds } from "../../../src/kernel/ids.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import { type ImportCounts, importOsv } from "../../../src/vulnerabilities/osv/import.js";
import { type Wire, wireNames, wireOf } from "../../iam/v1/wires.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { groupRow } from "../../support/rows.js";

export type AdvisoryInit = MessageInitShape<typeof AdvisorySchema>;
export type EventInit = MessageInitShape<typeof AdvisoryEventSchema>;

/** Two organisations, the own one with a group in it, and people with built-in roles, in the own one unless given. */
export interface AdvisoryV1World {
  readonly harness: Harness;
  /** Over REST and gRPC, as `author`. */
  readonly wires: readonly { readonly name: string; readonly wire: Wire }[];
  /** The first of them. */
  readonly wire: Wire;
  readonly ours: string;
  readonly child: string;
  readonly theirs: string;
  /** The tokens of people, by what they may do; their e-mail addresses are `<name>@example.org`. */
  readonly author: string;
  readonly approver: string;
  readonly admin: string;
  readonly viewer: string;
  readonly stranger: string;
  /** Creates an advisory in the own organisation, by `author`. */
  advisory(values?: AdvisoryInit, group?: string): Promise<Advisory>;
  /** Creates an event, by `author` unless given. */
  event(parentId: string, event: EventInit, token?: string): Promise<AdvisoryEvent>;
  /** Imports OSV records into the own root group. */
  importRecords(...records: readonly object[]): Promise<ImportCounts>;
  stop(): Promise<void>;
}

/** All that an advisory has to have. */
export const artifact = { artifactType: "apk", artifactName: "curl", artifactArchitecture: "x86_64" };
/** An event that waits for its review. */
export const pending = {
  status: ReviewStatus.PENDING,
  type: { case: "detection", value: { type: { case: "manual", value: {} } } },
} as const satisfies EventInit;

/** The finding of a scanner. */
export const scan = {
  scanner: "grype",
  subpackageName: "curl-dev",
  componentId: "c1",
  componentName: "libcurl",
  componentVersion: "8.1",
  componentType: "apk",
  componentLocation: "/lib",
  artifactVersion: "8.1-r0",
  scannerVersion: "0.70",
  grypeDbBuilt: "2024-01-01T00:00:00Z",
  grypeDbChecksum: "sha256:1",
};
/** Where a component was and is. */
export const moved = { previousLocation: "/old", newLocation: "/new", note: "moved" };

/** Starts the service. */
export async function startAdvisoryV1World(): Promise<AdvisoryV1World> {
  const harness = await startHarness();
  const { store } = harness.app.installation;
  const [ours, theirs] = [(await harness.organisation("ours")).group, (await harness.organisation("theirs")).group];
  const child = randomIds.newUid(ours);
  await store.write((tx) => tx.table(groupKind).insert(groupRow(child)));
  const person = async (name: string, role: string, group = ours) => {
    const { uid, token } = await harness.identity({ email: `${name}@example.org` });
    await harness.bind(uid, role, group);
    // A caller who may read groups gets NOT_FOUND.
    await harness.bind(uid, "viewer", group);
    return token;
  };
  const author = await person("author", "advisories.creator");
  const wires = wireNames.map((name) => ({ name, wire: wireOf(name, harness.url, author) }));
  const [{ wire } = { wire: wireOf("REST", harness.url, author) }] = wires;
  return {
    harness,
    wires,
    wire,
    ours,
    child,
    theirs,
    author,
    approver: await person("approver", "advisories.approver"),
    admin: await person("admin", "advisories.admin"),
    viewer: await person("viewer", "advisories.viewer"),
    stranger: await person("stranger", "advisories.admin", theirs),
    advisory: (values, group = ours) =>
      wire.call(Advisories.method.create, { parentId: group, advisory: { ...artifact, ...values } }),
    event: (parentId, advisoryEvent, token) =>
      wire.call(Advisories.method.createAdvisoryEvent, { parentId, advisoryEvent }, token),
    importRecords(...records) {
      async function* files() {
        for (const [i, record] of records.entries())
          yield { name: `${i}.json`, read: async () => Buffer.from(JSON.stringify(record)) };
      }
      return importOsv(files(), {
        store,
        groupUid: ours,
        ids: randomIds,
        async onFirstWrite() {},
        onMalformed(file, rule) {
          throw new TypeError(`${file}: ${rule}`);
        },
        onProgress() {},
      });
    },
    async stop() {
      for (const { wire: one } of wires) one.close();
      await harness.stop();
    },
  };
}
