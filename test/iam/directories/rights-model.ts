// What the people of a directory may do, said naively: everything is a set, and everything is looked up anew for each question.

/** A role at a group, as `scope role`. */
export type Right = string;

export interface ModelPerson {
  /** Whether somebody has signed in as the person. */
  linked: boolean;
  active: boolean;
  /** Whether the directory has the person now. */
  present: boolean;
}

export interface ModelMapping {
  readonly id: string;
  readonly right: Right;
  readonly mapper: string;
}

/** How the model may be wrong, to show that differences are found. */
export type ModelFault = "ignores mappers" | "keeps members" | "deleted mappings count";

export class RightsModel {
  readonly people = new Map<string, ModelPerson>();
  /** What mappings name each group by, and its members. */
  readonly groups = new Map<string, { id: string; members: Set<string> }>();
  readonly mappings = new Map<string, ModelMapping>();
  /** What is bound by hand, by person. */
  readonly manual = new Map<string, Set<Right>>();
  /** The groups that each mapper owns. */
  readonly owned = new Map<string, Set<string>>();
  readonly #fault: ModelFault | undefined;

  constructor(fault?: ModelFault) {
    this.#fault = fault;
  }

  /** What the directory justifies, whoever made the mappings. */
  #justified(person: string, counts: (mapping: ModelMapping) => boolean): Set<Right> {
    const rights = new Set<Right>();
    const { linked = false, present = false } = this.people.get(person) ?? {};
    if (!linked || !present) return rights;
    for (const { id, members } of this.groups.values()) {
      if (!members.has(person)) continue;
      for (const mapping of this.mappings.values()) if (mapping.id === id && counts(mapping)) rights.add(mapping.right);
    }
    return rights;
  }

  /** Whether a mapper may grant at a group what mappings give: roles that only owners may. */
  mayGrant(mapper: string, right: Right): boolean {
    const [scope = ""] = right.split(" ");
    const owned = [...(this.owned.get(mapper) ?? [])];
    return this.#fault === "ignores mappers" || owned.some((group) => scope === group || scope.startsWith(`${group}/`));
  }

  /** All that the person may hold while work is left to do. */
  allowed(person: string): Set<Right> {
    return this.#of(person, () => true);
  }

  /** What the person holds when no work is left. */
  expected(person: string): Set<Right> {
    return this.#of(person, ({ mapper, right }) => this.mayGrant(mapper, right));
  }

  #of(person: string, counts: (mapping: ModelMapping) => boolean): Set<Right> {
    const { linked = false, present = false, active = false } = this.people.get(person) ?? {};
    if (!linked || !present || !active) return new Set();
    return new Set([...(this.manual.get(person) ?? []), ...this.#justified(person, counts)]);
  }

  removeMember(group: string, person: string): void {
    if (this.#fault !== "keeps members") this.groups.get(group)?.members.delete(person);
  }

  deleteMapping(uid: string): void {
    if (this.#fault !== "deleted mappings count") this.mappings.delete(uid);
  }

  /** Deletes a person, who is in no group when the directory sends the person again. */
  deletePerson(person: string): void {
    const row = this.people.get(person);
    if (row !== undefined) Object.assign(row, { present: false, active: false });
    for (const group of this.groups.keys()) this.removeMember(group, person);
  }
}
