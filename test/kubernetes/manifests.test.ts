// The manifests of deploy/kubernetes: their schemas, the restricted Pod Security Standard, and what belongs together.
import assert from "node:assert/strict";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { parseAllDocuments } from "yaml";
import { spawnSync } from "../support/child-process.js";
import { tempDir } from "../support/temp-dir.js";
import { fieldsIn, type Manifest, readManifests, renderKustomization } from "./kustomize.js";
import { type Deep, find, KUBERNETES, OVERLAYS, podTemplateOf, render, VERSION } from "./overlays.js";
import { containersOf, findBrokenRules, securityRules } from "./pod-security.js";
import { findSchemaProblems } from "./schema.js";

for (const overlay of OVERLAYS) {
  describe(`overlay ${overlay}`, () => {
    it("has only what the schemas of Kubernetes allow", async () => {
      const problems = await Promise.all(render(overlay).map(findSchemaProblems));
      assert.deepEqual(problems.flat(), []);
    });

    for (const { name, level, isKept } of securityRules) {
      it(`keeps the row "${name}" of the Pod Security Standard (${level})`, () => {
        assert.ok(isKept(podTemplateOf(render(overlay)).spec));
      });
    }

    it("reads no token of Kubernetes, no variables of services, and writes to no image", () => {
      const { spec } = podTemplateOf(render(overlay));
      assert.equal(spec.automountServiceAccountToken, false);
      assert.equal(spec.enableServiceLinks, false);
      for (const container of containersOf(spec) as Deep[]) {
        assert.equal(container.securityContext.readOnlyRootFilesystem, true);
        assert.ok(container.resources.requests.memory && container.resources.requests.cpu);
        assert.ok(container.resources.limits.memory);
      }
    });

    it("runs the image of this version", () => {
      const images = containersOf(podTemplateOf(render(overlay)).spec).map(({ image }) => image);
      assert.deepEqual(images, [`registry.example.com/arbor:${VERSION}`]);
    });

    it("mounts all volumes it has, and has all volumes it mounts", () => {
      const { spec } = podTemplateOf(render(overlay));
      const mounted = (containersOf(spec) as Deep[]).flatMap(({ volumeMounts }) => volumeMounts);
      assert.deepEqual(mounted.map(({ name }) => name).sort(), spec.volumes.map(({ name }: Deep) => name).sort());
      const claims = spec.volumes.flatMap(({ persistentVolumeClaim: claim }: Deep) => (claim ? [claim.claimName] : []));
      for (const claim of claims) find(render(overlay), "PersistentVolumeClaim", claim);
      // Root owns the files, and the group of the pod reads them.
      for (const { secret } of spec.volumes) if (secret !== undefined) assert.equal(secret.defaultMode, 0o440);
    });

    it("is in the namespace that enforces the standard", () => {
      const [namespace] = readManifests(join(KUBERNETES, "namespace.yaml")) as Deep[];
      const { labels, name } = namespace.metadata;
      assert.equal(labels["pod-security.kubernetes.io/enforce"], "restricted");
      for (const { metadata } of render(overlay)) assert.equal(metadata.namespace, name);
    });

    const kubectl = spawnSync("kubectl", ["kustomize", join(KUBERNETES, overlay)], { encoding: "utf8" });
    it("is what kustomize renders", { skip: kubectl.status !== 0 && "there is no kubectl" }, () => {
      const expected = parseAllDocuments(kubectl.stdout, { version: "1.1" }).map((document) => document.toJS());
      assert.deepEqual(normalize(render(overlay)), normalize(expected as Manifest[]));
    });
  });
}

for (const overlay of ["sqlite", "postgresql"] as const) {
  describe(`server of the overlay ${overlay}`, () => {
    it("is selected by services, policies and budgets", () => {
      const manifests = render(overlay);
      const { labels } = podTemplateOf(manifests).metadata;
      const selectors = fieldsIn(manifests).flatMap((fields: Deep) => [
        ...(fields.kind === "Service" ? [fields.spec.selector] : []),
        ...["selector", "podSelector", "labelSelector"].flatMap((name) => fields[name]?.matchLabels ?? []),
      ]);
      const own = selectors.filter((selector) => "app.kubernetes.io/name" in selector);
      assert.ok(own.length >= 4);
      for (const selector of own) assert.deepEqual({ ...labels, ...selector }, labels);
    });

    it("has ports for its services, probes and policies", () => {
      const manifests = render(overlay);
      const [container] = containersOf(podTemplateOf(manifests).spec) as Deep[];
      const ports = new Map(container.ports.map(({ name, containerPort }: Deep) => [name, containerPort]));
      assert.deepEqual([...ports.keys()], ["http", "metrics"]);
      const targets = manifests
        .filter(({ kind }) => kind === "Service")
        .map(({ spec }: Deep) => [spec.ports[0].targetPort, spec.ports[0].appProtocol]);
      assert.deepEqual(
        targets.sort(),
        [
          ["http", "kubernetes.io/h2c"],
          ["metrics", "http"],
        ].sort(),
      );
      const policy = find(manifests, "NetworkPolicy").spec;
      assert.deepEqual(
        policy.ingress.map(({ ports: [only] }: Deep) => only.port),
        ["http", "metrics"],
      );
      assert.equal(policy.ingress[0].from, undefined);
      assert.equal(policy.ingress[1].from.length, 1, "metrics are for one namespace");
    });
  });
}

describe("replicas", () => {
  it("SQLite has one, and never two for a moment", () => {
    const { spec } = find(render("sqlite"), "Deployment");
    assert.deepEqual([spec.replicas, spec.strategy], [1, { type: "Recreate" }]);
    assert.equal(find(render("sqlite"), "PersistentVolumeClaim").spec.accessModes[0], "ReadWriteOnce");
  });

  it("PostgreSQL has several, spread, of which one at a time may be missing", () => {
    const manifests = render("postgresql");
    const { spec } = find(manifests, "Deployment");
    assert.ok(spec.replicas >= 2);
    assert.equal(spec.strategy.rollingUpdate.maxUnavailable, 0);
    assert.equal(find(manifests, "PodDisruptionBudget").spec.maxUnavailable, 1);
    const keys = spec.template.spec.topologySpreadConstraints.map(({ topologyKey }: Deep) => topologyKey);
    assert.deepEqual(keys, ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]);
    const policies = manifests.filter(({ kind }) => kind === "NetworkPolicy") as Deep[];
    const open = policies.flatMap(({ spec }) => spec.egress.flatMap(({ ports }: Deep) => ports));
    assert.ok(open.some(({ port }) => port === 5432));
  });
});

describe("controls", () => {
  for (const [where, plant] of Object.entries<(manifests: Deep) => unknown>({
    "in a manifest": (all) => Object.assign(all[0], { planted: 1 }),
    "in a container": (all) => Object.assign(podTemplateOf(all).spec.containers[0], { livenesProbe: {} }),
    "in a security context": (all) => Object.assign(podTemplateOf(all).spec.securityContext, { planted: true }),
    "in a list of a list": (all) =>
      Object.assign(find(all, "NetworkPolicy").spec.ingress[0].ports[0], { planted: "x" }),
    "of another type": (all) => Object.assign(find(all, "Deployment").spec, { replicas: "3" }),
    "that is needed, missing": (all) => delete find(all, "Deployment").spec.selector,
    "with a value that is none of its values": (all) => Object.assign(find(all, "Service").spec, { type: "Nodeport" }),
  })) {
    it(`a field ${where} is found by the schemas`, async () => {
      const manifests = render("postgresql");
      plant(manifests);
      const problems = (await Promise.all(manifests.map(findSchemaProblems))).flat();
      assert.equal(problems.length, 1, problems.join("\n"));
    });
  }

  for (const { name, breakIn } of securityRules) {
    it(`a pod that breaks the row "${name}" is found by that row`, () => {
      const { spec } = podTemplateOf(render("sqlite"));
      breakIn(spec);
      assert.deepEqual(findBrokenRules(spec), [name]);
    });
  }

  for (const [field, line] of Object.entries({
    "a kustomization": "replicas: []",
    "a patch": "patches: [{ path: deployment.yaml, target: { kind: Deployment } }]",
    "an image": "images: [{ name: arbor, newName: a, digest: b }]",
    "a generator": "configMapGenerator: [{ name: a, files: [b] }]",
  })) {
    it(`a field of ${field} that is not rendered here is rejected`, () => {
      const directory = join(tempDir(), "kubernetes");
      cpSync(KUBERNETES, directory, { recursive: true });
      const file = join(directory, "sqlite/kustomization.yaml");
      const key = line.slice(0, line.indexOf(":") + 1);
      const kept = readFileSync(file, "utf8").replace(new RegExp(`^${key}\n(?:  .*\n|  *#.*\n)*`, "m"), "");
      writeFileSync(file, `${kept}${line}\n`);
      assert.throws(() => renderKustomization(join(directory, "sqlite")), /which is not supported/);
    });
  }
});

// kustomize sorts the manifests, and puts elements that a patch adds to a list before the others.
function normalize(manifests: readonly Manifest[]): unknown {
  const sorted = [...manifests].sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
  for (const fields of fieldsIn(sorted)) {
    for (const [name, value] of Object.entries(fields)) {
      if (["volumes", "volumeMounts", "env"].includes(name))
        fields[name] = [...(value as unknown[])].sort((one, other) => (toText(one) < toText(other) ? -1 : 1));
    }
  }
  return JSON.parse(JSON.stringify(sorted));
}

const toText = (value: unknown) => JSON.stringify(Object.entries(value as object).sort());
const keyOf = ({ kind, metadata }: Manifest) => `${kind} ${metadata.name}`;
