// What docs/api-rules.md says about updates.
import { invalid, type Pattern, type Rule } from "./rule.js";

const NAME_RULE = "name must match ^[a-z0-9 ._-]{1,}$: name is required";
const PATH = "/iam/v2beta1/groups/<fresh>";
const was = { name: "before", description: "as it was" };
const both = { name: "after", description: "new" };

// What an update makes of `<fresh>`, by its response and by a later read.
function patch(says: string, query: string, body: object | undefined, fields: Pattern): Rule {
  return {
    anchor: "masks",
    says,
    steps: [
      { http: `PATCH ${PATH}${query}`, ...(body && { body }), expect: { json: fields } },
      { http: `GET ${PATH}`, expect: { json: fields } },
    ],
  };
}

function update(says: string, fields: object, mask: string | undefined, group: Pattern): Rule {
  return {
    anchor: "masks",
    says,
    steps: [
      {
        call: "UpdateGroup",
        request: { group: { uid: "<fresh>", ...fields }, ...(mask !== undefined && { updateMask: mask }) },
        expect: { result: group },
      },
      { call: "GetGroup", request: { uid: "<fresh>" }, expect: { result: group } },
    ],
  };
}

/** Updates and masks. */
export const masks: readonly Rule[] = [
  update("without a mask the fields that are sent change, and the others stay", { name: "after" }, undefined, {
    ...was,
    name: "after",
  }),
  update("several fields change at once", both, undefined, both),
  update("with a mask only the named field changes; what else is sent is ignored", both, "description", {
    ...was,
    description: "new",
  }),
  update("a mask names several fields, separated by commas", both, "name,description", both),
  update("a field that the mask leaves out is not even validated", { name: "NO", description: "new" }, "description", {
    ...was,
    description: "new",
  }),
  update("a named field that the request lacks is cleared", {}, "description", { ...was, description: "" }),
  update("* replaces every field that the caller may change", { name: "after" }, "*", {
    name: "after",
    description: "",
  }),
  update("a path to a field that callers cannot change has no effect", { name: "after" }, "createTime,name", {
    ...was,
    name: "after",
    createTime: /^1970-01-01T00:00:01/,
  }),
  update("so has a path into one", { name: "after" }, "createTime.seconds,resourceLimits.repositories,uid,status", was),
  {
    anchor: "masks",
    says: "a required field cannot be cleared",
    call: "UpdateGroup",
    request: { group: { uid: "<fresh>" }, updateMask: "name" },
    expect: invalid(["name", NAME_RULE]),
  },
  {
    anchor: "masks",
    says: "* must stand alone",
    http: `PATCH ${PATH}?updateMask=*,name`,
    body: both,
    expect: invalid(["updateMask", /\*/]),
  },
  {
    anchor: "masks",
    says: "a path that names no field is refused",
    http: `PATCH ${PATH}?updateMask=colour`,
    body: both,
    expect: invalid(["updateMask", "updateMask: colour is not a field of a group"]),
  },
  ...["colour", "name.first", "parent"].map(
    (path): Rule => ({
      anchor: "masks",
      says: `${path} is no field of a group, and gRPC names the field update_mask there`,
      call: "UpdateGroup",
      request: { group: { uid: "<fresh>", name: "after" }, updateMask: `name,${path}` },
      expect: invalid([/^update_?[mM]ask$/, `updateMask: ${path} is not a field of a group`]),
    }),
  ),
  ...Object.entries({
    "name[0]": "updateMask must be field paths separated by commas",
    "name&updateMask=description": "updateMask is given twice",
  }).map(
    ([mask, rule]): Rule => ({
      anchor: "masks",
      says: `${mask} is no mask`,
      http: `PATCH ${PATH}?updateMask=${mask}`,
      body: both,
      expect: invalid(["updateMask", rule]),
    }),
  ),
  {
    anchor: "masks",
    says: "* replaces nothing with less than is required",
    call: "UpdateGroup",
    request: { group: { uid: "<fresh>", description: "new" }, updateMask: "*" },
    expect: invalid(["name", NAME_RULE]),
  },
  {
    ...update("without a mask an empty text is absent, but over REST", { description: "" }, undefined, was),
    over: ["gRPC", "Connect"],
  },
  patch("over REST the keys of the body are the mask", "", { name: "after" }, { ...was, name: "after" }),
  patch("over REST an empty value clears", "", { description: "" }, { ...was, description: "" }),
  patch("over REST null clears as well", "", { description: null }, { ...was, description: "" }),
  patch("a list may have blanks", "?updateMask=name,%20description", both, both),
  patch("over REST the mask is the query parameter updateMask", "?updateMask=name", both, { ...was, name: "after" }),
  patch("both spellings of the parameter are known", "?update_mask=name", both, { ...was, name: "after" }),
  patch("an empty mask is none", "?updateMask=", { name: "after" }, { ...was, name: "after" }),
  patch("a mask without a body clears", "?updateMask=description", undefined, { ...was, description: "" }),
  patch("an empty body without a mask changes nothing", "", {}, was),
  {
    ...patch("no body and no mask changes nothing", "", undefined, was),
  },
  {
    anchor: "masks",
    says: "over REST the keys within a message are part of the mask: its other fields stay",
    steps: [
      {
        http: "POST /iam/v2beta1/identities/<fresh>",
        body: { name: "bot", claimMatch: { issuer: "https://issuer.example", subject: "one", claims: { a: "b" } } },
        expect: {},
        keep: { made: "uid" },
      },
      {
        http: "PATCH /iam/v2beta1/identities/<made>",
        body: { claimMatch: { subject: "two" } },
        expect: {
          json: { claimMatch: { issuer: "https://issuer.example", subject: "two", claims: { a: "b" } }, name: "bot" },
        },
      },
    ],
  },
  {
    anchor: "masks",
    says: "a path may lead into a message, whose other fields stay",
    steps: [
      {
        call: "CreateIdentityProvider",
        as: "freshOwner",
        request: {
          parent: "<freshRoot>",
          identityProvider: {
            name: "p",
            defaultRole: "<viewerRole>",
            oidc: { issuer: "https://login.example", clientId: "id", clientSecret: "s", groupsClaim: "groups" },
          },
        },
        expect: {},
        keep: { made: "uid" },
      },
      {
        call: "UpdateIdentityProvider",
        as: "freshOwner",
        request: { identityProvider: { uid: "<made>", oidc: { clientId: "other" } }, updateMask: "oidc.clientId" },
        expect: { result: { oidc: { issuer: "https://login.example", clientId: "other", groupsClaim: "groups" } } },
      },
    ],
  },
  {
    anchor: "masks",
    says: "an update that names nothing keeps the update time, and one that changes something moves it",
    steps: [
      {
        call: "UpdateGroup",
        request: { group: { uid: "<fresh>" } },
        expect: { result: { updateTime: /^1970-01-01T00:00:01/ } },
      },
      {
        call: "UpdateGroup",
        request: { group: { uid: "<fresh>", name: "after" } },
        expect: { result: { updateTime: /^20/, createTime: /^1970-01-01T00:00:01/ } },
      },
    ],
  },
];
