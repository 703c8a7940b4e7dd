// What the viewer may do, so that pages offer nothing that the service would reject. The service decides all the same.

import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { useQuery } from "@tanstack/react-query";
import { AccessService, Effect, type Grant } from "#gen/arbor/access/v1/access_pb.js";
import { isWithin } from "./uids.js";

export interface Rights {
  /** Whether the viewer has a capability at a group or at something in it; true where that is not known. */
  may(capability: string, uid: string): boolean;
  /**
   * The uids of the uppermost groups that lists show to the viewer: organisations, and groups of organisations that they do
   * not see. Undefined where that is not known.
   */
  readonly tops: readonly string[] | undefined;
  /** Whether they hold anything at all. */
  readonly isEmpty: boolean;
  readonly isKnown: boolean;
  readonly grants: readonly Grant[];
}

/** More pages than these are not read: who has a thousand grants is offered everything. */
const MAX_PAGES = 5;
const PAGE_SIZE = 200;

/** Reads the viewer's grants once for all pages. */
export function useRights(): Rights {
  const transport = useTransport();
  const { data } = useQuery({
    queryKey: ["rights"],
    staleTime: 30_000,
    queryFn: async ({ signal }) => {
      const client = createClient(AccessService, transport);
      const grants: Grant[] = [];
      let pageToken = "";
      for (let page = 0; page < MAX_PAGES; page++) {
        const found = await client.listAccess({ pageSize: PAGE_SIZE, pageToken }, { signal });
        grants.push(...found.grants);
        pageToken = found.nextPageToken;
        if (pageToken === "") return { grants, isWhole: true };
      }
      return { grants, isWhole: false };
    },
  });
  const grants = (data?.grants ?? []).filter(({ effect }) => effect === Effect.COUNTS);
  return {
    grants,
    tops: data?.isWhole ? findTops(grants) : undefined,
    isKnown: data !== undefined,
    isEmpty: data !== undefined && grants.length === 0,
    may: (capability, uid) =>
      data?.isWhole === false ||
      grants.some(({ group, capabilities }) => isWithin(uid, group?.uid ?? "/") && capabilities.includes(capability)),
  };
}

// Lists leave out what pending role bindings grant.
function findTops(grants: readonly Grant[]): string[] {
  const listed = grants.filter(({ pending, capabilities }) => !pending && capabilities.includes("groups.list"));
  const uids = [...new Set(listed.map(({ group }) => group?.uid ?? ""))];
  return uids.filter((uid) => !uids.some((other) => other !== uid && isWithin(uid, other)));
}

/** The filter that lists the uppermost groups that a viewer sees. */
export function topsFilter({ tops }: Pick<Rights, "tops">) {
  return tops === undefined ? { childrenOf: "/" } : { ids: [...tops] };
}
