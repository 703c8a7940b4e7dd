// The settings of deploy/kubernetes, and what must agree with them: probes and the time a pod has to stop.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { resolveSettings } from "../../src/config/config.js";
import { settingNames, variableOf } from "../../src/config/settings.js";
import { runCommand } from "../support/command.js";
import { type Harness, startHarness } from "../support/harness.js";
import { PROJECT } from "../support/project.js";
import { sendHttp } from "../support/send-http.js";
import { tempDir } from "../support/temp-dir.js";
import { type Deep, environmentOf, OVERLAYS, podTemplateOf, render } from "./overlays.js";

const MOUNTED = "/run/secrets/arbor";
/** What the process needs after its drain time: traces and the store are closed. */
const EXIT_S = 5;

const schema = JSON.parse(readFileSync(join(PROJECT, "docs/settings.schema.json"), "utf8"));
const validate = new Ajv2020({ strict: false }).compile({ ...schema, additionalProperties: false });
const nameOf = new Map(settingNames.map((name) => [variableOf(name), name as string]));

// The keys of the file of settings, which the schema describes. A file has switches as booleans.
function toConfigFile(env: Readonly<Record<string, string>>): Record<string, unknown> {
  const switches: Readonly<Record<string, boolean>> = { true: true, false: false };
  return Object.fromEntries(
    Object.entries(env).map(([variable, value]) => [nameOf.get(variable) ?? variable, switches[value] ?? value]),
  );
}

// The files that Secrets become, in a directory of this machine.
function mountSecrets(env: Readonly<Record<string, string>>): Record<string, string> {
  const directory = tempDir();
  writeFileSync(join(directory, "database-url"), "postgres://arbor@db.example.com/arbor\n", { mode: 0o400 });
  writeFileSync(join(directory, "master.key"), `${Buffer.alloc(32, 1).toString("base64")}\n`, { mode: 0o400 });
  return Object.fromEntries(
    Object.entries(env).map(([name, value]) => [name, value.replace(MOUNTED, directory)] as const),
  );
}

for (const overlay of OVERLAYS) {
  describe(`settings of the overlay ${overlay}`, () => {
    const env = environmentOf(render(overlay));

    it("are settings, with values that the schema allows", () => {
      assert.ok(validate(toConfigFile(env)), JSON.stringify(validate.errors));
    });

    it("are those that arbor config print shows", async () => {
      const given = mountSecrets(env);
      const { code, stdout, stderr } = await runCommand(["config", "print", "--json"], given);
      assert.equal(code, 0, stderr);
      const printed = JSON.parse(stdout) as Record<string, { value: string; name?: string }>;
      for (const [variable, value] of Object.entries(given)) {
        const found = printed[nameOf.get(variable) ?? ""];
        assert.deepEqual([found?.name, found?.value], [variable, value]);
      }
      const { code: checked, stderr: problems } = await runCommand(["config", "check"], given);
      assert.equal(checked, 0, problems);
    });

    it("name no file that no Secret has", () => {
      const { spec } = podTemplateOf(render(overlay));
      const paths = spec.containers[0].volumeMounts.map(({ mountPath }: Deep) => mountPath);
      const files = Object.values(env).filter((value) => value.startsWith("/"));
      for (const file of files)
        assert.ok(
          paths.some((path: string) => file.startsWith(`${path}/`)),
          file,
        );
    });
  });
}

it("a setting that is none, or with a wrong word, is found: the control", async () => {
  for (const planted of [{ ARBOR_DRAIN_TIMES: "30s" }, { ARBOR_ROOT_CREATION: "nobody" }]) {
    const env = { ...environmentOf(render("sqlite")), ...planted } as Record<string, string>;
    assert.equal(validate(toConfigFile(env)), false);
    assert.notEqual((await runCommand(["config", "check"], env)).code, 0);
  }
});

for (const overlay of ["sqlite", "postgresql"] as const) {
  it(`a pod of the overlay ${overlay} has time for its drain delay and its drain time`, () => {
    const manifests = render(overlay);
    const { spec } = podTemplateOf(manifests);
    const { drainDelay, drainTime } = resolveSettings({ env: mountSecrets(environmentOf(manifests)), flags: {} });
    assert.equal(spec.containers[0].lifecycle, undefined, "a hook would only add to the delay");
    assert.ok(drainDelay >= 3 && drainTime > 0);
    assert.ok(spec.terminationGracePeriodSeconds > drainDelay + drainTime + EXIT_S);
  });
}

describe("probes", () => {
  let harness: Harness;
  before(async () => {
    const { ARBOR_BASE_URL: baseUrl = "" } = environmentOf(render("sqlite"));
    harness = await startHarness({ baseUrl, behindProxy: true });
  });
  after(() => harness.stop());

  for (const kind of ["startupProbe", "livenessProbe", "readinessProbe"]) {
    it(`${kind} asks what the service answers`, async () => {
      const [container] = podTemplateOf(render("postgresql")).spec.containers as Deep[];
      const { path, port } = container[kind].httpGet;
      assert.equal(path, kind === "readinessProbe" ? "/readyz" : "/healthz");
      assert.equal(port, "http");
      // The kubelet names the address of the pod.
      const headers = { host: "10.1.2.3:8080", "user-agent": "kube-probe/1.33" };
      assert.equal((await sendHttp(`${harness.url}${path}`, { headers })).status, 200);
      assert.notEqual((await sendHttp(`${harness.url}${path}x`, { headers })).status, 200, "the control");
    });
  }

  it("have the ports on which the settings listen", () => {
    for (const overlay of ["sqlite", "postgresql"] as const) {
      const manifests = render(overlay);
      const env = environmentOf(manifests);
      const ports = podTemplateOf(manifests).spec.containers[0].ports.map(({ containerPort }: Deep) => containerPort);
      assert.deepEqual(
        ports,
        [env.ARBOR_LISTEN, env.ARBOR_METRICS_LISTEN].map((address) => Number(address?.split(":")[1])),
      );
    }
  });
});
