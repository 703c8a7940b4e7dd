// What an import makes of records, and that it does so once.
import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  EventTypeFilter,
  ReviewState,
  Severity_Type,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { randomIds } from "../../src/kernel/ids.js";
import { parentOf } from "../../src/kernel/uidp.js";
import { advisoryKind } from "../../src/store/advisories/advisories.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Store } from "../../src/store/store.js";
import { advisoryToProto } from "../../src/vulnerabilities/advisories/advisory.js";
import { putEvent } from "../../src/vulnerabilities/advisories/advisory-operations.js";
import { type ImportCounts, importOsv, type RecordFile } from "../../src/vulnerabilities/osv/import.js";
import { childUid } from "../support/rows.js";
import { tempDir } from "../support/temp-dir.js";
import { advisoryWorld, child, ours } from "./advisory-world.js";
import { affectPackage, osvRecord } from "./osv-kit.js";

let store: Store;
let writes = 0;
let audited = 0;
before(async () => {
  const opened = openSqlite({ directory: tempDir() });
  store = {
    ...opened,
    write(unit, options) {
      writes++;
      return opened.write(unit, options);
    },
  };
  await advisoryWorld(opened);
});

const faults: string[] = [];
async function importRecords(records: readonly (object | string)[], groupUid = ours): Promise<ImportCounts> {
  async function* files(): AsyncIterable<RecordFile> {
    for (const [i, record] of records.entries()) {
      const text = typeof record === "string" ? record : JSON.stringify(record);
      yield { name: `${i}.json`, read: async () => Buffer.from(text, "latin1") };
    }
  }
  faults.length = 0;
  writes = 0;
  audited = 0;
  return importOsv(files(), {
    store,
    groupUid,
    ids: randomIds,
    async onFirstWrite() {
      audited++;
    },
    onMalformed: (file, rule) => faults.push(`${file}: ${rule}`),
    onProgress() {},
  });
}
const outcomes = ({ created, updated, withdrawn, unchanged, newer }: ImportCounts) =>
  [created, updated, withdrawn, unchanged, newer].join(" ");

async function readStored(id: string, group = ours) {
  return store.read(async (tx) => {
    const uids = (await tx.table(advisoryKind).findUidsWhere("legacyAdvisoryId", id)).filter(
      (uid) => parentOf(uid) === group,
    );
    const views = [];
    for (const uid of uids) {
      const row = (await tx.table(advisoryKind).find(uid)) ?? assert.fail();
      views.push({ row, ...advisoryToProto(row, await tx.table(advisoryKind).listEvents([uid])) });
    }
    return views.sort((a, b) => (a.row.sourceKey < b.row.sourceKey ? -1 : 1));
  });
}

describe("a record becomes", () => {
  it("an advisory per package, with ids, severities, times and events", async () => {
    const record = osvRecord("MAP-1", {
      modified: "2024-02-01T10:20:30.123456Z",
      severity: [
        { type: "CVSS_V2", score: "AV:N/AC:L/Au:N/C:P/I:P/A:P" },
        { type: "CVSS_V4", score: "CVSS:4.0/AV:N" },
        { type: "Ubuntu", score: "high" },
      ],
      affected: [
        affectPackage("PyPI", "django", "3.2.5"),
        affectPackage("PyPI", "django", "4.2.1"),
        affectPackage("PyPI", "django", "4.2.1"),
        { ...affectPackage("Alpine:v3.19", "py3-django"), severity: [{ type: "CVSS_V3", score: "CVSS:3.1/AV:N" }] },
        { ranges: [{ type: "GIT", repo: "https://example.org/x", events: [{ introduced: "0" }, { fixed: "abc" }] }] },
      ],
    });
    assert.equal(outcomes(await importRecords([record])), "2 0 0 0 0");
    assert.equal(audited, 1);
    const [alpine, pypi, ...rest] = await readStored("MAP-1");
    assert.ok(alpine && pypi && rest.length === 0);
    for (const one of [alpine, pypi]) {
      assert.match(one.advisoryId, /^CGA(-[23456789cfghjmpqrvwx]{4}){3}$/);
      assert.deepEqual(one.aliases, ["MAP-1", "CVE-2024-MAP-1"]);
      assert.equal(one.author, "osv");
      assert.equal(one.deleteTime, undefined);
      assert.equal(one.createTime && timestampMs(one.createTime), Date.UTC(2024, 0, 1));
      assert.equal(one.updateTime && timestampMs(one.updateTime), Date.UTC(2024, 1, 1, 10, 20, 30, 123));
      assert.ok(one.events.every(({ reviewState }) => reviewState === ReviewState.APPROVED));
    }
    assert.notEqual(alpine.advisoryId, pypi.advisoryId);
    assert.deepEqual([pypi.artifactName, pypi.artifactType, pypi.componentType], ["django", "library", "python"]);
    assert.deepEqual([alpine.artifactName, alpine.artifactType, alpine.componentType], ["py3-django", "apk", "apk"]);
    const severities = (one: typeof pypi) => one.severities.map(({ type, score }) => [type, score]);
    assert.deepEqual(severities(pypi), [
      [Severity_Type.CVSS_V2, "AV:N/AC:L/Au:N/C:P/I:P/A:P"],
      [Severity_Type.CVSS_V4, "CVSS:4.0/AV:N"],
    ]);
    assert.deepEqual(severities(alpine), [[Severity_Type.CVSS_V3, "CVSS:3.1/AV:N"]]);
    assert.deepEqual(
      pypi.events.map(({ type }) => (type.case === "fixed" ? type.value.fixedVersion : type.case)),
      ["detection", "3.2.5", "4.2.1"],
    );
    assert.deepEqual(
      alpine.events.map(({ type }) => type.case),
      ["detection"],
    );
    assert.equal(pypi.row.latestEventType, EventTypeFilter.FIXED);
    assert.equal(alpine.row.latestEventType, EventTypeFilter.DETECTION);
  });

  it("nothing without a package, which is not malformed", async () => {
    const counts = await importRecords([osvRecord("NO-1", { affected: [] }), osvRecord("NO-2", { affected: null })]);
    assert.deepEqual(
      [counts.records, counts.withoutPackage, counts.malformed, outcomes(counts)],
      [2, 2, 0, "0 0 0 0 0"],
    );
    assert.equal(writes, 0);
  });

  it("the same advisory id in every group", async () => {
    await importRecords([osvRecord("ID-1")]);
    await importRecords([osvRecord("ID-1")], child);
    const [[here], [there]] = [await readStored("ID-1"), await readStored("ID-1", child)];
    assert.ok(here && there && here.uid !== there.uid);
    assert.equal(here.advisoryId, there.advisoryId);
  });
});

describe("an import again", () => {
  it("of the same records writes nothing", async () => {
    const records = Array.from({ length: 300 }, (_, i) => osvRecord(`SAME-${i}`));
    assert.equal(outcomes(await importRecords([...records, records[0] ?? {}])), "300 0 0 1 0");
    const before = await readStored("SAME-7");
    assert.equal(outcomes(await importRecords(records)), "0 0 0 300 0");
    assert.deepEqual([writes, audited], [0, 0]);
    assert.deepEqual(await readStored("SAME-7"), before);
  });

  it("of a changed record changes its advisory alone, and keeps the events of others", async () => {
    await importRecords([osvRecord("CHANGE-1"), osvRecord("CHANGE-2")]);
    const [before] = await readStored("CHANGE-1");
    assert.ok(before);
    const [own] = await store.read((tx) => tx.table(advisoryKind).listEvents([before.uid]));
    assert.ok(own);
    const note = { ...own, uid: childUid(before.uid, 0x1234_5678_9abc), author: "ann@example.org", reviewState: 1 };
    await store.write((tx) => putEvent(tx, note));
    const changed = osvRecord("CHANGE-1", {
      modified: "2024-03-01T00:00:00Z",
      withdrawn: "2024-03-01T00:00:00Z",
      aliases: ["CVE-NEW"],
      affected: [affectPackage("PyPI", "django")],
    });
    assert.equal(outcomes(await importRecords([changed, osvRecord("CHANGE-2")])), "0 1 0 1 0");
    const [after, ...more] = await readStored("CHANGE-1");
    assert.ok(after && more.length === 0);
    assert.deepEqual([after.uid, after.advisoryId], [before.uid, before.advisoryId]);
    assert.deepEqual(after.aliases, ["CHANGE-1", "CVE-NEW"]);
    assert.equal(after.deleteTime && timestampMs(after.deleteTime), Date.UTC(2024, 2, 1));
    assert.deepEqual(after.events.map(({ author }) => author).sort(), ["ann@example.org", "osv"]);
    assert.equal(after.row.latestEventType, EventTypeFilter.DETECTION);
    assert.equal(outcomes(await importRecords([changed])), "0 0 0 1 0");
  });

  it("of an older state of a record leaves the newer one", async () => {
    await importRecords([osvRecord("OLD-1", { modified: "2024-05-01T00:00:00Z", aliases: ["NEW"] })]);
    assert.equal(outcomes(await importRecords([osvRecord("OLD-1")])), "0 0 0 0 1");
    assert.equal(writes, 0);
    assert.deepEqual((await readStored("OLD-1"))[0]?.aliases, ["OLD-1", "NEW"]);
  });

  it("withdraws what a record no longer names, and takes that back", async () => {
    const both = { affected: [affectPackage("npm", "a"), affectPackage("npm", "b")] };
    const one = { affected: [affectPackage("npm", "b")], modified: "2024-06-01T00:00:00Z" };
    const none = { affected: [], modified: "2024-07-01T00:00:00Z" };
    await importRecords([osvRecord("GONE-1", both)]);
    assert.equal(outcomes(await importRecords([osvRecord("GONE-1", one)])), "0 1 1 0 0");
    const readDeleted = async () => (await readStored("GONE-1")).map(({ deleteTime }) => deleteTime !== undefined);
    assert.deepEqual(await readDeleted(), [true, false]);
    assert.equal(outcomes(await importRecords([osvRecord("GONE-1", one)])), "0 0 0 1 0");
    assert.equal(outcomes(await importRecords([osvRecord("GONE-1", none)])), "0 0 1 0 0");
    assert.equal(outcomes(await importRecords([osvRecord("GONE-1", none)])), "0 0 0 0 0");
    assert.equal(writes, 0);
    await importRecords([osvRecord("GONE-1", { ...both, modified: "2024-08-01T00:00:00Z" })]);
    assert.deepEqual(await readDeleted(), [false, false]);
  });
});

describe("a malformed record", () => {
  const bad = (values: object) => osvRecord("BAD-1", values);
  const range = (event: object, type: unknown = "SEMVER") => ({ affected: [{ ranges: [{ type, events: [event] }] }] });
  const cases: readonly { name: string; record: object | string; rule: string }[] = [
    { name: "no JSON", record: "{", rule: "record must be JSON" },
    { name: "empty", record: "", rule: "record must be JSON" },
    { name: "not UTF-8", record: '{"id":"\xff"}', rule: "record must be UTF-8" },
    { name: "a list", record: "[]", rule: "record must be an object" },
    { name: "null", record: "null", rule: "record must be an object" },
    { name: "no id", record: bad({ id: undefined }), rule: "id is required" },
    { name: "an id that is a number", record: bad({ id: 7 }), rule: "id must be a string" },
    { name: "an id with NUL", record: bad({ id: "a\0b" }), rule: "id must not contain control characters" },
    { name: "a long id", record: bad({ id: "x".repeat(1_001) }), rule: "id must be at most 1000 characters" },
    { name: "another schema", record: bad({ schema_version: "2.0.0" }), rule: "schema_version must be 1.x" },
    { name: "no modified", record: bad({ modified: undefined }), rule: "modified is required" },
    {
      name: "a local time",
      record: bad({ modified: "2024-01-01T00:00:00+01:00" }),
      rule: "modified must be a time such as",
    },
    {
      name: "a day too many",
      record: bad({ published: "2023-02-29T00:00:00Z" }),
      rule: "published must be a time such as",
    },
    { name: "hour 25", record: bad({ withdrawn: "2023-02-01T25:00:00Z" }), rule: "withdrawn must be a time such as" },
    { name: "an alias that is empty", record: bad({ aliases: ["A", ""] }), rule: "aliases[1] is required" },
    { name: "aliases that are none", record: bad({ aliases: "A" }), rule: "aliases must be an array" },
    {
      name: "a severity of no type",
      record: bad({ severity: [{ score: "1" }] }),
      rule: "severity[0].type is required",
    },
    { name: "affected as text", record: bad({ affected: ["x"] }), rule: "affected[0] must be an object" },
    {
      name: "no ecosystem",
      record: bad({ affected: [{ package: { name: "x" } }] }),
      rule: "affected[0].package.ecosystem is required",
    },
    {
      name: "no name",
      record: bad({ affected: [{ package: { ecosystem: "npm" } }] }),
      rule: "affected[0].package.name is required",
    },
    {
      name: "a range of no type",
      record: bad(range({ introduced: "0" }, "")),
      rule: "affected[0].ranges[0].type is required",
    },
    { name: "an event of nothing", record: bad(range({})), rule: "affected[0].ranges[0].events[0] must have one of" },
    {
      name: "an event of two",
      record: bad(range({ introduced: "0", fixed: "1" })),
      rule: "affected[0].ranges[0].events[0] must have one of",
    },
    {
      name: "a fix that is a number",
      record: bad(range({ fixed: 1 })),
      rule: "affected[0].ranges[0].events[0].fixed must be a string",
    },
  ];
  for (const { name, record, rule } of cases) {
    it(`${name}: is named with its rule, and the others are imported`, async () => {
      const id = `GOOD-${name}`;
      const counts = await importRecords([record, osvRecord(id)]);
      assert.deepEqual([counts.records, counts.malformed, counts.created], [2, 1, 1]);
      assert.equal(faults.length, 1);
      assert.ok(faults[0]?.startsWith("0.json: ") && faults[0].includes(`: ${rule}`), faults[0]);
      assert.equal((await readStored(id)).length, 1);
      assert.equal((await readStored("BAD-1")).length, 0);
    });
  }
});
