CREATE TABLE `deployments` (
	`repo_uid` text PRIMARY KEY NOT NULL,
	`charts` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`repo_uid`) REFERENCES `repos`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `registry_settings` (
	`group_uid` text PRIMARY KEY NOT NULL,
	`unique_tags` integer NOT NULL,
	`eol_grace_period` integer NOT NULL,
	FOREIGN KEY (`group_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `subscriptions` (
	`uid` text PRIMARY KEY NOT NULL,
	`group_uid` text NOT NULL,
	`sink` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`group_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `subscriptions_group` ON `subscriptions` (`group_uid`,`uid`);--> statement-breakpoint
ALTER TABLE `group_invites` ADD `update_time_ms` integer DEFAULT 0 NOT NULL;