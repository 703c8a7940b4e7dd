CREATE TABLE `scopes` (
	`id` integer PRIMARY KEY NOT NULL,
	`uid` text NOT NULL
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `scopes_uid` ON `scopes` (`uid`);--> statement-breakpoint
CREATE TABLE `text_entries` (
	`list` integer NOT NULL,
	`scope` integer NOT NULL,
	`key` text NOT NULL,
	`below` blob NOT NULL,
	PRIMARY KEY(`scope`, `list`, `key`, `below`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `text_ranks` (
	`list` integer NOT NULL,
	`scope` integer NOT NULL,
	`key` text NOT NULL,
	`below` blob NOT NULL,
	`slot` integer NOT NULL,
	`n` integer,
	PRIMARY KEY(`scope`, `list`, `key`, `below`, `slot`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `time_entries` (
	`list` integer NOT NULL,
	`scope` integer NOT NULL,
	`key` integer NOT NULL,
	`below` blob NOT NULL,
	PRIMARY KEY(`scope`, `list`, `key`, `below`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `time_ranks` (
	`list` integer NOT NULL,
	`scope` integer NOT NULL,
	`key` integer NOT NULL,
	`below` blob NOT NULL,
	`slot` integer NOT NULL,
	`n` integer,
	PRIMARY KEY(`scope`, `list`, `key`, `below`, `slot`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `totals` (
	`counter` integer NOT NULL,
	`scope` integer NOT NULL,
	`slot` integer NOT NULL,
	`n` integer NOT NULL,
	PRIMARY KEY(`scope`, `counter`, `slot`)
) STRICT, WITHOUT ROWID;
