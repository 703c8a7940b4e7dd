// What docs/api-rules.md says about overlays and their bindings.
import { absent, alreadyExists, each, invalid, precondition, type Rule, type Step } from "./rule.js";

const config = { contents: { packages: ["curl"] } };
const all = { kind: "KIND_ALL" };
const exact = (...tags: string[]) => ({ kind: "KIND_EXACT", tags });

const binds = (tagSelector: object | undefined, expect: Step["expect"] = {}, keep?: Step["keep"]): Step => ({
  call: "CreateOverlayBinding",
  request: { parent: "<freshPlainRepo>", overlay: "<freshOverlay>", ...(tagSelector && { tagSelector }) },
  expect,
  ...(keep && { keep }),
});

// Binary protocols have the names of the proto.
const spelling = (text: string) => {
  const escaped = text.replace(/[.^$[\]{}]/g, "\\$&");
  return new RegExp(`^${escaped.replace(/[a-z](?=[A-Z])/g, "$&_?")}$`, "i");
};
const isTaken = alreadyExists("registry.chainguard.dev/OverlayBinding");
const selectors: readonly (readonly [says: string, selector: object | undefined, broken: string])[] = [
  ["a binding needs a selector", undefined, "tagSelector is required"],
  ["a selector has a kind", { tags: ["v1"] }, "tagSelector.kind must be KIND_EXACT, KIND_ALL or KIND_VARIANT"],
  ["KIND_EXACT needs tags", { kind: "KIND_EXACT" }, "tagSelector.tags is required for KIND_EXACT"],
  [
    "KIND_EXACT has no variant",
    { ...exact("v1"), variantType: "VARIANT_TYPE_DEV" },
    "tagSelector.variantType must be unset unless the kind is KIND_VARIANT",
  ],
  ["KIND_EXACT has names of tags", exact("-x"), "tagSelector.tags must each match ^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$"],
  ["KIND_EXACT names a tag once", exact("a", "b", "a"), "tagSelector.tags must not name a tag twice"],
  [
    "KIND_EXACT has at most 100 tags",
    exact(...Array.from({ length: 101 }, (_, n) => `v${n}`)),
    "tagSelector.tags must be at most 100",
  ],
  ["KIND_ALL has no tags", { ...all, tags: ["v1"] }, "tagSelector.tags must be empty unless the kind is KIND_EXACT"],
  [
    "KIND_VARIANT needs a variant",
    { kind: "KIND_VARIANT" },
    "tagSelector.variantType must be VARIANT_TYPE_DEV for KIND_VARIANT",
  ],
  [
    "KIND_VARIANT has no tags",
    { kind: "KIND_VARIANT", variantType: "VARIANT_TYPE_DEV", tags: ["v1-dev"] },
    "tagSelector.tags must be empty unless the kind is KIND_EXACT",
  ],
];

/** Overlays and overlay bindings. */
export const overlays: readonly Rule[] = [
  {
    anchor: "overlays",
    says: "an overlay is created, updated and deleted, and the audit log has it",
    steps: [
      {
        call: "CreateOverlay",
        request: { parent: "<fresh>", overlay: { name: "tools", config } },
        expect: {
          result: { uid: /^<fresh>\/[0-9a-f]{16}$/, name: "tools", config },
        },
        keep: { made: "uid" },
      },
      {
        call: "UpdateOverlay",
        request: { overlay: { uid: "<made>", name: "more tools" } },
        expect: {
          result: { name: "more tools", config },
          audit: { eventType: "dev.chainguard.api.platform.registry.overlay.updated.v1", resource: "<made>" },
        },
      },
      { call: "GetOverlay", request: { uid: "<made>" }, expect: { result: { name: "more tools", config } } },
      { call: "DeleteOverlay", request: { uid: "<made>" }, expect: { text: "" } },
      { call: "GetOverlay", request: { uid: "<made>" }, expect: { code: "NOT_FOUND" } },
    ],
  },
  {
    anchor: "overlays",
    says: "the name of an overlay is unique in its group",
    steps: ["<fresh>", "<freshOther>", "<fresh>"].map((parent, i) => ({
      call: "CreateOverlay",
      request: { parent, overlay: { name: "tools", config } },
      expect: i < 2 ? {} : alreadyExists("registry.chainguard.dev/Overlay"),
    })),
  },
  {
    anchor: "overlays",
    says: "an overlay cannot take the name of another",
    steps: [
      {
        call: "CreateOverlay",
        request: { parent: "<fresh>", overlay: { name: "others", config } },
        expect: {},
      },
      {
        call: "UpdateOverlay",
        request: { overlay: { uid: "<freshOverlay>", name: "others" } },
        expect: alreadyExists("registry.chainguard.dev/Overlay"),
      },
    ],
  },
  ...[undefined, {}, { contents: {} }].map(
    (empty): Rule => ({
      anchor: "overlays",
      says: `the config of an overlay must add something, and not be ${JSON.stringify(empty)}`,
      call: "CreateOverlay",
      request: { parent: "<fresh>", overlay: { name: "tools", ...(empty && { config: empty }) } },
      expect: invalid(["config", empty ? "config must add something" : "config is required"]),
    }),
  ),
  {
    anchor: "overlays",
    says: "the config of an overlay has the rules of a custom_overlay",
    call: "CreateOverlay",
    request: { parent: "<fresh>", overlay: { name: "tools", config: { preflight: [{ tcp: "db:5432", path: "/x" }] } } },
    expect: invalid(["config", "config.preflight[0] must have either tcp or path"]),
  },
  {
    anchor: "masks",
    says: "the config of an overlay is replaced as a whole",
    steps: [
      {
        call: "UpdateOverlay",
        request: {
          overlay: { uid: "<freshOverlay>", config: { environment: { A: "b" } } },
          updateMask: "config",
        },
        expect: { result: { name: "tools", config: { environment: { A: "b" }, contents: absent } } },
      },
      ...["config.contents", "config.contents.packages"].map((updateMask) => ({
        call: "UpdateOverlay",
        request: { overlay: { uid: "<freshOverlay>", config }, updateMask },
        expect: invalid([
          /^update_?mask$/i,
          new RegExp(`^update_?mask: ${updateMask} is within config, which is replaced as a whole$`, "i"),
        ]),
      })),
    ],
  },
  {
    anchor: "masks",
    says: "over REST the config in a body without a mask is replaced as a whole as well",
    http: "PATCH /registry/v2beta1/overlays/<freshOverlay>",
    body: { config: { accounts: { run_as: "app" } } },
    expect: { json: { name: "tools", config: { accounts: { runAs: "app" }, contents: absent } } },
  },
  {
    anchor: "masks",
    says: "the selector of an overlay binding is replaced as a whole",
    steps: [
      {
        call: "UpdateOverlayBinding",
        request: { overlayBinding: { uid: "<freshOverlayBinding>", tagSelector: all }, updateMask: "tagSelector" },
        expect: { result: { tagSelector: { kind: "KIND_ALL", tags: [] } } },
      },
      {
        call: "UpdateOverlayBinding",
        request: {
          overlayBinding: { uid: "<freshOverlayBinding>", tagSelector: exact("v1") },
          updateMask: "tagSelector.tags",
        },
        expect: invalid([/^update_?mask$/i, /tag_selector, which is replaced as a whole$/]),
      },
    ],
  },
  {
    anchor: "overlays",
    says: "a binding has its repo, the overlay as it is now and its selector",
    steps: [
      binds(
        exact("z", "a"),
        {
          result: {
            uid: /^<freshPlainRepo>\/[0-9a-f]{16}$/,
            repo: "<freshPlainRepo>",
            overlay: { uid: "<freshOverlay>", name: "tools", config },
            tagSelector: { kind: "KIND_EXACT", tags: ["z", "a"] },
          },
        },
        { made: "uid" },
      ),
      {
        call: "UpdateOverlay",
        request: { overlay: { uid: "<freshOverlay>", name: "newer", config: { environment: { A: "b" } } } },
        expect: {},
      },
      ...[
        { call: "GetOverlayBinding", request: { uid: "<made>" } },
        {
          call: "UpdateOverlayBinding",
          request: { overlayBinding: { uid: "<made>", tagSelector: exact("z", "a") } },
        },
      ].map((step) => ({
        ...step,
        expect: { result: { overlay: { name: "newer", config: { environment: { A: "b" } } } } },
      })),
      {
        call: "ListOverlayBindings",
        request: { uidp: { childrenOf: "<freshPlainRepo>" }, overlay: "<freshOverlay>" },
        expect: { result: { overlayBindings: each({ overlay: { name: "newer" } }, 1), totalCount: "1" } },
      },
      { call: "DeleteOverlayBinding", request: { uid: "<made>" }, expect: { text: "" } },
      { call: "GetOverlayBinding", request: { uid: "<made>" }, expect: { code: "NOT_FOUND" } },
    ],
  },
  {
    anchor: "overlays",
    says: "an update does not change the overlay of a binding",
    call: "UpdateOverlayBinding",
    request: {
      overlayBinding: { uid: "<freshOverlayBinding>", overlay: { uid: "<overlay>" }, tagSelector: all },
      updateMask: "*",
    },
    expect: { result: { overlay: { uid: "<freshOverlay>" }, tagSelector: { kind: "KIND_ALL" } } },
  },
  ...selectors.map(
    ([says, tagSelector, broken]): Rule => ({
      anchor: "overlays",
      says,
      ...binds(tagSelector, invalid([/^tag_?selector$/i, spelling(broken)])),
    }),
  ),
  {
    anchor: "overlays",
    says: "a repo has one binding to all tags, one to a variant, and one to each name",
    steps: [
      binds(all, {}, { whole: "uid" }),
      binds(all, { ...isTaken, message: "Already exists: overlay binding: <whole>" }),
      binds({ kind: "KIND_VARIANT", variantType: "VARIANT_TYPE_DEV" }),
      binds({ kind: "KIND_VARIANT", variantType: "VARIANT_TYPE_DEV" }, isTaken),
      binds(exact("v1", "v2"), {}, { first: "uid" }),
      binds(exact("v3", "v2"), { ...isTaken, message: "Already exists: overlay binding: <first>" }),
      binds(exact("v3"), {}, { second: "uid" }),
      {
        call: "UpdateOverlayBinding",
        request: { overlayBinding: { uid: "<second>", tagSelector: exact("v3", "v1") } },
        expect: { ...isTaken, message: "Already exists: overlay binding: <first>" },
      },
      {
        call: "UpdateOverlayBinding",
        request: { overlayBinding: { uid: "<first>", tagSelector: exact("v2", "v4") } },
        expect: {},
      },
      {
        call: "UpdateOverlayBinding",
        request: { overlayBinding: { uid: "<second>", tagSelector: exact("v3", "v1") } },
        expect: {},
      },
      { call: "DeleteOverlayBinding", request: { uid: "<whole>" }, expect: {} },
      binds(all),
    ],
  },
  {
    anchor: "overlays",
    says: "a repo with a custom_overlay has no bindings",
    steps: [
      {
        call: "CreateOverlayBinding",
        request: { parent: "<freshRepo>", overlay: "<freshOverlay>", tagSelector: all },
        expect: precondition("REPO_HAS_OVERLAY", "cannot bind an overlay to a repo with a custom overlay"),
      },
      { call: "UpdateRepo", request: { repo: { uid: "<freshRepo>" }, updateMask: "customOverlay" }, expect: {} },
      {
        call: "CreateOverlayBinding",
        request: { parent: "<freshRepo>", overlay: "<freshOverlay>", tagSelector: all },
        expect: {},
      },
    ],
  },
  {
    anchor: "overlays",
    says: "a repo with bindings has no custom_overlay, in any version",
    steps: [
      {
        call: "UpdateRepo",
        request: { repo: { uid: "<freshPlainRepo>", customOverlay: config } },
        made: ["<freshOverlayBinding>"],
        expect: precondition("RESOURCE_IN_USE", "cannot set the custom overlay of repo with child overlay bindings"),
      },
      {
        call: "registry.Registry.UpdateRepo",
        request: { id: "<freshPlainRepo>", name: "plain", customOverlay: config },
        expect: precondition("RESOURCE_IN_USE", "cannot set the custom overlay of repo with child overlay bindings"),
      },
      { call: "DeleteOverlayBinding", request: { uid: "<freshOverlayBinding>" }, expect: {} },
      { call: "UpdateRepo", request: { repo: { uid: "<freshPlainRepo>", customOverlay: config } }, expect: {} },
    ],
  },
  {
    anchor: "overlays",
    says: "the overlay of a new binding is named by its name as well",
    call: "CreateOverlayBinding",
    request: { parent: "<freshPlainRepo>", overlay: "tools", tagSelector: all },
    made: ["<freshOverlay>"],
    expect: { result: { overlay: { uid: "<freshOverlay>" } } },
  },
  {
    anchor: "overlays",
    says: "the nearest overlay of a name counts, and what a caller may not list is as what does not exist",
    shownBy: "test/registry/overlays.test.ts",
    test: "finds the nearest overlay of a name",
  },
  {
    anchor: "deletion",
    says: "an overlay that is bound cannot be deleted",
    steps: [
      {
        call: "DeleteOverlay",
        request: { uid: "<freshOverlay>" },
        made: ["<freshOverlayBinding>"],
        expect: precondition("RESOURCE_IN_USE", "cannot delete overlay that is bound to a repo"),
      },
      { call: "DeleteRepo", request: { uid: "<freshPlainRepo>" }, expect: {} },
      { call: "DeleteOverlay", request: { uid: "<freshOverlay>" }, expect: {} },
    ],
  },
  {
    anchor: "deletion",
    says: "a group with an overlay cannot be deleted",
    call: "DeleteGroup",
    request: { uid: "<fresh>" },
    made: ["<freshOverlay>"],
    expect: precondition("RESOURCE_NOT_EMPTY", "cannot delete group with child overlays"),
  },
  {
    anchor: "deletion",
    says: "overlay bindings are deleted with their repo",
    steps: [
      { call: "DeleteRepo", request: { uid: "<freshPlainRepo>" }, made: ["<freshOverlayBinding>"], expect: {} },
      { call: "GetOverlayBinding", request: { uid: "<freshOverlayBinding>" }, expect: { code: "NOT_FOUND" } },
      { call: "GetOverlay", request: { uid: "<freshOverlay>" }, expect: { result: { name: "tools" } } },
    ],
  },
];
