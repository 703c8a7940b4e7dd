// Two organisations whose audit rows carry markers: texts that no other row has.
import { randomIds } from "../../../src/kernel/ids.js";
import type { AuditRow } from "../../../src/store/tables/audit.js";
import { type Rest, restAs } from "../../contract/rest.js";
import { type IamWorld, startIamWorld } from "../../iam/iam-world.js";

export interface EventWorld extends IamWorld {
  /** REST with paths below `/audit/v1`. */
  audit(token: string): Rest;
  /** Writes a row with the time of its number, in seconds. */
  add(values: Partial<AuditRow> & Pick<AuditRow, "rootUid">, second?: number): Promise<void>;
}

/** The first second of the rows that `add` writes, in milliseconds. */
export const START_MS = 1_700_000_000_000;

/** The time of a row that `add` wrote, as requests name it. */
export function timeAt(second: number): string {
  return new Date(START_MS + second * 1_000).toISOString();
}

/** Starts a service; rows of version 2, which new installations write. */
export async function startEventWorld(): Promise<EventWorld> {
  const world = await startIamWorld();
  let added = 0;
  return {
    ...world,
    audit: (token) => restAs(world.url, token, "/audit/v1"),
    async add(values, second = added++) {
      const row: AuditRow = {
        timeMs: START_MS + second * 1_000,
        type: "test.made.v1",
        method: "/test.Things/Make",
        subjectUid: values.rootUid,
        actorUid: "",
        tokenId: "token-1",
        requestId: randomIds.newId(),
        remoteAddress: "192.0.2.7",
        ...values,
      };
      await world.write((tx) => tx.audit.append(row));
    },
  };
}

/** An event as REST shows it. */
export interface ShownEvent {
  readonly id: string;
  readonly time: string;
  readonly type: string;
  readonly subjectUid: string;
  readonly requestId: string;
  readonly remoteAddress: string;
  readonly tokenId: string;
  readonly sealed: boolean;
  readonly sequence: string;
  readonly organizationUid: string;
}

/** All events of a list, page by page. */
export async function listAll(rest: Rest, query: Readonly<Record<string, string>>): Promise<ShownEvent[]> {
  const events: ShownEvent[] = [];
  for (let pageToken = "", pages = 0; pages < 1_000; pages++) {
    const { status, json = {}, text } = await rest("GET", `/events?${new URLSearchParams({ ...query, pageToken })}`);
    if (status !== 200) throw new Error(text);
    events.push(...(json.events as ShownEvent[]));
    pageToken = String(json.nextPageToken ?? "");
    if (pageToken === "") return events;
  }
  throw new Error("the list does not end");
}
