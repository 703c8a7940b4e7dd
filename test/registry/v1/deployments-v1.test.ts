// What version 1 alone has: the charts a repo is deployed by, and the settings
// of an organisation's registry.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { create } from "@bufbuild/protobuf";
import { HelmChartSchema } from "#gen/chainguard/platform/registry/chart_pb.js";
import { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import { ReposService } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import type { Somebody } from "../../iam/iam-world.js";
import { type Wire, wireNames, wireOf } from "../../iam/v1/wires.js";
import { type RegistryWorld, startRegistryWorld } from "../registry-world.js";

const v1 = Registry.method;

interface Chart {
  readonly repo: string;
  readonly source?: string | undefined;
  readonly chart?: string | undefined;
}

let world: RegistryWorld;
let manager: Somebody;
before(async () => {
  world = await startRegistryWorld();
  const deployments = ["create", "update", "list"].map((verb) => `registry.deployments.${verb}`);
  const settings = ["registry.settings.list", "registry.settings.update"];
  manager = await world.caller(["groups.list", "repo.delete", ...deployments, ...settings]);
});
after(() => world.stop());

let made = 0;
const newRepo = () => world.repo({ name: `deployed-${made++}` }, world.child);
const charts = [
  { repo: "oci://ghcr.io/z/charts", source: "https://github.com/z/z", chart: "z" },
  { repo: "https://a.example/charts" },
  { repo: "http://localhost:8080/" },
];
const fields = (all: readonly Chart[]) => all.map(({ repo, source, chart }) => [repo, source, chart]);

for (const name of wireNames) {
  describe(`over ${name} a deployment`, () => {
    let wire: Wire;
    before(() => {
      wire = wireOf(name, world.url, manager.token);
    });
    after(() => wire.close());

    it("is created once, replaced, and deleted without charts", async () => {
      const repoId = await newRepo();
      assert.match(
        await wire.expectError(v1.getDeployment, { repoId }),
        /^Not found: deployment: there is no deployment/,
      );
      assert.match(await wire.expectError(v1.updateDeployment, { repoId, charts }), /^Not found: deployment: /);
      const made = await wire.call(v1.createDeployment, { parentId: repoId, charts });
      assert.deepEqual([made.id, fields(made.charts)], [repoId, fields(charts)]);
      assert.deepEqual(await wire.call(v1.getDeployment, { repoId }), made);
      const twice = await wire.expectError(v1.createDeployment, { parentId: repoId, charts });
      assert.equal(twice, `Already exists: deployment: ${repoId}`);
      world.harness.skewMs += 1_000;
      const put = await wire.call(v1.updateDeployment, { repoId, charts: charts.slice(1, 2) });
      assert.deepEqual([fields(put.charts), put.createdAt], [fields(charts.slice(1, 2)), made.createdAt]);
      assert.notDeepEqual(put.updatedAt, made.updatedAt);
      assert.deepEqual(await wire.call(v1.getDeployment, { repoId }), put);
      assert.deepEqual((await wire.call(v1.updateDeployment, { repoId })).charts, []);
      assert.match(await wire.expectError(v1.getDeployment, { repoId }), /^Not found: deployment: /);
      await wire.call(v1.createDeployment, { parentId: repoId, charts });
      await wire.call(ReposService.method.deleteRepo, { uid: repoId });
      assert.match(await wire.expectError(v1.getDeployment, { repoId }), /^Not found: repo: /);
      assert.equal(await world.write((tx) => tx.registry.findDeployment(repoId)), undefined);
    });

    it("may have 100 charts", async () => {
      const hundred = Array.from({ length: 100 }, () => create(HelmChartSchema, { repo: "https://a.example" }));
      const { charts } = await wire.call(v1.createDeployment, { parentId: await newRepo(), charts: hundred });
      assert.equal(charts.length, 100);
    });

    const broken: readonly (readonly [
      charts: readonly { repo: string; source?: string; chart?: string }[],
      at: string,
    ])[] = [
      [[], "charts"],
      [[{ repo: "" }], "charts[0].repo"],
      [[...charts, { repo: "ftp://a.example" }], "charts[3].repo"],
      [[{ repo: "http://a.example" }], "charts[0].repo"],
      [[{ repo: "https://user:secret@a.example" }], "charts[0].repo"],
      [[{ repo: "https://user@a.example" }], "charts[0].repo"],
      [[{ repo: "https://a.example/\nx" }], "charts[0].repo"],
      [[{ repo: `https://a.example/${"x".repeat(512)}` }], "charts[0].repo"],
      [[{ repo: "https://a.example", source: "no url" }], "charts[0].source"],
      [[{ repo: "https://a.example", chart: "" }], "charts[0].chart"],
      [Array.from({ length: 101 }, () => ({ repo: "https://a.example" })), "charts"],
    ];
    for (const [given, at] of broken) {
      it(`of ${JSON.stringify(given).slice(0, 80)} is rejected`, async () => {
        const text = await wire.expectError(v1.createDeployment, {
          parentId: await newRepo(),
          charts: given.map((one) => create(HelmChartSchema, one as object)),
        });
        assert.ok(text.startsWith(`Invalid argument: ${at}: ${at} `), text);
        assert.ok(!text.includes("secret"));
      });
    }
  });

  describe(`over ${name} the settings of a registry`, () => {
    let wire: Wire;
    before(() => {
      wire = wireOf(name, world.url, manager.token);
    });
    after(() => wire.close());

    it("are off by default, and replaced together", async () => {
      const registryId = world.root;
      const update = (values: object) => wire.call(v1.updateRegistrySettings, { registryId, ...values });
      const get = async (token?: string) => {
        const { uniqueTags, eolGracePeriod } = await wire.call(v1.getRegistrySettings, { registryId }, token);
        return [uniqueTags, eolGracePeriod];
      };
      await world.write((tx) => tx.registry.deleteSettings(registryId));
      assert.deepEqual(await get(), [false, false]);
      assert.equal((await update({ uniqueTags: true, eolGracePeriod: true })).registryId, registryId);
      assert.deepEqual(await get(), [true, true]);
      await update({ eolGracePeriod: true });
      assert.deepEqual(await get(), [false, true]);
    });

    it("are those of an organisation that is there, for those who belong to it", async () => {
      const { token } = world.foreignOwner;
      for (const verb of ["list", "update"] as const) {
        const attempt = (registryId: string, by?: string) =>
          verb === "list"
            ? wire.expectError(v1.getRegistrySettings, { registryId }, by)
            : wire.expectError(v1.updateRegistrySettings, { registryId }, by);
        const denied = new RegExp(`^Permission denied: registry.settings.${verb} at `);
        assert.match(await attempt(world.root, token), denied);
        assert.match(await attempt("0".repeat(40)), denied);
        const rule = /^Invalid argument: registryId: registryId must be the id of a root group/;
        assert.match(await attempt(world.child), rule);
      }
    });
  });
}
