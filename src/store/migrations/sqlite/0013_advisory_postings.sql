CREATE TABLE `advisory_changes` (
	`id` integer PRIMARY KEY NOT NULL,
	`uid` text NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `advisory_entries` (
	`number` integer PRIMARY KEY NOT NULL,
	`root` integer NOT NULL,
	`uid` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	`searched` text NOT NULL
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `advisory_entries_uid` ON `advisory_entries` (`uid`);--> statement-breakpoint
CREATE INDEX `advisory_entries_created` ON `advisory_entries` (`root`,`create_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `advisory_entries_updated` ON `advisory_entries` (`root`,`update_time_ms`,`uid`);--> statement-breakpoint
CREATE TABLE `advisory_facets` (
	`number` integer PRIMARY KEY NOT NULL,
	`facets` text NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `advisory_postings` (
	`root` integer NOT NULL,
	`filter` integer NOT NULL,
	`value` text NOT NULL,
	`word` integer NOT NULL,
	`bits` integer NOT NULL,
	PRIMARY KEY(`root`, `filter`, `value`, `word`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `advisory_roots` (
	`id` integer PRIMARY KEY NOT NULL,
	`uid` text NOT NULL
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `advisory_roots_uid` ON `advisory_roots` (`uid`);
--> statement-breakpoint
-- The rest is not part of the schema that the generator knows.
CREATE TRIGGER advisories_added AFTER INSERT ON advisories BEGIN
	INSERT INTO advisory_changes (uid) VALUES (new.uid);
END;
--> statement-breakpoint
CREATE TRIGGER advisories_changed AFTER UPDATE ON advisories BEGIN
	INSERT INTO advisory_changes (uid) VALUES (new.uid);
END;
--> statement-breakpoint
CREATE TRIGGER advisories_removed AFTER DELETE ON advisories BEGIN
	INSERT INTO advisory_changes (uid) VALUES (old.uid);
END;
--> statement-breakpoint
CREATE VIRTUAL TABLE advisory_texts USING fts5(searched, content='advisory_entries', content_rowid='number', columnsize=0, tokenize='trigram case_sensitive 1');
--> statement-breakpoint
CREATE TRIGGER advisory_entries_added AFTER INSERT ON advisory_entries BEGIN
	INSERT INTO advisory_texts (rowid, searched) VALUES (new.number, new.searched);
END;
--> statement-breakpoint
CREATE TRIGGER advisory_entries_changed AFTER UPDATE OF searched ON advisory_entries WHEN old.searched <> new.searched BEGIN
	INSERT INTO advisory_texts (advisory_texts, rowid, searched) VALUES ('delete', old.number, old.searched);
	INSERT INTO advisory_texts (rowid, searched) VALUES (new.number, new.searched);
END;
--> statement-breakpoint
CREATE TRIGGER advisory_entries_removed AFTER DELETE ON advisory_entries BEGIN
	INSERT INTO advisory_texts (advisory_texts, rowid, searched) VALUES ('delete', old.number, old.searched);
END;
--> statement-breakpoint
INSERT INTO advisory_changes (uid) SELECT uid FROM advisories ORDER BY uid;
