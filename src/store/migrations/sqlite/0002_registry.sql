CREATE TABLE `advisories` (
	`uid` text PRIMARY KEY NOT NULL,
	`group_uid` text NOT NULL,
	`advisory_id` text NOT NULL,
	`legacy_advisory_id` text NOT NULL,
	`author` text NOT NULL,
	`artifact_name` text NOT NULL,
	`artifact_type` text NOT NULL,
	`artifact_architecture` text NOT NULL,
	`component_name` text NOT NULL,
	`component_location` text NOT NULL,
	`component_type` text NOT NULL,
	`aliases` text NOT NULL,
	`severities` text NOT NULL,
	`searched` text NOT NULL,
	`latest_event_type` integer NOT NULL,
	`source_key` text NOT NULL,
	`source_hash` text NOT NULL,
	`delete_time_ms` integer,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`group_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `advisories_group` ON `advisories` (`group_uid`,`uid`);--> statement-breakpoint
CREATE UNIQUE INDEX `advisories_id` ON `advisories` (`advisory_id`,`group_uid`);--> statement-breakpoint
CREATE INDEX `advisories_legacy` ON `advisories` (`legacy_advisory_id`);--> statement-breakpoint
CREATE INDEX `advisories_artifact` ON `advisories` (`artifact_name`);--> statement-breakpoint
CREATE INDEX `advisories_component` ON `advisories` (`component_name`);--> statement-breakpoint
CREATE INDEX `advisories_source` ON `advisories` (`group_uid`,`source_key`);--> statement-breakpoint
CREATE TABLE `advisory_aliases` (
	`alias` text NOT NULL,
	`advisory_uid` text NOT NULL,
	PRIMARY KEY(`alias`, `advisory_uid`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `advisory_aliases_advisory` ON `advisory_aliases` (`advisory_uid`);--> statement-breakpoint
CREATE TABLE `advisory_events` (
	`uid` text PRIMARY KEY NOT NULL,
	`advisory_uid` text NOT NULL,
	`type` integer NOT NULL,
	`author` text NOT NULL,
	`reviewer` text NOT NULL,
	`review_state` integer NOT NULL,
	`data` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`advisory_uid`) REFERENCES `advisories`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `advisory_events_advisory` ON `advisory_events` (`advisory_uid`,`create_time_ms`,`uid`);--> statement-breakpoint
CREATE TABLE `manifests` (
	`repo_uid` text NOT NULL,
	`digest` text NOT NULL,
	`images` text NOT NULL,
	PRIMARY KEY(`repo_uid`, `digest`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `registry_events` (
	`id` text PRIMARY KEY NOT NULL,
	`time_ms` integer NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `registry_events_time` ON `registry_events` (`time_ms`);--> statement-breakpoint
CREATE TABLE `repos` (
	`uid` text PRIMARY KEY NOT NULL,
	`group_uid` text NOT NULL,
	`name` text NOT NULL,
	`description` text NOT NULL,
	`config` text NOT NULL,
	`readme` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`group_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `repos_group` ON `repos` (`group_uid`,`uid`);--> statement-breakpoint
CREATE UNIQUE INDEX `repos_name` ON `repos` (`group_uid`,`name`);--> statement-breakpoint
CREATE TABLE `tag_history` (
	`tag_uid` text NOT NULL,
	`time_ms` integer NOT NULL,
	`digest` text NOT NULL,
	PRIMARY KEY(`tag_uid`, `time_ms`, `digest`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `tag_marks` (
	`repo_uid` text NOT NULL,
	`name` text NOT NULL,
	`time_ms` integer NOT NULL,
	PRIMARY KEY(`repo_uid`, `name`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `tag_marks_time` ON `tag_marks` (`time_ms`);--> statement-breakpoint
CREATE TABLE `tags` (
	`uid` text PRIMARY KEY NOT NULL,
	`repo_uid` text NOT NULL,
	`name` text NOT NULL,
	`digest` text NOT NULL,
	`family` integer NOT NULL,
	`deprecated` integer NOT NULL,
	`bundles` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`repo_uid`) REFERENCES `repos`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `tags_repo` ON `tags` (`repo_uid`,`uid`);--> statement-breakpoint
CREATE UNIQUE INDEX `tags_name` ON `tags` (`repo_uid`,`name`);--> statement-breakpoint
CREATE INDEX `tags_digest` ON `tags` (`digest`,`uid`);