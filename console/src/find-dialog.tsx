// The palette: what a person types leads to what they look for.
import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { Link, useLocation } from "wouter";
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { describeFound, hrefOfFound } from "./find-results.js";
import { Dialog } from "./ui/dialog.js";
import { Failed } from "./ui/page.js";
import { SuggestField } from "./ui/suggest-field.js";

const SHOWN = 20;

export function FindDialog({ onClose }: { readonly onClose: () => void }) {
  const [text, setText] = useState("");
  const query = useDeferredValue(text.trim());
  const [, navigate] = useLocation();
  const { data, error } = useQuery(
    AccessService.method.find,
    { query, pageSize: SHOWN },
    { enabled: query !== "", placeholderData: keepPreviousData },
  );
  const found = query === "" ? [] : (data?.resources ?? []);
  const hasMore = (data?.nextPageToken ?? "") !== "";
  const all = `/find?q=${encodeURIComponent(query)}`;

  function open(href: string): void {
    navigate(href);
    onClose();
  }

  return (
    <Dialog title="Find" onClose={onClose} className="find-dialog">
      <SuggestField
        label="Name, uid, path, e-mail address, digest, image or request id"
        text={text}
        onText={setText}
        options={found}
        keyOf={({ kind, uid }) => `${kind} ${uid}`}
        render={(one) => (
          <>
            <span className="foreign">{one.name || one.uid}</span>
            <span className="soft foreign">{describeFound(one)}</span>
          </>
        )}
        onTake={(one) => open(hrefOfFound(one))}
        onEnter={() => query !== "" && open(all)}
      />
      {error !== null && query !== "" && <Failed error={error} />}
      <p className="soft" role="status">
        {query !== "" && data !== undefined && found.length === 0 && !hasMore && "Nothing that you may see fits."}
        {query !== "" && hasMore && (
          <Link href={all} onClick={onClose}>
            {found.length > 0 ? "All that was found" : "Search on"}
          </Link>
        )}
      </p>
    </Dialog>
  );
}
