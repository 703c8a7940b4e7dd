// The palette: what a person types leads to what they look for.
import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { type KeyboardEvent, useDeferredValue, useId, useState } from "react";
import { Link, useLocation } from "wouter";
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { describeFound, hrefOfFound } from "./find-results.js";
import { Dialog } from "./ui/dialog.js";
import { TextField } from "./ui/field.js";
import { Failed } from "./ui/page.js";

const SHOWN = 20;

export function FindDialog({ onClose }: { readonly onClose: () => void }) {
  const [text, setText] = useState("");
  const query = useDeferredValue(text.trim());
  const [at, setAt] = useState(0);
  const [, navigate] = useLocation();
  const list = useId();
  const { data, error } = useQuery(
    AccessService.method.find,
    { query, pageSize: SHOWN },
    { enabled: query !== "", placeholderData: keepPreviousData },
  );
  const found = query === "" ? [] : (data?.resources ?? []);
  const hasMore = (data?.nextPageToken ?? "") !== "";

  function onKey(event: KeyboardEvent): void {
    if (event.key === "ArrowDown") setAt(Math.min(at + 1, found.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
    else if (event.key === "Enter") {
      const chosen = found[at];
      if (chosen !== undefined) navigate(hrefOfFound(chosen));
      else if (query !== "") navigate(`/find?q=${encodeURIComponent(query)}`);
      onClose();
    } else return;
    event.preventDefault();
  }

  return (
    <Dialog title="Find" onClose={onClose} className="find-dialog">
      <TextField
        label="Name, uid, path, e-mail address, digest, image or request id"
        role="combobox"
        aria-expanded={found.length > 0}
        aria-controls={list}
        aria-activedescendant={found.length > 0 ? `${list}-${at}` : undefined}
        autoFocus
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={onKey}
      />
      {error !== null && query !== "" && <Failed error={error} />}
      <div className="results" role="listbox" id={list} aria-label="What was found">
        {found.map((one, index) => (
          <Link
            key={`${one.kind} ${one.uid}`}
            href={hrefOfFound(one)}
            id={`${list}-${index}`}
            role="option"
            aria-selected={index === at}
            tabIndex={-1}
            onClick={onClose}
          >
            <span className="foreign">{one.name || one.uid}</span>
            <span className="soft foreign">{describeFound(one)}</span>
          </Link>
        ))}
      </div>
      <p className="soft" role="status">
        {query !== "" && data !== undefined && found.length === 0 && !hasMore && "Nothing that you may see fits."}
        {query !== "" && hasMore && (
          <Link href={`/find?q=${encodeURIComponent(query)}`} onClick={onClose}>
            {found.length === 0 ? "Nothing yet: go on with the search" : "All that was found"}
          </Link>
        )}
      </p>
    </Dialog>
  );
}
