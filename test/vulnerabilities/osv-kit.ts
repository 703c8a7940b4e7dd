// OSV records for tests.

/** A record with all that matters filled in; `values` replace its fields. */
export function osvRecord(id: string, values: object = {}): object {
  return {
    schema_version: "1.6.7",
    id,
    modified: "2024-02-01T00:00:00Z",
    published: "2024-01-01T00:00:00Z",
    aliases: [`CVE-2024-${id}`],
    affected: [affectPackage("PyPI", "django", "4.2.1")],
    ...values,
  };
}

/** One package of a record: affected from the start, up to the fix if there is one. */
export function affectPackage(ecosystem: string, name: string, fixed?: string): object {
  const events = [{ introduced: "0" }, ...(fixed === undefined ? [] : [{ fixed }])];
  return { package: { ecosystem, name }, ranges: [{ type: "ECOSYSTEM", events }] };
}

const ecosystems = ["PyPI", "npm", "Go", "Maven", "Alpine:v3.19", "Debian:12", "crates.io"];

/** The nth record of a large set: as long as usual ones are, of one package each. */
export function manyRecord(n: number): { readonly id: string; readonly json: string } {
  const id = `TEST-2024-${String(n).padStart(7, "0")}`;
  const record = osvRecord(id, {
    published: new Date(1_600_000_000_000 + n * 60_000).toISOString(),
    modified: new Date(1_700_000_000_000 + ((n * 7_919) % 1_000_003) * 1_000).toISOString(),
    aliases: [`CVE-2024-${n}`, `GHSA-${n}`],
    summary: `Flaw ${n}`,
    details: `What can go wrong and why. `.repeat(20),
    severity: [{ type: "CVSS_V3", score: "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H" }],
    affected: [
      affectPackage(ecosystems[n % ecosystems.length] ?? "npm", `package-${n % 5_000}`, n % 3 ? `1.${n}.0` : undefined),
    ],
  });
  return { id, json: JSON.stringify(record) };
}
