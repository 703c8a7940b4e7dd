// The name of a binding's identity. A binding that somebody else made says only the uid of a person; another one, by which
// the person has joined, says who it is.
import { useQuery } from "@connectrpc/connect-query";
import { AccessService, FoundKind } from "#gen/arbor/access/v1/access_pb.js";
import type { RoleBinding } from "#gen/chainguard/platform/iam/v2/role_bindings_pb.js";
import { findName } from "../api/bindings.js";

const KEPT_MS = 300_000;

export function useMemberName(binding: RoleBinding): string {
  const uid = binding.identity?.uid ?? "";
  const name = findName(binding);
  const { data } = useQuery(
    AccessService.method.find,
    { query: uid, kind: FoundKind.IDENTITY, pageSize: 1 },
    { enabled: name === undefined && uid !== "", staleTime: KEPT_MS },
  );
  const [found] = data?.resources ?? [];
  return name ?? (found?.detail || found?.name || uid);
}

export function MemberName({ binding }: { readonly binding: RoleBinding }) {
  return <span className="foreign">{useMemberName(binding)}</span>;
}
