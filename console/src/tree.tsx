// The tree of groups, which reads the children of a group when it is opened. A group with more children than fit has a
// line that leads to the list of them, so that the tree stays small however many there are.
import { createClient } from "@connectrpc/connect";
import { useQuery, useTransport } from "@connectrpc/connect-query";
import { normalizeProps, useMachine } from "@zag-js/react";
import * as treeView from "@zag-js/tree-view";
import { useEffect, useId, useMemo, useRef, useState } from "react";
import { useLocation } from "wouter";
import { GroupsService } from "#gen/chainguard/platform/iam/v2/groups_pb.js";
import { topsFilter, useRights } from "./api/rights.js";
import { useTreeVersion } from "./api/transport.js";
import { lineageOf } from "./api/uids.js";
import { ChevronIcon } from "./ui/icons.js";
import { Failed, Loading } from "./ui/page.js";

interface Node {
  readonly id: string;
  readonly name: string;
  /** Where it leads. */
  readonly href: string;
  readonly children?: Node[];
  /** Makes a group without read children one that can be opened. */
  readonly childrenCount?: number;
}

const MAX_CHILDREN = 100;

export function GroupTree() {
  const rights = useRights();
  const version = useTreeVersion();
  const request = { uidp: topsFilter(rights), orderBy: "name", pageSize: MAX_CHILDREN };
  const isAny = rights.isKnown && rights.tops?.length !== 0;
  const { data, error, refetch } = useQuery(GroupsService.method.listGroups, request, { enabled: isAny });
  if (rights.isKnown && !isAny) return <p className="soft">You see no group yet.</p>;
  if (data === undefined) return error ? <Failed error={error} onRetry={() => void refetch()} /> : <Loading />;
  const roots = toNodes(data, "/", "/");
  // Organisations that were made, renamed or deleted begin the tree anew.
  return <Tree roots={roots} key={`${version} ${roots.map(({ id, name }) => `${id} ${name}`).join()}`} />;
}

function Tree({ roots }: { readonly roots: Node[] }) {
  const transport = useTransport();
  const [path, navigate] = useLocation();
  const shown = /^\/groups\/(.+)$/.exec(path)?.[1];
  const initial = useMemo(() => {
    const rootNode: Node = { id: "ROOT", name: "", href: "/", children: roots };
    return treeView.collection<Node>({ rootNode, nodeToValue: ({ id }) => id, nodeToString: ({ name }) => name });
  }, [roots]);
  const [collection, setCollection] = useState(initial);
  const service = useMachine(treeView.machine as treeView.Machine<Node>, {
    id: useId(),
    collection,
    expandOnClick: false,
    selectedValue: shown === undefined ? [] : [decodeURIComponent(shown)],
    translations: { treeLabel: "Groups" },
    loadChildren: async ({ node, signal }) => {
      const client = createClient(GroupsService, transport);
      const request = { uidp: { childrenOf: node.id }, orderBy: "name", pageSize: MAX_CHILDREN };
      return toNodes(await client.listGroups(request, { signal }), node.id, `/groups/${node.id}?view=groups`);
    },
    onLoadChildrenComplete: ({ collection: next }) => setCollection(next),
    onSelectionChange: ({ selectedNodes: [node] }) => node && navigate(node.href),
  });
  const api = treeView.connect(service, normalizeProps);
  useOpened(shown === undefined ? "" : decodeURIComponent(shown), collection, api);
  return (
    <div className="tree" {...api.getRootProps()}>
      <div {...api.getTreeProps()}>
        {collection.rootNode.children?.map((node, index) => (
          <TreeNode key={node.id} node={node} indexPath={[index]} api={api} />
        ))}
      </div>
    </div>
  );
}

// Opens the groups above the one that is shown, one after the other as their children arrive. A person may close them
// again.
function useOpened(uid: string, collection: treeView.Api["collection"], api: treeView.Api): void {
  const pending = useRef<readonly string[]>([]);
  useEffect(() => {
    pending.current = lineageOf(uid).slice(0, -1);
  }, [uid]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it goes on when children have arrived.
  useEffect(() => {
    pending.current = pending.current.filter((one) => !api.expandedValue.includes(one));
    // Groups above those that the viewer sees are not in the tree.
    const next = pending.current.find((one) => collection.findNode(one));
    if (next !== undefined) api.expand([next]);
  }, [uid, collection, api.expandedValue.length]);
}

interface TreeNodeProps {
  readonly node: Node;
  readonly indexPath: number[];
  readonly api: treeView.Api;
}

function TreeNode({ node, indexPath, api }: TreeNodeProps) {
  const props = { node, indexPath };
  const state = api.getNodeState(props);
  if (!state.isBranch) {
    return (
      <div {...api.getItemProps(props)} className="tree-row">
        <span className="tree-toggle" />
        <span className="tree-name foreign" title={node.name}>
          {node.name}
        </span>
      </div>
    );
  }
  return (
    <div {...api.getBranchProps(props)}>
      <div {...api.getBranchControlProps(props)} className="tree-row">
        <span {...api.getBranchTriggerProps(props)} className="tree-toggle" title={state.expanded ? "Close" : "Open"}>
          <ChevronIcon />
        </span>
        <span className="tree-name foreign" title={node.name}>
          {node.name}
        </span>
      </div>
      {state.expanded && (
        <div {...api.getBranchContentProps(props)}>
          {node.children?.map((child, index) => (
            <TreeNode key={child.id} node={child} indexPath={[...indexPath, index]} api={api} />
          ))}
        </div>
      )}
    </div>
  );
}

interface GroupPageOf {
  readonly groups: readonly { readonly uid: string; readonly name: string }[];
  readonly nextPageToken: string;
  readonly totalCount?: bigint | undefined;
}

function toNodes({ groups, nextPageToken, totalCount }: GroupPageOf, parent: string, listHref: string): Node[] {
  const nodes: Node[] = groups.map(({ uid, name }) => ({ id: uid, name, href: `/groups/${uid}`, childrenCount: 1 }));
  if (nextPageToken === "") return nodes;
  const count = totalCount === undefined ? "All groups" : `All ${totalCount} groups`;
  return [...nodes, { id: `${parent} all`, name: `${count}…`, href: listHref }];
}
