// Chooses identities: by name or e-mail address among those that the viewer may see, or by uid.
import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { useDeferredValue, useId, useState } from "react";
import { AccessService, FoundKind } from "#gen/arbor/access/v1/access_pb.js";
import { describeFound } from "../../find-results.js";
import { Button } from "../../ui/button.js";
import { TextField } from "../../ui/field.js";
import { CloseIcon } from "../../ui/icons.js";

/** An identity that was chosen. */
export interface Chosen {
  readonly uid: string;
  readonly name: string;
}

interface WhoFieldProps {
  readonly chosen: readonly Chosen[];
  readonly onChange: (chosen: readonly Chosen[]) => void;
  readonly wrong?: string | undefined;
}

const SHOWN = 8;
/** The uid of a person, and that of a workload below its group. */
const UID = /^[0-9a-f]{40}(\/[0-9a-f]+)*$/;

export function WhoField({ chosen, onChange, wrong }: WhoFieldProps) {
  const id = useId();
  const [text, setText] = useState("");
  const query = useDeferredValue(text.trim());
  const { data } = useQuery(
    AccessService.method.find,
    { query, kind: FoundKind.IDENTITY, pageSize: SHOWN },
    { enabled: query !== "", placeholderData: keepPreviousData },
  );
  const found = query === "" ? [] : (data?.resources ?? []);
  const options = found.filter(({ uid }) => !chosen.some((one) => one.uid === uid));
  // People who have not joined are in no list; their uid is enough to grant them a role.
  const typed = UID.test(query) && !found.some(({ uid }) => uid === query) ? query : undefined;

  function choose(one: Chosen): void {
    onChange([...chosen, one]);
    setText("");
  }

  return (
    <fieldset aria-describedby={`${id}-chosen`}>
      <legend>Who</legend>
      <ul className="chips" id={`${id}-chosen`}>
        {chosen.map(({ uid, name }) => (
          <li key={uid}>
            <span className="foreign">{name}</span>
            <Button
              look="quiet"
              isSmall
              aria-label={`Leave out ${name}`}
              onClick={() => onChange(chosen.filter((one) => one.uid !== uid))}
            >
              <CloseIcon />
            </Button>
          </li>
        ))}
      </ul>
      <TextField
        label="People and workloads"
        hint="A name or e-mail address, or the uid that a person sees on the page of their account"
        type="search"
        wrong={wrong}
        value={text}
        onChange={({ target }) => setText(target.value)}
      />
      {(options.length > 0 || typed !== undefined) && (
        <ul className="plain option-list" aria-label="Found">
          {options.map((one) => (
            <li key={one.uid}>
              <Button look="quiet" onClick={() => choose({ uid: one.uid, name: one.name || one.uid })}>
                <span className="foreign">{one.name || one.uid}</span>{" "}
                <span className="soft foreign">{describeFound(one)}</span>
              </Button>
            </li>
          ))}
          {typed !== undefined && (
            <li>
              <Button look="quiet" onClick={() => choose({ uid: typed, name: typed })}>
                The identity {typed}
              </Button>
            </li>
          )}
        </ul>
      )}
    </fieldset>
  );
}
