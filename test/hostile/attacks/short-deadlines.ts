// An impatient client and a patient one share connections, as threads of one
// program do: 300 lists that may take 5 ms, beside some that may take long. Those
// that expire are lost, and none besides.
import * as grpc from "@grpc/grpc-js";
import { type Attack, Counts, pause } from "../support/attack.js";

const LIST = "/chainguard.platform.iam.v2beta1.GroupsService/ListGroups";
const IMPATIENT = 300;
const PATIENT = 20;
const IMPATIENT_MS = 5;
const PATIENT_MS = 10_000;
const ROUND_MS = 200;

export const attack: Attack = {
  async run({ url, token }, stop) {
    const counts = new Counts();
    // A channel of its own each, so that one client's connection is not the other's.
    const clients = Array.from({ length: 2 }, () => newClient(url));
    const lane = async (client: grpc.Client) => {
      while (!stop.aborted) {
        await deadlineRound(client, token, counts);
        await pause(ROUND_MS, stop);
      }
      client.close();
    };
    await Promise.all(clients.map(lane));
    return counts;
  },
};

/** A client whose calls share one connection. */
export function newClient(url: string): grpc.Client {
  return new grpc.Client(new URL(url).host, grpc.credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
}

/** One round: all at once; what the patient ones are told besides OK is a problem. */
export async function deadlineRound(client: grpc.Client, token: string, counts: Counts): Promise<void> {
  const call = async (ms: number, isPatient: boolean) => {
    const code = await listGroups(client, token, ms);
    const name = code === undefined ? "OK" : (grpc.status[code] ?? String(code));
    counts.add(`${isPatient ? "patient" : "impatient"} ${name}`);
    if (isPatient && code !== undefined) counts.problem(`a patient call ended with ${name}`);
    if (!isPatient && code !== undefined && code !== grpc.status.DEADLINE_EXCEEDED) {
      counts.problem(`an impatient call ended with ${name}`);
    }
  };
  const every = Math.floor(IMPATIENT / PATIENT);
  await Promise.all(
    Array.from({ length: IMPATIENT + PATIENT }, (_, i) => {
      const isPatient = i % (every + 1) === every;
      return call(isPatient ? PATIENT_MS : IMPATIENT_MS, isPatient);
    }),
  );
}

/** Lists groups; resolves with the code of the error, or undefined. */
export function listGroups(client: grpc.Client, token: string, ms: number): Promise<grpc.status | undefined> {
  const metadata = new grpc.Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  const same = (bytes: Buffer) => bytes;
  return new Promise((resolve) => {
    client.makeUnaryRequest(LIST, same, same, Buffer.alloc(0), metadata, { deadline: Date.now() + ms }, (error) =>
      resolve(error?.code),
    );
  });
}
