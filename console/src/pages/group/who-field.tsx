// Chooses identities: by name or e-mail address among those that the viewer may see, or by uid.
import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { AccessService, FoundKind } from "#gen/arbor/access/v1/access_pb.js";
import { describeFound } from "../../find-results.js";
import { Button } from "../../ui/button.js";
import { CloseIcon } from "../../ui/icons.js";
import { SuggestField } from "../../ui/suggest-field.js";

/** An identity that was chosen. */
export interface Chosen {
  readonly uid: string;
  readonly name: string;
}

interface Option extends Chosen {
  readonly description: string;
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
  const [text, setText] = useState("");
  const query = useDeferredValue(text.trim());
  const { data } = useQuery(
    AccessService.method.find,
    { query, kind: FoundKind.IDENTITY, pageSize: SHOWN },
    { enabled: query !== "", placeholderData: keepPreviousData },
  );
  const found = query === "" ? [] : (data?.resources ?? []);
  const options: Option[] = found
    .filter(({ uid }) => !chosen.some((one) => one.uid === uid))
    .map((one) => ({ uid: one.uid, name: one.name || one.uid, description: describeFound(one) }));
  // People who have not joined are in no list; their uid is enough to grant them a role.
  if (UID.test(query) && !found.some(({ uid }) => uid === query)) {
    options.push({ uid: query, name: query, description: "the identity with this uid" });
  }

  return (
    <>
      <SuggestField
        label="Who"
        hint="A person or a workload: a name or e-mail address, or the uid that people see on the page of their account"
        wrong={wrong}
        text={text}
        onText={setText}
        options={options}
        keyOf={({ uid }) => uid}
        render={({ name, description }) => (
          <>
            <span className="foreign">{name}</span>
            <span className="soft foreign">{description}</span>
          </>
        )}
        onTake={({ uid, name }) => {
          onChange([...chosen, { uid, name }]);
          setText("");
        }}
      />
      {chosen.length > 0 && (
        <ul className="chips" aria-label="Chosen">
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
      )}
    </>
  );
}
