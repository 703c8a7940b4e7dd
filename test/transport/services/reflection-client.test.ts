// A client that has no protos of the service and shares no code with it: it
// asks reflection what there is, builds clients from the responses alone, and
// calls with them.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import * as grpc from "@grpc/grpc-js";
import {
  loadFileDescriptorSetFromBuffer,
  loadSync,
  type MessageTypeDefinition,
  type PackageDefinition,
  type ServiceDefinition,
} from "@grpc/proto-loader";
import { type Harness, startHarness } from "../../support/harness.js";
import { sample } from "../../support/scale.js";
import { LIMIT_MS } from "../../support/wait-until.js";

const IAM = "chainguard.platform.iam.v2beta1";
const PING = "chainguard.platform.ping.v2beta1.PingService";
const statusType = loadSync("google/rpc/status.proto", {
  includeDirs: ["node_modules/google-proto-files"],
  keepCase: true,
})["google.rpc.Status"] as MessageTypeDefinition<object, object>;
const VERSIONS = ["v1", "v1alpha"];

let service: Harness;
before(async () => {
  service = await startHarness();
});
after(() => service.stop());

for (const version of VERSIONS) {
  test(`${version}: clients of all services can be built from what reflection says`, async () => {
    const reflection = new Reflection(service.url, version);
    const names = await reflection.services();
    assert.deepEqual([...names].sort(), listServices());
    // Each service by one of the versions in turn, which tell the same of it.
    for (const name of names.filter((_, column) => sample(VERSIONS, column).includes(version))) {
      const methods = await reflection.describe(name);
      assert.ok(Object.keys(methods).length > 0, `${name} has methods`);
      for (const [method, { path, requestSerialize, responseDeserialize }] of Object.entries(methods)) {
        assert.equal(path, `/${name}/${method}`);
        assert.deepEqual(responseDeserialize(requestSerialize({})), {}, `${path} can be called`);
      }
    }
    reflection.close();
  });

  test(`${version}: the details of errors can be read by what reflection says`, async () => {
    const reflection = new Reflection(service.url, version);
    for (const name of [
      "ErrorInfo",
      "BadRequest",
      "PreconditionFailure",
      "QuotaFailure",
      "ResourceInfo",
      "RetryInfo",
    ]) {
      const types = await reflection.describeFile(`google.rpc.${name}`);
      assert.ok(`google.rpc.${name}` in types);
    }
    const { group, token } = await service.organisation(`details ${version}`);
    const groups = new Caller(service.url, await reflection.describe(`${IAM}.GroupsService`), token);
    const call = groups.call("CreateGroup", { parent: group, group: { name: "Core" } });
    const error = await call.then(
      () => assert.fail("a group has a wrong name"),
      (rejected: grpc.ServiceError) => rejected,
    );
    const types = await reflection.describeFile("google.rpc.BadRequest");
    const read = (name: string, bytes: Buffer) =>
      (types[name] as MessageTypeDefinition<object, Record<string, unknown>>).deserialize(bytes);
    const status = error.metadata.get("grpc-status-details-bin")[0] as Buffer;
    const { details } = statusType.deserialize(status) as { details: { type_url: string; value: Buffer }[] };
    const named = details.map(({ type_url: url, value }) => read(url.replace("type.googleapis.com/", ""), value));
    assert.equal(named[0]?.reason, "INVALID_ARGUMENT");
    assert.match(JSON.stringify(named[1]?.field_violations), /"field":"name"/);
    reflection.close();
    groups.close();
  });

  test(`${version}: clients built so call and are answered`, async () => {
    const reflection = new Reflection(service.url, version);
    const { group: root, token } = await service.organisation(`mirror ${version}`);
    const ping = new Caller(service.url, await reflection.describe(PING));
    assert.deepEqual(await ping.call("Ping", {}), { response: "pong" });

    const groups = new Caller(service.url, await reflection.describe(`${IAM}.GroupsService`), token);
    const made = await groups.call("CreateGroup", { parent: root, group: { name: "team", description: "the first" } });
    // What is built from descriptors has the names of the protos.
    const { uid, create_time: created, update_time: updated, ...rest } = made;
    assert.match(String(uid), new RegExp(`^${root}/[0-9a-f]{16}$`));
    assert.deepEqual([rest, updated], [{ name: "team", description: "the first" }, created]);
    assert.deepEqual(await groups.call("GetGroup", { uid }), made);
    const { uid: second } = await groups.call("CreateGroup", { parent: root, group: { name: "other" } });
    const page = await groups.call("ListGroups", {
      uidp: { descendants_of: root },
      order_by: "name desc",
      page_size: 1,
    });
    const { next_page_token: next, ...first } = page;
    assert.deepEqual(first, { groups: [made], total_count: "2" });
    const last = { uidp: { descendants_of: root }, order_by: "name desc", page_token: next, skip: 0 };
    const { groups: others } = await groups.call("ListGroups", last);
    assert.deepEqual(
      (others as { uid: string }[]).map((other) => other.uid),
      [second],
    );

    await assert.rejects(groups.call("CreateGroup", { parent: root, group: {} }), {
      code: grpc.status.INVALID_ARGUMENT,
      details: "Invalid argument: name: name must match ^[a-z0-9 ._-]{1,}$",
    });
    await assert.rejects(groups.call("DeleteGroup", { uid: root }), {
      code: grpc.status.FAILED_PRECONDITION,
      details: "Precondition failed: cannot delete group with child groups",
    });
    const nobody = new Caller(service.url, await reflection.describe(`${IAM}.GroupsService`));
    await assert.rejects(nobody.call("GetGroup", { uid }), {
      code: grpc.status.UNAUTHENTICATED,
      details: "Unauthenticated: authorization: a valid bearer token is required",
    });
    for (const client of [ping, groups, nobody, reflection]) client.close();
  });
}

// By the text of the protos, so that none can be forgotten here.
function listServices(): string[] {
  const served = readdirSync("proto", { recursive: true, encoding: "utf8" }).flatMap((file) => {
    if (!file.endsWith(".proto")) return [];
    const text = readFileSync(join("proto", file), "utf8");
    const scope = /^package (\S+);$/m.exec(text)?.[1] ?? "";
    return [...text.matchAll(/^service (\S+) \{$/gm)].map(([, name]) => `${scope}.${name}`);
  });
  const own = VERSIONS.map((version) => `grpc.reflection.${version}.ServerReflection`);
  return [...served, ...own, "grpc.health.v1.Health"].sort();
}

interface Answer {
  readonly fileDescriptorResponse?: { readonly fileDescriptorProto: readonly Buffer[] };
  readonly listServicesResponse?: { readonly service: readonly { readonly name: string }[] };
}

/** A client of reflection, made from the protos that gRPC publishes. */
class Reflection {
  readonly #client: grpc.Client;
  readonly #method: ServiceDefinition[string];

  constructor(url: string, version: string) {
    const includeDirs = ["node_modules/@grpc/reflection/build/proto"];
    const protos = loadSync(`grpc/reflection/${version}/reflection.proto`, { includeDirs });
    const methods = protos[`grpc.reflection.${version}.ServerReflection`] as ServiceDefinition;
    this.#method = methods.ServerReflectionInfo as ServiceDefinition[string];
    this.#client = new grpc.Client(new URL(url).host, grpc.credentials.createInsecure());
  }

  async services(): Promise<string[]> {
    const { listServicesResponse } = await this.#ask({ listServices: "*" });
    return (listServicesResponse?.service ?? []).map(({ name }) => name);
  }

  /** The methods of a service. */
  async describe(name: string): Promise<ServiceDefinition> {
    const definition = await this.describeFile(name);
    assert.ok(name in definition, `${name} is described`);
    return definition[name] as ServiceDefinition;
  }

  /** All that is in the file of a symbol. */
  async describeFile(symbol: string): Promise<PackageDefinition> {
    const { fileDescriptorResponse } = await this.#ask({ fileContainingSymbol: symbol });
    const files = fileDescriptorResponse?.fileDescriptorProto ?? [];
    return loadFileDescriptorSetFromBuffer(descriptorSet(files), { longs: String });
  }

  close(): void {
    this.#client.close();
  }

  #ask(question: object): Promise<Answer> {
    const { path, requestSerialize, responseDeserialize } = this.#method ?? assert.fail();
    const options = { deadline: Date.now() + LIMIT_MS };
    const stream = this.#client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, options);
    return new Promise((resolve, reject) => {
      const responses: Answer[] = [];
      stream.on("data", (answer: Answer) => responses.push(answer));
      stream.on("error", reject);
      stream.on("end", () => {
        const [answer, ...more] = responses;
        if (answer === undefined || more.length > 0) reject(new Error(`${responses.length} answers`));
        else resolve(answer);
      });
      stream.end(question);
    });
  }
}

// A FileDescriptorSet is its files, each as field 1 with its length.
function descriptorSet(files: readonly Buffer[]): Buffer {
  return Buffer.concat(
    files.flatMap((file) => {
      const length: number[] = [];
      for (let rest = file.length; ; rest >>>= 7) {
        length.push(rest > 127 ? (rest & 127) | 128 : rest);
        if (rest < 128) break;
      }
      return [Buffer.from([0x0a, ...length]), file];
    }),
  );
}

/** A client of the methods that reflection described. */
class Caller {
  readonly #client: grpc.Client;
  readonly #methods: ServiceDefinition;
  readonly #metadata = new grpc.Metadata();

  constructor(url: string, methods: ServiceDefinition, token?: string) {
    this.#client = new grpc.Client(new URL(url).host, grpc.credentials.createInsecure());
    this.#methods = methods;
    if (token !== undefined) this.#metadata.set("authorization", `Bearer ${token}`);
  }

  call(name: string, request: object): Promise<Record<string, unknown>> {
    const { path, requestSerialize, responseDeserialize } = this.#methods[name] ?? assert.fail(`no method ${name}`);
    const options = { deadline: Date.now() + LIMIT_MS };
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        this.#metadata,
        options,
        (error, answer) => (error ? reject(error) : resolve({ ...answer })),
      );
    });
  }

  close(): void {
    this.#client.close();
  }
}
