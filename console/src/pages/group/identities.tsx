// The workloads of a group: programs that sign in with the tokens of their platform.
import { Link } from "wouter";
import { IdentitiesService, type Identity } from "#gen/chainguard/platform/iam/v2/identities_pb.js";
import { Empty } from "../../ui/page.js";
import { type Column, PagedTable } from "../../ui/paged-table.js";
import { Time } from "../../ui/time.js";
import { describeMatch } from "../identity/match.js";
import type { GroupPartProps } from "./group.js";

const columns: readonly Column<Identity>[] = [
  {
    title: "Name",
    cell: ({ uid, name, description }) => (
      <>
        <Link href={`/identities/${uid}`} className="foreign">
          {name}
        </Link>
        {description !== "" && <div className="soft foreign">{description}</div>}
      </>
    ),
  },
  { title: "Signs in with", cell: (identity) => <span className="foreign">{describeMatch(identity)}</span> },
  { title: "Last used", cell: ({ lastSeenTime }) => <Time at={lastSeenTime} relative /> },
  { title: "Created", cell: ({ createTime }) => <Time at={createTime} /> },
];

export function Identities({ group: { uid } }: GroupPartProps) {
  return (
    <section className="stack" aria-label="Workloads">
      <PagedTable
        caption="Workloads of this group"
        method={IdentitiesService.method.listIdentities}
        input={{ uidp: { childrenOf: uid }, orderBy: "name" }}
        rows={({ identities }) => identities}
        keyOf={(identity) => identity.uid}
        columns={columns}
        empty={
          <Empty title="There are no workloads in this group">
            <p>
              A workload is a program, such as a CI job or a service, that signs in with the token of its platform. Make
              one with <code>arbor iam identities create</code>.
            </p>
          </Empty>
        }
      />
    </section>
  );
}
