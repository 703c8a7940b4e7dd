// What sort of thing the packages of an OSV ecosystem are. A release, as in
// `Debian:12`, makes no difference.

// The systems whose packages are artifacts of their own; of all others they are libraries.
const systems: Readonly<Record<string, string>> = {
  Alpaquita: "apk",
  Alpine: "apk",
  BellSoft: "apk",
  Chainguard: "apk",
  MinimOS: "apk",
  Wolfi: "apk",
  Debian: "deb",
  Echo: "deb",
  Ubuntu: "deb",
  AlmaLinux: "rpm",
  "Azure Linux": "rpm",
  Mageia: "rpm",
  openEuler: "rpm",
  openSUSE: "rpm",
  "Photon OS": "rpm",
  "Red Hat": "rpm",
  "Rocky Linux": "rpm",
  SUSE: "rpm",
};

const libraries: Readonly<Record<string, string>> = {
  "crates.io": "rust-crate",
  "GitHub Actions": "github-action",
  Go: "go-module",
  Hackage: "haskell",
  Hex: "hex",
  Maven: "java-archive",
  npm: "npm",
  NuGet: "dotnet",
  Packagist: "php-composer",
  Pub: "dart-pub",
  PyPI: "python",
  RubyGems: "gem",
  SwiftURL: "swift",
};

/** The type of artifact: `apk`, `deb`, `rpm` or `library`. */
export function artifactTypeOf(ecosystem: string): string {
  return found(systems, ecosystem) ?? "library";
}

/** The type of component, such as `go-module`; of ecosystems without a usual one their own name in lower case. */
export function componentTypeOf(ecosystem: string): string {
  return found(systems, ecosystem) ?? found(libraries, ecosystem) ?? nameOf(ecosystem).toLowerCase();
}

function found(types: Readonly<Record<string, string>>, ecosystem: string): string | undefined {
  const name = nameOf(ecosystem);
  return Object.hasOwn(types, name) ? types[name] : undefined;
}

function nameOf(ecosystem: string): string {
  return ecosystem.split(":", 1)[0] ?? ecosystem;
}
