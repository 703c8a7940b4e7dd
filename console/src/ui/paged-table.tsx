// A list in the order of the service, a page at a time. The page's place is in the URL, so that Back, a reload and a link
// lead to it. A page that was left is forgotten within a minute, however long the list is.
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useSearchParams } from "wouter";
import { Button } from "./button.js";
import { Failed, Loading } from "./page.js";

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ReactNode;
  /** Whether its title is for screen readers alone. */
  readonly isUntitled?: boolean;
}

interface ListResponse {
  readonly nextPageToken: string;
  readonly totalCount?: bigint;
}

interface PagedTableProps<I extends DescMessage, O extends DescMessage, Row> {
  readonly caption: string;
  readonly method: DescMethodUnary<I, O>;
  readonly input: MessageInitShape<I>;
  readonly rows: (response: MessageShape<O>) => readonly Row[];
  readonly keyOf: (row: Row) => string;
  readonly columns: readonly Column<Row>[];
  readonly empty: ReactNode;
}

const PAGE_SIZE = 50;
const COUNT = new Intl.NumberFormat();

export function PagedTable<I extends DescMessage, O extends DescMessage, Row>(props: PagedTableProps<I, O, Row>) {
  const { caption, method, input, rows, keyOf, columns, empty } = props;
  const [search, setSearch] = useSearchParams();
  const pageToken = search.get("page") ?? "";
  const from = Number(search.get("from") ?? 0);
  const request = { ...input, pageSize: PAGE_SIZE, pageToken } as MessageInitShape<I>;
  const { data, error, refetch, isPlaceholderData } = useQuery(method, request, { placeholderData: keepPreviousData });
  if (data === undefined) return error ? <Failed error={error} onRetry={() => void refetch()} /> : <Loading />;
  const shown = rows(data);
  const { nextPageToken, totalCount } = data as unknown as ListResponse;
  if (shown.length === 0 && from === 0 && nextPageToken === "") return empty;

  function goTo(token: string, start: number): void {
    setSearch((before) => {
      const next = new URLSearchParams(before);
      next.delete("page");
      next.delete("from");
      if (token !== "") next.set("page", token);
      if (start > 0) next.set("from", String(start));
      return next;
    });
  }

  return (
    <div className="stack" aria-busy={isPlaceholderData}>
      {error !== null && <Failed error={error} onRetry={() => void refetch()} />}
      <div className="table-frame">
        <table>
          <caption className="visually-hidden">{caption}</caption>
          <thead>
            <tr>
              {columns.map(({ title, isUntitled }) => (
                <th key={title} scope="col" className={isUntitled ? "last" : undefined}>
                  {isUntitled ? <span className="visually-hidden">{title}</span> : title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <tr key={keyOf(row)}>
                {columns.map(({ title, cell, isUntitled }) => (
                  <td key={title} data-label={isUntitled ? "" : title} className={isUntitled ? "last" : undefined}>
                    {cell(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div className="pager">
        <span className="soft" role="status">
          {describePage(from, shown.length, totalCount)}
        </span>
        {(from > 0 || nextPageToken !== "") && (
          <div className="actions">
            <Button isSmall disabled={from === 0} onClick={() => goTo("", 0)}>
              First page
            </Button>
            <Button isSmall disabled={from === 0} onClick={() => history.back()}>
              Back
            </Button>
            <Button isSmall disabled={nextPageToken === ""} onClick={() => goTo(nextPageToken, from + shown.length)}>
              Next page
            </Button>
          </div>
        )}
      </div>
    </div>
  );
}

function describePage(from: number, count: number, total: bigint | undefined): string {
  const range = count === 0 ? "No rows" : `Rows ${COUNT.format(from + 1)} to ${COUNT.format(from + count)}`;
  return total === undefined ? range : `${range} of ${COUNT.format(total)}`;
}
