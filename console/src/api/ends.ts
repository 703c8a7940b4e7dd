// When role bindings end. Their own service knows it; the lists of RoleBindingsService have no field for it.

import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { useQuery } from "@tanstack/react-query";
import { TemporaryBindingsService } from "#gen/arbor/bindings/v1/temporary_bindings_pb.js";

const MAX_PAGES = 5;
const PAGE_SIZE = 200;

export interface Ends {
  /** The end of a binding; undefined where it does not end. */
  endOf(binding: string): Timestamp | undefined;
  /** False where there are more than were read: then a binding without a known end may have one. */
  readonly isWhole: boolean;
}

/** Reads the ends of the bindings in a group and below it. */
export function useEnds(group: string): Ends {
  const transport = useTransport();
  const { data } = useQuery({
    queryKey: ["ends", group],
    queryFn: async ({ signal }) => {
      const client = createClient(TemporaryBindingsService, transport);
      const ends = new Map<string, Timestamp | undefined>();
      let pageToken = "";
      for (let page = 0; page < MAX_PAGES; page++) {
        const found = await client.listTemporaryBindings({ group, pageSize: PAGE_SIZE, pageToken }, { signal });
        for (const { uid, endTime } of found.bindings) ends.set(uid, endTime);
        pageToken = found.nextPageToken;
        if (pageToken === "") return { ends, isWhole: true };
      }
      return { ends, isWhole: false };
    },
  });
  return { endOf: (binding) => data?.ends.get(binding), isWhole: data?.isWhole ?? false };
}
