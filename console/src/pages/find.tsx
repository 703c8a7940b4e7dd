// All that was found, a page at a time.
import { type FormEvent, useEffect, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { AccessService, type FoundResource } from "#gen/arbor/access/v1/access_pb.js";
import { describeKind, hrefOfFound } from "../find-results.js";
import { Button } from "../ui/button.js";
import { TextField } from "../ui/field.js";
import { Empty, Page } from "../ui/page.js";
import { type Column, PagedTable } from "../ui/paged-table.js";
import { Time } from "../ui/time.js";

const columns: readonly Column<FoundResource>[] = [
  {
    title: "Name",
    cell: (found) => (
      <Link href={hrefOfFound(found)} className="foreign">
        {found.name || found.uid}
      </Link>
    ),
  },
  { title: "Kind", cell: describeKind },
  { title: "In", cell: ({ path }) => <span className="foreign">{path.join(" / ")}</span> },
  {
    title: "Details",
    cell: ({ detail, time }) => (
      <>
        <span className="foreign">{detail}</span>
        {time !== undefined && <Time at={time} />}
      </>
    ),
  },
];

export function FindPage() {
  const [search, setSearch] = useSearchParams();
  const query = search.get("q") ?? "";
  const [text, setText] = useState(query);
  useEffect(() => setText(query), [query]);

  function find(event: FormEvent): void {
    event.preventDefault();
    setSearch({ q: text.trim() });
  }

  return (
    <Page title="Find">
      <search>
        <form onSubmit={find}>
          <TextField
            label="Name, uid, path, e-mail address, digest, image or request id"
            type="search"
            value={text}
            onChange={({ target }) => setText(target.value)}
          />
          <div className="actions">
            <Button type="submit" look="main">
              Find
            </Button>
          </div>
        </form>
      </search>
      {query !== "" && (
        <PagedTable
          key={query}
          caption="What was found"
          method={AccessService.method.find}
          input={{ query }}
          rows={({ resources }) => resources}
          keyOf={({ kind, uid }) => `${kind} ${uid}`}
          columns={columns}
          empty={
            <Empty title="Nothing that you may see fits">
              <p>
                Words are found at their beginnings, in any case. A uid, a path or an e-mail address is found as a
                whole.
              </p>
            </Empty>
          }
        />
      )}
    </Page>
  );
}
