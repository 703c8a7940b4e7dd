CREATE TABLE `scim_users` (
	`uid` text PRIMARY KEY NOT NULL,
	`provider_uid` text NOT NULL,
	`root_uid` text NOT NULL,
	`user_name` text NOT NULL,
	`user_name_key` text NOT NULL,
	`external_id` text NOT NULL,
	`display_name` text NOT NULL,
	`active` integer NOT NULL,
	`attributes` text NOT NULL,
	`identity_uid` text,
	`revision` integer NOT NULL,
	`reject_time_ms` integer,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`provider_uid`) REFERENCES `identity_providers`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `scim_users_children` ON `scim_users` (`provider_uid`,`uid`);--> statement-breakpoint
CREATE UNIQUE INDEX `scim_users_user_name` ON `scim_users` (`provider_uid`,`user_name_key`);--> statement-breakpoint
CREATE UNIQUE INDEX `scim_users_external_id` ON `scim_users` (`provider_uid`,`external_id`) WHERE external_id <> '';--> statement-breakpoint
CREATE INDEX `scim_users_updated` ON `scim_users` (`provider_uid`,`update_time_ms`,`uid`);--> statement-breakpoint
CREATE UNIQUE INDEX `scim_users_identity` ON `scim_users` (`identity_uid`) WHERE identity_uid IS NOT NULL;--> statement-breakpoint
CREATE INDEX `scim_users_rejected` ON `scim_users` (`provider_uid`,`reject_time_ms`) WHERE reject_time_ms IS NOT NULL;--> statement-breakpoint
CREATE TABLE `former_scim_users` (
	`provider_uid` text NOT NULL,
	`external_id` text NOT NULL,
	`uid` text NOT NULL,
	`identity_uid` text,
	`create_time_ms` integer NOT NULL,
	`delete_time_ms` integer NOT NULL,
	PRIMARY KEY(`provider_uid`, `external_id`),
	FOREIGN KEY (`provider_uid`) REFERENCES `identity_providers`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
ALTER TABLE `identities` ADD `deactivate_time_ms` integer;