// Terms, version 1, beside version 2.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Terms } from "#gen/chainguard/platform/iam/terms_pb.js";
import { TermsService } from "#gen/chainguard/platform/iam/v2beta1/terms_pb.js";
import { type IamWorld, startIamWorld } from "../iam-world.js";
import { type Wire, wireNames, wireOf } from "./wires.js";

const v1 = Terms.method;
const v2 = TermsService.method;

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

for (const name of wireNames) {
  describe(`terms over ${name}`, () => {
    let wire: Wire;
    before(() => {
      wire = wireOf(name, world.url, world.owner.token);
    });
    after(() => wire.close());

    it("are accepted in either version and listed in both", async () => {
      const group = await world.group();
      const accepted = await wire.call(v1.acceptTerms, { group, documentIds: ["eula", "dpa"] });
      assert.deepEqual([accepted.group, accepted.documentIds], [group, ["eula", "dpa"]]);
      await wire.call(v2.acceptTerms, { group, documentIds: ["eula", "sla"] });
      const { items } = await wire.call(v1.listAccepted, { group });
      const { termsAcceptances } = await wire.call(v2.listTermsAcceptances, { group });
      assert.deepEqual(
        items.map(({ docId }) => docId),
        ["dpa", "eula", "sla"],
      );
      for (const [i, { docId, acceptedBy, acceptedAt }] of items.entries()) {
        const other = termsAcceptances[i];
        assert.deepEqual([docId, acceptedBy, acceptedAt], [other?.docId, world.owner.uid, other?.createTime]);
        assert.ok(acceptedAt && Math.abs(timestampMs(acceptedAt) - Date.now()) < 60_000);
      }
    });

    it("are listed all at once, however many", async () => {
      const group = await world.group();
      const ids = Array.from({ length: 450 }, (_, i) => `d${String(i).padStart(3, "0")}`);
      for (let start = 0; start < ids.length; start += 100) {
        await wire.call(v1.acceptTerms, { group, documentIds: ids.slice(start, start + 100) });
      }
      const { items } = await wire.call(v1.listAccepted, { group });
      assert.deepEqual(
        items.map(({ docId }) => docId),
        ids,
      );
    });

    it("count for the groups below, where who accepted them above is for those alone who may list it there", async () => {
      const above = await world.group();
      const group = await world.group(above);
      const sibling = await world.group(above);
      await wire.call(v2.acceptTerms, { group: above, documentIds: ["eula", "dpa"] });
      await wire.call(v1.acceptTerms, { group, documentIds: ["eula", "sla"] });
      const { uid, token } = await world.harness.identity();
      await world.harness.bind(uid, "owner", group);
      const who = world.owner.uid;
      for (const [bearer, whoAbove] of [
        [undefined, who],
        [token, ""],
      ] as const) {
        const { termsAcceptances, totalCount } = await wire.call(v2.listTermsAcceptances, { group }, bearer);
        assert.deepEqual(
          termsAcceptances.map(({ docId, orgUid, acceptedBy }) => [docId, orgUid, acceptedBy]).sort(),
          [
            ["dpa", above, whoAbove],
            ["eula", above, whoAbove],
            ["eula", group, who],
            ["sla", group, who],
          ].sort(),
        );
        assert.equal(totalCount, 4n);
        const paged: (string | undefined)[] = [];
        for (let pageToken = ""; ; ) {
          const page = await wire.call(v2.listTermsAcceptances, { group, pageSize: 1, pageToken }, bearer);
          paged.push(...page.termsAcceptances.map(({ docId, orgUid }) => `${docId} ${orgUid}`));
          pageToken = page.nextPageToken;
          if (pageToken === "") break;
        }
        assert.deepEqual(
          paged,
          termsAcceptances.map(({ docId, orgUid }) => `${docId} ${orgUid}`),
        );
        const { items } = await wire.call(v1.listAccepted, { group }, bearer);
        assert.deepEqual(
          items.map(({ docId, acceptedBy }) => [docId, acceptedBy]).sort(),
          [
            ["dpa", whoAbove],
            ["eula", whoAbove],
            ["eula", who],
            ["sla", who],
          ].sort(),
        );
      }
      assert.match(await wire.expectError(v1.listAccepted, { group: above }, token), /^Permission denied/);
      const besides = await wire.call(v1.listAccepted, { group: sibling });
      assert.deepEqual(besides.items.map(({ docId }) => docId).sort(), ["dpa", "eula"]);
      const ofAbove = await wire.call(v1.listAccepted, { group: above });
      assert.equal(ofAbove.items.length, 2, "what a group below accepted counts there alone");
    });

    it("name what is wrong", async () => {
      const rule = "documentIds must be at most 100 ids of 1 to 256 characters";
      const rows: readonly (readonly [documentIds: string[], group: string, text: string])[] = [
        [[], world.child, "documentIds: documentIds is required"],
        [[""], world.child, `documentIds: ${rule}`],
        [["a"], "nonsense", "group: group must be a uid, such as the service assigns"],
      ];
      for (const [documentIds, group, text] of rows) {
        assert.equal(await wire.expectError(v1.acceptTerms, { group, documentIds }), `Invalid argument: ${text}`);
      }
    });

    it("are hidden from others, who cannot accept them", async () => {
      const { token } = world.foreignOwner;
      const group = world.child;
      assert.match(
        await wire.expectError(v1.acceptTerms, { group, documentIds: ["x"] }, token),
        /^Permission denied: terms.accept at/,
      );
      assert.match(await wire.expectError(v1.listAccepted, { group }, token), /^Permission denied: terms.list at/);
      assert.deepEqual((await wire.call(v1.listAccepted, { group })).items, []);
    });
  });
}
