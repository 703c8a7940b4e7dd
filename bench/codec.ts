// The writers and readers of messages against those of protobuf-es, in alternating slices of processor time: whether they
// pay for themselves. Compare what they save with the time of a whole call (bench/compare.ts).
//
//   node --import tsx bench/codec.ts [--slices 11]
import { parseArgs } from "node:util";
import { create, fromJsonString, toBinary, toJsonString } from "@bufbuild/protobuf";
import {
  CreateGroupRequestSchema,
  GroupSchema,
  GroupsService,
  ListGroupsResponseSchema,
} from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { encodeMessage } from "../src/codec/frame-writer.js";
import { readMessage } from "../src/codec/json-reader.js";
import { createJsonWriters } from "../src/codec/json-writer.js";
import { createTypeRegistry } from "../src/codec/type-registry.js";
import { parseStrictJson } from "../src/kernel/strict-json.js";
import { median } from "./figures.js";

/** The same work by our code and by the library. */
interface Pair {
  readonly name: string;
  readonly calls: number;
  readonly own: () => unknown;
  readonly library: () => unknown;
}

const { values } = parseArgs({ options: { slices: { type: "string", default: "11" } } });
const slices = Number(values.slices);
const registry = createTypeRegistry(GroupsService.methods.map((desc) => ({ desc })));
const writers = createJsonWriters(registry);
const time = { seconds: 1_700_000_000n, nanos: 123_000_000 };
const groupOf = (i: number) => ({
  uid: `${"c".repeat(40)}/${String(i).padStart(16, "0")}`,
  name: `group ${i}`,
  description: "A group that is read again and again.",
  createTime: time,
  updateTime: time,
});
const group = groupOf(1);
const page = { groups: Array.from({ length: 50 }, (_, i) => groupOf(i)), nextPageToken: "x".repeat(100) };
const body = JSON.stringify({ parent: group.uid, group: { name: group.name, description: group.description } });
const options = { alwaysEmitImplicit: true, registry };

const pairs: readonly Pair[] = [
  {
    name: "a group in binary",
    calls: 10_000,
    own: () => encodeMessage(GroupSchema, group),
    library: () => toBinary(GroupSchema, create(GroupSchema, group)),
  },
  {
    name: "50 groups in binary",
    calls: 400,
    own: () => encodeMessage(ListGroupsResponseSchema, page),
    library: () => toBinary(ListGroupsResponseSchema, create(ListGroupsResponseSchema, page)),
  },
  {
    name: "a group in JSON",
    calls: 10_000,
    own: () => writers.answer(GroupSchema)(group),
    library: () => toJsonString(GroupSchema, create(GroupSchema, group), options),
  },
  {
    name: "50 groups in JSON",
    calls: 400,
    own: () => writers.answer(ListGroupsResponseSchema)(page),
    library: () => toJsonString(ListGroupsResponseSchema, create(ListGroupsResponseSchema, page), options),
  },
  {
    name: "the JSON of a request",
    calls: 10_000,
    own: () =>
      readMessage(CreateGroupRequestSchema, parseStrictJson(body, "body"), "", { registry, ignoreUnknown: true }),
    library: () => fromJsonString(CreateGroupRequestSchema, body, { registry, ignoreUnknownFields: true }),
  },
];

function measure(run: () => unknown, calls: number): number {
  const before = process.cpuUsage();
  for (let i = 0; i < calls; i++) run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / calls;
}

for (const { name, calls, own, library } of pairs) {
  for (const run of [own, library]) measure(run, calls);
  const us = { own: [] as number[], library: [] as number[] };
  for (let i = 0; i < slices; i++) {
    for (const side of i % 2 === 0 ? (["own", "library"] as const) : (["library", "own"] as const))
      us[side].push(measure(side === "own" ? own : library, calls));
  }
  const ratio = median(us.own.map((one, i) => (us.library[i] ?? Number.NaN) / one));
  const saved = median(us.library) - median(us.own);
  console.log(
    `${name}: own ${median(us.own).toFixed(2)} us, library ${median(us.library).toFixed(2)} us, ` +
      `ratio ${ratio.toFixed(2)}, saves ${saved.toFixed(2)} us`,
  );
}
