// The pages of answers.
import type { PageTokens } from "../../kernel/page-token.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { ListTokens, parsePageSize } from "../../pipeline/resource/paging.js";
import type { Tx } from "../../store/transaction.js";

/** Where a page begins: which part of the list, and after what in it. */
export interface Position {
  readonly part: number;
  /** The sort key of the last entry before, where it is not the uid. */
  readonly key: string;
  readonly uid: string;
}

export interface PageRequest {
  /** The largest number of entries on the page. */
  readonly limit: number;
  /** The beginning of the list where there is no page before. */
  readonly from: Position;
  /** The token of the page that begins at a position; empty after the last page. */
  readonly tokenOf: (next: Position | undefined) => string;
}

/**
 * Parses the page fields of a request.
 *
 * @param asked what the token is bound to: the method, and all that the request asks
 * @throws ApiError INVALID_ARGUMENT for a negative size, or a token of another list
 */
export async function parsePage(
  { pageSize, pageToken }: { readonly pageSize: number; readonly pageToken: string },
  asked: readonly unknown[],
  { tx, startMs, method, caller }: UnaryCall,
  tokens: PageTokens<Tx>,
): Promise<PageRequest> {
  const limit = parsePageSize(pageSize);
  const pages = new ListTokens(tokens, [method.name, caller.uid, ...asked], startMs);
  const cursor = await pages.read(tx, pageToken);
  const from = cursor === undefined ? { part: 0, key: "", uid: "" } : parsePosition(String(cursor.key), cursor.uid);
  return {
    limit,
    from,
    tokenOf: (next) => pages.create(next && { key: `${next.part} ${next.key}`, uid: next.uid }),
  };
}

function parsePosition(text: string, uid: string): Position {
  const space = text.indexOf(" ");
  return { part: Number(text.slice(0, space)), key: text.slice(space + 1), uid };
}
