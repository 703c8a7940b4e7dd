// Says who can do, or grant, what the viewer may not do.
import { useQuery } from "@connectrpc/connect-query";
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { useRights } from "../api/rights.js";

interface WhoMayProps {
  readonly capability: string;
  readonly uid: string;
  /** What the viewer may not do, such as "make groups here". */
  readonly what: string;
}

const SHOWN = 5;

export function WhoMay({ capability, uid, what }: WhoMayProps) {
  const rights = useRights();
  const maySee = rights.isKnown && rights.may("role_bindings.list", uid);
  // Who can grant it holds it, and may create role bindings.
  const { data } = useQuery(
    AccessService.method.listSubjects,
    { actions: [capability, "role_bindings.create"], resource: uid, pageSize: SHOWN },
    { enabled: maySee },
  );
  if (!rights.isKnown) return null;
  const names = (data?.subjects ?? []).flatMap(({ subject }) =>
    subject.case === "identity" ? [subject.value.email || subject.value.name] : [],
  );
  const known = names.filter((name) => name !== "");
  return (
    <p className="soft">
      You may not {what}.{" "}
      {known.length > 0 ? (
        <>
          Ask <span className="foreign">{known.join(", ")}</span>
          {data?.nextPageToken !== "" && " or others"}, who can grant it to you.
        </>
      ) : (
        "Ask an owner of the organisation, who can grant it to you."
      )}
    </p>
  );
}
