// Random changes of directories against the model. Run on both databases.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Store } from "../../../src/store/store.js";
import { chooseScale } from "../../support/scale.js";
import { type RightsRun, type RunFault, runRights } from "./rights-run.js";

/** Registers the suite under `name`. */
export function rightsCampaign(name: string, open: () => Promise<Store>, everyday: number): void {
  describe(name, () => {
    async function run(steps: number, seed: number, fault?: RunFault): Promise<RightsRun> {
      const store = await open();
      try {
        return await runRights(store, steps, seed, fault);
      } finally {
        await store.close();
      }
    }

    it("gives people what a naive model says, and nothing that it denies", async () => {
      const seed = chooseScale(Date.now() % 1_000_000, 62);
      const steps = chooseScale(20_000, everyday);
      const { differences, settled, rights, pending } = await run(steps, seed);
      assert.deepEqual(differences, [], `seed ${seed}`);
      assert.ok(settled > steps / 5 && rights > settled && pending > steps / 20, `${settled}, ${rights}, ${pending}`);
    });

    const faults = ["ignores mappers", "keeps members", "deleted mappings count"] as const;
    for (const fault of [...faults, "forgets work", "reads stored bindings"] as const) {
      it(`control: finds a world that ${fault}`, async () => {
        assert.notDeepEqual((await run(400, 7, fault)).differences, []);
      });
    }
  });
}
