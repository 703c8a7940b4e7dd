// An impatient program and a patient one share connections: lists of 200 groups
// that may take some milliseconds, beside lists that may take long. Calls whose
// deadlines expire are lost, and none besides.
import { setTimeout as sleep } from "node:timers/promises";
import * as grpc from "@grpc/grpc-js";
import { type Attack, Counts, pause } from "../support/attack.js";
import { JUDGES_TIMES } from "../support/figures.js";
import { createGroups } from "../support/http.js";
import type { Target } from "../support/world.js";

const LIST = "/chainguard.platform.iam.v2beta1.GroupsService/ListGroups";
/** ListGroupsRequest with a page_size of 200. */
const REQUEST = Buffer.from([0x18, 0xc8, 0x01]);
const GROUPS = 200;
/** Lists under way at once on one connection, fewer than the streams it may have. */
const IMPATIENT_LANES = 80;
const PATIENT_LANES = 10;
/** Calls in a round, of which every one in a lane follows the one before. */
const IMPATIENT = 300;
const PATIENT = 30;
const IMPATIENT_MS = 5;
const PATIENT_MS = 20_000;
const ROUND_MS = 200;
/** How a service that is overloaded rejects a call, and when patient callers try again, in milliseconds. */
const OVERLOADED = "Unavailable: the service is overloaded, try again";
const RETRY_MS = 200;

export const attack: Attack = {
  prepare: prepareLists,
  async run({ url, token }, stop) {
    const counts = new Counts();
    // A channel of its own each, so that one client's connection is not the other's.
    const lane = async () => {
      const client = newClient(url);
      while (!stop.aborted) {
        await deadlineRound(client, token, counts, IMPATIENT_MS);
        await pause(ROUND_MS, stop);
      }
      client.close();
    };
    await Promise.all([lane(), lane()]);
    if (JUDGES_TIMES && (counts.done["patient rejected"] ?? 0) > 0) counts.problem("patient calls were rejected");
    if ((counts.done["impatient DEADLINE_EXCEEDED"] ?? 0) < IMPATIENT) counts.problem("too few deadlines expired");
    return counts;
  },
};

/** Creates what is listed. */
export async function prepareLists({ url, token, group, addresses: [address = ""] }: Target): Promise<void> {
  await createGroups({ url, token, address }, group, GROUPS, { name: "listed", description: "d".repeat(200) });
}

/** A client whose calls share one connection. */
export function newClient(url: string): grpc.Client {
  return new grpc.Client(new URL(url).host, grpc.credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
}

/**
 * One round on one connection. What a patient call is told besides OK is a problem, and what an
 * impatient one is told besides OK and DEADLINE_EXCEEDED. What a service that is overloaded rejects before it does
 * anything is lost to nobody: patient calls are made again.
 *
 * @param impatientMs how long impatient calls may take
 */
export async function deadlineRound(
  client: grpc.Client,
  token: string,
  counts: Counts,
  impatientMs: number,
): Promise<void> {
  await new Promise<void>((resolve, reject) =>
    client.waitForReady(Date.now() + PATIENT_MS, (error) => (error ? reject(error) : resolve())),
  );
  const lanes = (kind: "patient" | "impatient", width: number, calls: number, ms: number) => {
    let started = 0;
    return Array.from({ length: width }, async () => {
      while (started++ < calls) {
        const { code, isClientFault, isRejected } = await listGroups(client, token, ms);
        if (isRejected) {
          counts.add(`${kind} rejected`);
          if (kind === "patient") started--;
          await sleep(RETRY_MS);
          continue;
        }
        if (isClientFault) {
          counts.add(`${kind} lost by its client`);
          continue;
        }
        const name = code === undefined ? "OK" : (grpc.status[code] ?? String(code));
        counts.add(`${kind} ${name}`);
        const isExpected = kind === "impatient" && code === grpc.status.DEADLINE_EXCEEDED;
        if (code !== undefined && !isExpected) counts.problem(`a call of a ${kind} client ended with ${name}`);
      }
    });
  };
  await Promise.all([
    ...lanes("patient", PATIENT_LANES, PATIENT, PATIENT_MS),
    ...lanes("impatient", IMPATIENT_LANES, IMPATIENT, impatientMs),
  ]);
}

interface Ended {
  /** Undefined for OK. */
  readonly code: grpc.status | undefined;
  /**
   * Whether the client's library gave its connection up by itself: it does so when answers arrive for too many calls
   * that it has just cancelled, whatever the service does.
   */
  readonly isClientFault: boolean;
  /** Whether the service said that it has no time for the call. */
  readonly isRejected: boolean;
}

function listGroups(client: grpc.Client, token: string, ms: number): Promise<Ended> {
  const metadata = new grpc.Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  const same = (bytes: Buffer) => bytes;
  return new Promise((resolve) => {
    client.makeUnaryRequest(LIST, same, same, REQUEST, metadata, { deadline: Date.now() + ms }, (error) =>
      resolve({
        code: error?.code,
        isRejected: error?.code === grpc.status.UNAVAILABLE && error.details === OVERLOADED,
        isClientFault: error?.details.includes("triggered by internal client error") ?? false,
      }),
    );
  });
}
