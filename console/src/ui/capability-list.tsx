/** Capabilities by the kind of resource that they are about. */
export function CapabilityList({ names }: { readonly names: readonly string[] }) {
  const kinds = new Map<string, string[]>();
  for (const name of names) {
    const dot = name.lastIndexOf(".");
    const kind = dot < 0 ? name : name.slice(0, dot);
    kinds.set(kind, [...(kinds.get(kind) ?? []), dot < 0 ? "" : name.slice(dot + 1)]);
  }
  if (kinds.size === 0) return <p className="soft">It allows nothing.</p>;
  return (
    <dl className="facts">
      {[...kinds].map(([kind, actions]) => (
        <div key={kind} className="capability">
          <dt>{kind.replaceAll("_", " ").replaceAll(".", " ")}</dt>
          <dd>{actions.filter((action) => action !== "").join(", ") || "yes"}</dd>
        </div>
      ))}
    </dl>
  );
}
