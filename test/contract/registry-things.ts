// A repo, a tag and an advisory, straight into the store, with a text wherever
// one goes.
import { create } from "@bufbuild/protobuf";
import {
  AdvisoryEventSchema,
  ReviewState,
  Severity_Type,
  SeveritySchema,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { randomIds } from "../../src/kernel/ids.js";
import { buildRepo } from "../../src/registry/repos/repo.js";
import { upsertTag } from "../../src/registry/tags/tag.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { repoKind } from "../../src/store/registry/repos.js";
import type { Tx } from "../../src/store/transaction.js";
import { buildEventRow, severitiesToJson } from "../../src/vulnerabilities/advisories/advisory.js";
import { insertAdvisory } from "../../src/vulnerabilities/advisories/advisory-operations.js";
import { bindingRow, roleRow } from "../support/rows.js";

/** The digest of the image that every repo made here has; no registry is called for it. */
export const imageDigest = `sha256:${"1f".repeat(32)}`;

/** Adds a repo to a group; its image is built for `amd64` and for an architecture of that text. */
export async function createRepo(tx: Tx, group: string, text: string, nowMs = 1_000): Promise<string> {
  const row = { ...buildRepo(group, text, { ids: randomIds, nowMs }), description: text, readme: text };
  await tx.table(repoKind).insert({ ...row, config: { customOverlay: { environment: { [text]: text } } } });
  await tx.registry.putManifest({ repoUid: row.uid, digest: imageDigest, images: { amd64: 1_000, [text]: 1_000 } });
  return row.uid;
}

/** Adds a repo with nothing but a name to a group. */
export async function createBareRepo(tx: Tx, group: string, name: string): Promise<string> {
  const row = buildRepo(group, name, { ids: randomIds, nowMs: 1_000 });
  await tx.table(repoKind).insert(row);
  return row.uid;
}

/** Adds a tag to a repo. */
export async function createTag(tx: Tx, repoUid: string, text: string, nowMs = 1_000): Promise<string> {
  const tag = { repoUid, name: text, digest: imageDigest, bundles: [text], nowMs, ids: randomIds };
  return (await upsertTag(tx, tag)).uid;
}

/** Adds an advisory with one event to a group. */
export async function createAdvisory(tx: Tx, groupUid: string, text: string, timeMs = 1_000): Promise<string> {
  const uid = randomIds.newUid(groupUid);
  const artifact = { artifactName: text, artifactType: text, artifactArchitecture: text };
  const component = { componentName: text, componentLocation: text, componentType: text };
  const source = { legacyAdvisoryId: text, sourceKey: uid, sourceHash: "" };
  const times = { createTimeMs: timeMs, updateTimeMs: timeMs, deleteTimeMs: null };
  const severities = severitiesToJson([create(SeveritySchema, { type: Severity_Type.CVSS_V3, score: text })]);
  const event = create(AdvisoryEventSchema, {
    author: text,
    reviewer: text,
    reviewState: ReviewState.APPROVED,
    issue: text,
    type: { case: "fixed", value: { fixedVersion: text, note: text } },
  });
  const advisory = { uid, groupUid, author: text, aliases: [text], severities };
  const events = [buildEventRow(uid, randomIds.newUid(uid), event, timeMs)];
  await insertAdvisory(tx, { ...advisory, ...artifact, ...component, ...source, ...times }, uid, events);
  return uid;
}

/** Gives an identity every capability in a group, also those that no built-in role for customers has. */
export async function letDoEverything(tx: Tx, identity: string, group: string): Promise<void> {
  const role = randomIds.newUid(group);
  await tx.table(roleKind).insert(roleRow(role, { groupUid: group, capabilities: "f".repeat(64) }));
  await tx.table(roleBindingKind).insert(bindingRow(randomIds.newUid(group), identity, role));
}
