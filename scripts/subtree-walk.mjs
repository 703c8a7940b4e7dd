// Changes the rows of a subtree through one node of the service, and compares what other nodes answer what must be
// in it. Nothing else may write in the subtree.
import { isDeepStrictEqual } from "node:util";

const NAMED = ["uid", "name", "created_at", "updated_at"];
/** The kinds of rows, and the fields by which their lists can be ordered. */
export const ORDERS = { groups: NAMED, identities: NAMED, roles: NAMED, roleBindings: ["uid", "created_at"] };
const KINDS = Object.keys(ORDERS);
const VALUES = { uid: "uid", name: "name", created_at: "createTime", updated_at: "updateTime" };
/** From how many rows on more are deleted than created. */
const MANY_ROWS = 120;
const MAX_SEGMENTS = 8;

/** The subtree of a group. A node has a `name`, a `url` and a `token`; it counts its `requests`, and keeps the `longestMs`. */
export class Subtree {
  changes = { created: 0, renamed: 0, deleted: 0 };
  #top;
  #role;
  #random;
  #onError;
  #rows;

  /**
   * @param top the group, as it was created
   * @param role the uid of a built-in role to bind
   * @param random returns a whole number below its argument
   * @param onError is called with a text for each response that is not as expected
   */
  constructor({ top, role, random, onError }) {
    this.#top = top;
    this.#role = role;
    this.#random = random;
    this.#onError = onError;
    this.#rows = new Map([[top.uid, { ...top, kind: "groups" }]]);
  }

  get uid() {
    return this.#top.uid;
  }

  get size() {
    return this.#rows.size;
  }

  /** Makes one change through a node, and reads it and the lists that it is in, beginning at another node. */
  async step(writer, reader) {
    try {
      const { kind, parent } = await this.#change(writer, reader);
      const nodes = [reader, writer];
      await this.#compareList(nodes, kind, "uidp.children_of", parent);
      await this.#compareList(nodes, this.#pick(KINDS), "uidp.descendants_of", this.uid);
    } catch (error) {
      this.#onError(String(error));
    }
  }

  /** Compares what a node lists of each kind. */
  async compareLists(node) {
    for (const kind of KINDS) await this.#compareList([node], kind, "uidp.descendants_of", this.uid);
  }

  async #change(writer, reader) {
    const all = [...this.#rows.values()];
    const row = this.#pick(all.slice(1));
    const action = this.#random(10);
    if (row === undefined || action < (all.length < MANY_ROWS ? 5 : 2)) return this.#create(all, writer, reader);
    const path = `/${row.kind}/${row.uid}`;
    const isUsed = all.some(({ parent, roleUid }) => parent === row.uid || roleUid === row.uid);
    if (isUsed || (action < 7 && row.kind !== "roleBindings")) {
      const answer = await send(writer, "PATCH", path, { name: this.#name() });
      this.changes.renamed++;
      Object.assign(row, answer);
      this.#expect(`${reader.name} ${path}`, await send(reader, "GET", path), answer);
    } else {
      await send(writer, "DELETE", path);
      this.changes.deleted++;
      for (const { uid, identityUid } of all) if (uid === row.uid || identityUid === row.uid) this.#rows.delete(uid);
      await send(reader, "GET", path, undefined, 404);
    }
    return row;
  }

  async #create(all, writer, reader) {
    const groups = all.filter(({ kind, uid }) => kind === "groups" && uid.split("/").length < MAX_SEGMENTS);
    const identities = all.filter(({ kind }) => kind === "identities");
    const kind = this.#pick(identities.length > 0 ? KINDS : ["groups", "identities", "roles"]);
    const parent = this.#pick(groups).uid;
    let body = { name: this.#name() };
    if (kind === "roles") body.capabilities = ["CAP_REPO_LIST"];
    if (kind === "identities") body.claimMatch = { issuer: "https://issuer.example.com", subject: body.name };
    if (kind === "roleBindings") {
      const roles = all.filter((row) => row.kind === "roles" && parent.startsWith(row.parent)).map(({ uid }) => uid);
      body = { identityUid: this.#pick(identities).uid, roleUid: this.#pick([this.#role, ...roles]) };
    }
    const answer = await send(writer, "POST", `/${kind}/${parent}`, body);
    this.changes.created++;
    this.#rows.set(answer.uid, { ...body, ...answer, kind, parent });
    this.#expect(`${reader.name} ${answer.uid}`, await send(reader, "GET", `/${kind}/${answer.uid}`), answer);
    return { kind, parent };
  }

  /** Reads a list in any order, each page on the next of these nodes. */
  async #compareList(nodes, kind, filter, uid) {
    const [field, descending] = [this.#pick(ORDERS[kind]), this.#random(2) === 0];
    const query = {
      [filter]: uid,
      order_by: field + (descending ? " desc" : ""),
      page_size: 2 + this.#random(20),
    };
    const { rows, totals } = await readPages(nodes, kind, query);
    const isIn = filter === "uidp.children_of" ? (row) => row.parent === uid : (row) => row.uid !== uid;
    const expected = [...this.#rows.values()].filter((row) => row.kind === kind && isIn(row));
    const keyOf = (row) => (field.endsWith("_at") ? Date.parse(row[VALUES[field]]) : row[VALUES[field]]);
    expected.sort((a, b) => compareValues(keyOf(a), keyOf(b)) || compareValues(a.uid, b.uid));
    if (descending) expected.reverse();
    this.#expect(
      `${nodes[0].name} ${kind} ${JSON.stringify(query)}`,
      { uids: rows.map((row) => row.uid), totals },
      { uids: expected.map((row) => row.uid), totals: [expected.length] },
    );
  }

  #pick(all) {
    return all[this.#random(all.length)];
  }

  // Few names, so that lists have equal ones.
  #name() {
    return `name ${this.#random(30)}`;
  }

  #expect(label, actual, expected) {
    if (isDeepStrictEqual(actual, expected)) return;
    const error = `${label}: ${JSON.stringify(actual)} in place of ${JSON.stringify(expected)}`;
    this.#onError(error.replaceAll(`${this.uid}/`, ""));
  }
}

/** Reads all pages of a list, each on the next of these nodes. Returns its rows, and the total counts of the pages that differ. */
export async function readPages(nodes, kind, query) {
  const [rows, totals] = [[], new Set()];
  let token = "";
  for (let page = 0; page < 1_000; page++) {
    const parameters = new URLSearchParams({ ...query, ...(token && { page_token: token }) });
    const answer = await send(nodes[page % nodes.length], "GET", `/${kind}?${parameters}`);
    rows.push(...answer[kind]);
    totals.add(Number(answer.totalCount));
    token = answer.nextPageToken ?? "";
    if (token === "") return { rows, totals: [...totals] };
  }
  throw new Error(`${kind} ${JSON.stringify(query)} does not end`);
}

/**
 * Sends a request to a node and returns the JSON of its response.
 *
 * @throws Error with the response when its status is not the expected one
 */
export async function send(node, method, path, body, expected = 200) {
  node.requests++;
  const startMs = performance.now();
  const headers = { authorization: `Bearer ${node.token}`, "content-type": "application/json" };
  const request = { method, headers, body: body && JSON.stringify(body), signal: AbortSignal.timeout(30_000) };
  const response = await fetch(`${node.url}/iam/v2beta1${path}`, request);
  const answer = await response.text();
  node.longestMs = Math.max(node.longestMs, Math.round(performance.now() - startMs));
  if (response.status !== expected) throw new Error(`${node.name} ${method} ${path}: ${response.status} ${answer}`);
  return answer === "" ? {} : JSON.parse(answer, omitEmpty);
}

// Versions differ in which empty fields they print.
function omitEmpty(_key, value) {
  const isEmpty = value === "" || (typeof value === "object" && Object.keys(value ?? {}).length === 0);
  return isEmpty && !Array.isArray(value) ? undefined : value;
}

function compareValues(a, b) {
  return a < b ? -1 : Number(a > b);
}
