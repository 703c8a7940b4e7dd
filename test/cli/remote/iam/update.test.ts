// What an update sends: a field mask of exactly what was given.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { toJson } from "@bufbuild/protobuf";
import { IdentitiesService, UpdateIdentityRequestSchema } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { builtinRoleUid } from "../../../../src/kernel/ids.js";
import { type Host, startHost } from "../../../e2e/process.js";
import { type CliWorld, startCliWorld } from "./cli-world.js";
import { type FakeService, startFakeService } from "./fake-service.js";

let world: CliWorld;
before(async () => {
  world = await startCliWorld();
});
after(() => world?.stop());

describe("an update sends", () => {
  // A service of its own, which keeps what it was sent.
  const seen: unknown[] = [];
  let service: FakeService;
  let host: Host;
  before(async () => {
    host = startHost();
    service = await startFakeService((router) => {
      router.service(IdentitiesService, {
        updateIdentity(request) {
          seen.push(toJson(UpdateIdentityRequestSchema, request));
          return request.identity ?? {};
        },
      });
    });
  });
  after(async () => {
    host?.close();
    await service?.stop();
  });

  const cases: readonly {
    readonly name: string;
    readonly args: readonly string[];
    readonly file?: string;
    readonly identity: object;
    readonly mask: string;
  }[] = [
    { name: "a field", args: ["--name", "n"], identity: { name: "n" }, mask: "name" },
    { name: "a field made empty", args: ["--description", ""], identity: {}, mask: "description" },
    {
      name: "fields within a message",
      args: ["--issuer", "i", "--claim-pattern", "a=.*"],
      identity: { claimMatch: { issuer: "i", claimPatterns: { a: ".*" } } },
      mask: "claimMatch.issuer,claimMatch.claimPatterns",
    },
    {
      name: "a map made empty",
      args: ["--claim", ""],
      identity: { claimMatch: {} },
      mask: "claimMatch.claims",
    },
    { name: "a mask alone, which clears", args: ["--update-mask", "company"], identity: {}, mask: "company" },
    {
      name: "the mask given, whatever else is",
      args: ["--name", "n", "--update-mask", "name,claim_match.subject"],
      identity: { name: "n" },
      mask: "name,claimMatch.subject",
    },
    { name: "everything", args: ["--name", "n", "--update-mask", "*"], identity: { name: "n" }, mask: "*" },
    {
      name: "the fields of a file, the empty ones too",
      args: [],
      file: "name: n\ndescription: ''\nclaimMatch:\n  issuer: i\n  claims: {}\n",
      identity: { name: "n", claimMatch: { issuer: "i" } },
      mask: "claimMatch.claims,claimMatch.issuer,description,name",
    },
    {
      name: "a file and over it flags",
      args: ["--subject-pattern", "p"],
      file: '{"name": "n", "uid": "other", "claim_match": {"subject": "s"}}',
      identity: { name: "n", claimMatch: { subjectPattern: "p" } },
      mask: "claimMatch.subject,name,claimMatch.subjectPattern",
    },
  ];
  for (const { name, args, file, identity, mask } of cases) {
    it(name, async () => {
      seen.length = 0;
      const given = file === undefined ? args : [...args, "--file", world.file(file)];
      const env = { ARBOR_API: service.url, ARBOR_TOKEN: "t" };
      const { code, stderr } = await host.run(["iam", "identities", "update", world.root, ...given], env);
      assert.equal(code, 0, stderr);
      assert.deepEqual(seen, [{ identity: { uid: world.root, ...identity }, updateMask: mask }]);
    });
  }
});

describe("an update", () => {
  it("must say what to change", async () => {
    const { code, stderr } = await world.iam("groups", "update", world.root);
    assert.equal(code, 2);
    assert.match(stderr, /^arbor: --update-mask: give a flag for each field to change/);
  });

  it("takes back what get printed, in either format", async () => {
    const make = ["--issuer", "https://idp.example", "--subject", "s", "--claim", "ref=main"];
    const { uid, ...made } = await world.json("identities", "create", "--parent", world.root, "--name", "ci", ...make);
    for (const format of ["json", "yaml"]) {
      const { stdout } = await world.iam("identities", "get", String(uid), "-o", format);
      const changed = world.file(
        stdout.replace(/"?subject"?: "?s"?/, format === "json" ? '"subject": "t"' : "subject: t"),
      );
      const updated = await world.json("identities", "update", String(uid), "--file", changed);
      assert.deepEqual(updated.claimMatch, { ...(made.claimMatch as object), subject: "t" });
      await world.json("identities", "update", String(uid), "--subject", "s");
    }
  });

  it("leaves alone what it does not name", async () => {
    const make = ["--name", "kept", "--capability", "groups.list", "--description", "d"];
    const { uid } = await world.json("roles", "create", "--parent", world.root, ...make);
    const { name, description, capabilities } = await world.json("roles", "update", String(uid), "--name", "new");
    assert.deepEqual([name, description, capabilities], ["new", "d", ["CAP_IAM_GROUPS_LIST"]]);
  });
});

describe("a creation", () => {
  it("takes a file, and flags over it", async () => {
    const path = world.file("name: from file\ndescription: d\ncapabilities: [CAP_IAM_GROUPS_LIST]\n");
    const made = await world.json("roles", "create", "--parent", world.root, "--file", path, "--name", "from flag");
    assert.deepEqual([made.name, made.description, made.capabilities], ["from flag", "d", ["CAP_IAM_GROUPS_LIST"]]);
  });

  it("keeps a secret to itself", async () => {
    const idp = ["--default-role", world.root, "--oidc-issuer", "https://idp.example", "--oidc-client-id", "id"];
    const secret = ["--oidc-client-secret-file", world.file("s3cr3t\n")];
    const result = await world.iam(
      "identity-providers",
      "create",
      "--parent",
      world.root,
      "--name",
      "X",
      ...idp,
      ...secret,
    );
    assert.equal(result.code, 2);
    assert.ok(!JSON.stringify(result).includes("s3cr3t"));
  });

  it("reads keys from a file, and durations as people say them", async () => {
    const keys = JSON.stringify({
      keys: [{ kty: "OKP", crv: "Ed25519", x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" }],
    });
    const issuer = ["--static-keys-issuer", "https://idp.example", "--static-keys-subject", "s"];
    const expiry = new Date(Date.now() + 86_400_000).toISOString();
    const made = await world.json(
      ...["identities", "create", "--parent", world.root, "--name", "static", ...issuer],
      ...["--static-keys-issuer-keys-file", world.file(keys), "--static-keys-expiration-time", expiry],
    );
    const { staticKeys } = made as { staticKeys: Record<string, unknown> };
    assert.deepEqual([staticKeys.issuerKeys, staticKeys.expirationTime], [keys, expiry]);
    const role = ["--role-uid", builtinRoleUid("viewer")];
    const invite = await world.json("group-invites", "create", "--parent", world.root, ...role, "--ttl", "1d2h3m4.5s");
    const lifeMs = Date.parse(String(invite.expirationTime)) - Date.parse(String(invite.createTime));
    assert.equal(lifeMs, (((24 + 2) * 60 + 3) * 60 + 4) * 1000 + 500);
  });
});
