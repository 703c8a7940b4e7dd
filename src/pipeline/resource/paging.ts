// The page sizes and page tokens of all lists (AIP-158).
import { invalidArgument } from "../../kernel/errors.js";
import type { PageCursor, PageTokens } from "../../kernel/page-token.js";
import type { Tx } from "../../store/transaction.js";

/** Records a field and the rule that it breaks. */
export type AddViolation = (field: string, rule: string) => void;

/** How many rows a page has. */
export interface PageSizes {
  /** Where the request names no number. */
  readonly usual: number;
  readonly most: number;
}

const usualSizes: PageSizes = { usual: 50, most: 200 };

/**
 * Parses the page size of a request: how many rows the page has at most.
 *
 * @param addViolation records a negative size
 * @throws ApiError INVALID_ARGUMENT for a negative size, where `addViolation` is absent
 */
export function parsePageSize(
  pageSize: number,
  { usual, most }: PageSizes = usualSizes,
  addViolation: AddViolation = rejectField,
): number {
  if (pageSize < 0) addViolation("pageSize", "must not be negative");
  return Math.min(pageSize || usual, most);
}

function rejectField(field: string, rule: string): never {
  throw invalidArgument({ field, rule });
}

/** The page tokens of one list in one call. */
export class ListTokens {
  readonly #tokens: PageTokens<Tx>;
  readonly #binding: string;
  readonly #nowMs: number;

  /**
   * @param list what tokens are bound to: the name of the method, and all of the request that decides which rows the list has
   * and their order
   */
  constructor(tokens: PageTokens<Tx>, list: readonly unknown[], nowMs: number) {
    this.#tokens = tokens;
    this.#binding = JSON.stringify(list);
    this.#nowMs = nowMs;
  }

  /**
   * Reads the position after which the page begins; undefined at the beginning of the list.
   *
   * @throws ApiError INVALID_ARGUMENT for a token of another list
   */
  read(tx: Tx, pageToken: string): Promise<PageCursor | undefined> | undefined {
    return pageToken === "" ? undefined : this.#tokens.read(tx, pageToken, this.#binding, this.#nowMs);
  }

  /** Creates the token of the page after a position; empty where there is none. */
  create(last: Omit<PageCursor, "skip"> | undefined, skip = 0): string {
    if (last === undefined) return "";
    return this.#tokens.create({ key: last.key, uid: last.uid, skip }, this.#binding, this.#nowMs);
  }
}
