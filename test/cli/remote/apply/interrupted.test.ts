// An `arbor apply` that ends at any call, and is repeated, ends as one that was not interrupted.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code, CommandError } from "../../../../src/cli/errors.js";
import type { MethodCall } from "../../../../src/cli/remote/method-call.js";
import { type ApplyWorld, applyBy, OWNER, planBy, startApplyWorld } from "./apply-world.js";

let world: ApplyWorld;
before(async () => {
  world = await startApplyWorld();
});
after(() => world.stop());

const first = (organization: string) => ({
  organization,
  groups: [{ path: "/", description: "first" }, { path: "/old" }, { path: "/team", description: "a" }],
  roles: [
    { path: "/team/deployer", capabilities: ["groups.list"] },
    { path: "/team/gone", capabilities: ["repo.list"] },
  ],
  identities: [
    { path: "/team/ci", claimMatch: { issuer: "https://issuer.example", subject: "a" } },
    { path: "/team/former", awsIdentity: { awsAccount: "123456789012", arn: "arn:a", userId: "u" } },
  ],
  roleBindings: [
    { group: "/", identity: OWNER, role: "owner" },
    { group: "/team", identity: "/team/ci", role: "/team/deployer" },
    { group: "/team", identity: "/team/former", role: "/team/gone" },
  ],
  subscriptions: [{ group: "/team", sink: "https://old.example/x" }],
});

const second = (organization: string) => ({
  organization,
  groups: [{ path: "/", description: "second" }, { path: "/team" }, { path: "/team/sub" }, { path: "/team/sub/deep" }],
  issuerGuard: { issuers: [{ issuer: "https://issuer.example" }], aws: false },
  roles: [{ path: "/team/deployer", capabilities: ["groups.list", "repo.list"] }],
  identities: [
    {
      path: "/team/ci",
      description: "changed",
      claimMatch: { issuer: "https://issuer.example", subject: "b" },
      conditions: [{ path: ["a"], equals: 1 }],
    },
    {
      path: "/team/sub/new",
      claimMatch: { issuer: "https://issuer.example", subject: "c" },
      conditions: [{ path: ["b"], exists: true }],
    },
  ],
  roleBindings: [
    { group: "/", identity: OWNER, role: "owner" },
    { group: "/team", identity: "/team/ci", role: "/team/deployer", endTime: "2090-01-01T00:00:00.000Z" },
    { group: "/team/sub", identity: "/team/sub/new", role: "/team/deployer" },
  ],
  subscriptions: [{ group: "/team/sub", sink: "https://new.example/x" }],
});

/**
 * How a call goes wrong. A process that is killed makes no more calls; after an error the command may look what came of it. To
 * be killed before a call that changes something is the same as after the one before it.
 */
const faults = {
  "killed after a call, before its response": () => new Error("killed"),
  "the response is lost": () => new CommandError(Code.Unavailable, "unavailable"),
} as const;

/** Lets one of the calls that change something go wrong. */
function failAt(call: MethodCall, k: number, fault: () => Error) {
  const counted = { calls: 0 };
  const failing: MethodCall = async (method, request) => {
    const isRead = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
    const isFailing = !isRead && counted.calls++ === k;
    const response = await call(method, request);
    if (isFailing) throw fault();
    return response;
  };
  return { counted, failing };
}

describe("arbor apply that is interrupted", () => {
  for (const [name, fault] of Object.entries(faults)) {
    it(`ends as one that is not, whichever the call: ${name}`, async () => {
      const expected = second("x");
      let interrupted = 0;
      for (let k = 0, isWhole = false; !isWhole; k++) {
        const organisation = await world.organisation("x");
        await world.withCall(async (call) => {
          await applyBy(call, organisation, first("x"));
          const { counted, failing } = failAt(call, k, fault);
          try {
            await applyBy(failing, organisation, expected);
            isWhole = counted.calls <= k;
          } catch (error) {
            if (!(error instanceof CommandError) && (error as Error).message !== "killed") throw error;
            interrupted++;
          }
          await applyBy(call, organisation, expected);
          const { plan, file } = await planBy(call, organisation, expected);
          assert.deepEqual(sorted(file), sorted(withDescriptions(expected)), `call ${k}`);
          assert.deepEqual(plan.changes, [], `call ${k}`);
        });
      }
      assert.ok(interrupted > 8, `${interrupted} interruptions`);
    });
  }

  it("would end with two of one name if nothing was looked for", async () => {
    const organisation = await world.organisation("control");
    const expected = { organization: "control", groups: [{ path: "/team" }] };
    await world.withCall(async (call) => {
      // The lists are empty, as for a plan that was made before.
      const blind: MethodCall = async (method, request) => (method.name === "ListGroups" ? {} : call(method, request));
      await applyBy(blind, organisation, expected);
      await applyBy(blind, organisation, expected);
      await assert.rejects(
        applyBy(call, organisation, expected),
        /\/team is the name of several, with the uids .* and /,
      );
    });
  });
});

/** The file leaves the description of `/team` as it is. */
function withDescriptions(file: ReturnType<typeof second>) {
  const groups = file.groups.map((group) => (group.path === "/team" ? { ...group, description: "a" } : group));
  const issuerGuard = { ...file.issuerGuard, staticKeys: true, servicePrincipals: true };
  return { ...file, groups, issuerGuard };
}

/** Sorts keys and items, whose order means nothing. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, one]) => [key, sorted(one)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}
