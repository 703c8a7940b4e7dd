// The protocol matrix: calls by which people ask for access to an organisation.
import { expectNotFound, invalid, ok, resourceExhausted, unauthenticated } from "./expectations.js";
import type { MatrixCase } from "./matrix-case.js";

const NO_ORGANISATION = "no verified organisation matches the caller's e-mail domain";

/** Requests for access. */
export const accessRequests: readonly MatrixCase[] = [
  {
    name: "asks to be let in",
    method: "RequestGroupAccess",
    as: "newcomer",
    request: { groupUid: "<org>" },
    expect: ok({}),
  },
  {
    name: "does not ask twice a day",
    method: "RequestGroupAccess",
    as: "requester",
    request: { groupUid: "<org>" },
    expect: resourceExhausted("access to this group was requested recently"),
  },
  {
    name: "asks no other organisation",
    method: "RequestGroupAccess",
    as: "newcomer",
    request: { groupUid: "<foreign>" },
    expect: expectNotFound("<foreign>", NO_ORGANISATION),
  },
  {
    name: "asks none with an address of anybody",
    method: "RequestGroupAccess",
    as: "gmail",
    request: { groupUid: "<org>" },
    expect: expectNotFound("", NO_ORGANISATION),
  },
  {
    name: "asks none by an empty uid",
    method: "RequestGroupAccess",
    as: "member",
    request: {},
    expect: invalid(["groupUid", "groupUid is required"]),
    rest: "none",
    why: "without a uid there is no such path",
  },
  {
    name: "asks nothing without a token",
    method: "RequestGroupAccess",
    as: "anonymous",
    request: { groupUid: "<org>" },
    expect: unauthenticated(),
  },
];
