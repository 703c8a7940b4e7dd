import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { create, createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import * as grpc from "@grpc/grpc-js";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "#gen/grpc/reflection/v1alpha/reflection_pb.js";
import { Health, HealthCheckResponse_ServingStatus as Status } from "#gen/health/v1/health_pb.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { LIMIT_MS } from "../../support/wait-until.js";

const GROUPS = "chainguard.platform.iam.v2beta1.GroupsService";
let service: Harness;
before(async () => {
  service = await startHarness();
});
after(() => service.stop());

const transport = () => createGrpcTransport({ baseUrl: service.url });

test("health checks the service as a whole and each RPC service, without a token", async () => {
  const health = createClient(Health, transport());
  for (const name of ["", GROUPS, Health.typeName]) {
    assert.equal((await health.check({ service: name })).status, Status.SERVING, name);
  }
  await assert.rejects(
    health.check({ service: "no.Such" }),
    (error) => ConnectError.from(error).code === Code.NotFound,
  );
  const listed = Object.keys((await health.list({})).statuses);
  for (const name of ["", GROUPS, Health.typeName]) assert.ok(listed.includes(name), `${listed}`);
});

// Its client takes a status for the end of a call only where one frame both begins and ends the response.
test("a health check that is rejected before its body of 5 MB has ended gets its status", async () => {
  const client = new grpc.Client(new URL(service.url).host, grpc.credentials.createInsecure());
  const same = (bytes: Buffer) => bytes;
  const [body, options] = [Buffer.alloc(5_000_000, 0x0a), { deadline: Date.now() + LIMIT_MS }];
  const code = await new Promise((resolve) => {
    const callback = (error: grpc.ServiceError | null) => resolve(error?.code);
    client.makeUnaryRequest("/grpc.health.v1.Health/Check", same, same, body, options, callback);
  });
  assert.equal(code, grpc.status.RESOURCE_EXHAUSTED);
  client.close();
});

test("health watch says what is and stays open", async () => {
  const health = createClient(Health, transport());
  for (const [name, status] of [
    [GROUPS, Status.SERVING],
    ["no.Such", Status.SERVICE_UNKNOWN],
  ] as const) {
    const stop = new AbortController();
    const seen: Status[] = [];
    await assert.rejects(async () => {
      for await (const response of health.watch({ service: name }, { signal: stop.signal })) {
        seen.push(response.status);
        stop.abort();
      }
    });
    assert.deepEqual(seen, [status]);
  }
});

for (const [version, desc] of [
  ["v1", ServerReflection],
  ["v1alpha", ServerReflectionAlpha],
] as const) {
  test(`reflection ${version} gives what a client needs to call a service it has no protos of`, async () => {
    const reflection = createClient(desc as typeof ServerReflection, transport());
    const ask = async (...questions: { case: string; value: unknown }[]) => {
      const requests = (async function* () {
        for (const messageRequest of questions) yield { host: "here", messageRequest } as never;
      })();
      const responses = [];
      for await (const { messageResponse } of reflection.serverReflectionInfo(requests))
        responses.push(messageResponse);
      return responses;
    };

    const [list] = await ask({ case: "listServices", value: "" });
    assert.equal(list?.case, "listServicesResponse");
    const names = list?.case === "listServicesResponse" ? list.value.service.map(({ name }) => name) : [];
    assert.ok(names.includes(GROUPS) && names.includes(desc.typeName), names.join());

    const [byService, byMethod, byFile, extension, numbers, unknown, none] = await ask(
      { case: "fileContainingSymbol", value: GROUPS },
      { case: "fileContainingSymbol", value: `${GROUPS}.GetGroup` },
      { case: "fileByFilename", value: "chainguard/platform/iam/v2beta1/groups.proto" },
      {
        case: "fileContainingExtension",
        value: { containingType: "google.protobuf.MethodOptions", extensionNumber: 72295728 },
      },
      { case: "allExtensionNumbersOfType", value: "google.protobuf.MethodOptions" },
      { case: "fileContainingSymbol", value: "no.Such" },
      { case: "fileByFilename", value: "no/such.proto" },
    );
    assert.equal(byService?.case, "fileDescriptorResponse");
    if (byService?.case !== "fileDescriptorResponse") return;
    const file = byService.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
    assert.equal(file[0]?.name, "chainguard/platform/iam/v2beta1/groups.proto");
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: importsFirst(file) }));
    assert.equal(registry.getService(GROUPS)?.methods.length, 8);
    assert.ok(registry.getExtension("google.api.http"), "options can be read too");
    assert.deepEqual(byMethod, byService);
    assert.deepEqual(byFile, byService);
    assert.equal(extension?.case, "fileDescriptorResponse");
    assert.ok(numbers?.case === "allExtensionNumbersResponse" && numbers.value.extensionNumber.includes(72295728));
    for (const response of [unknown, none]) {
      assert.ok(response?.case === "errorResponse" && response.value.errorCode === Code.NotFound);
    }
  });
}

function importsFirst(files: readonly FileDescriptorProto[]): FileDescriptorProto[] {
  const sorted: FileDescriptorProto[] = [];
  const visit = (file: FileDescriptorProto): void => {
    if (sorted.includes(file)) return;
    for (const name of file.dependency) {
      const imported = files.find((one) => one.name === name);
      assert.ok(imported, `${file.name} imports ${name}`);
      visit(imported);
    }
    sorted.push(file);
  };
  files.forEach(visit);
  return sorted;
}
