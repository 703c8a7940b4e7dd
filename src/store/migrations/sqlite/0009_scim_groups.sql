CREATE TABLE `scim_groups` (
	`uid` text PRIMARY KEY NOT NULL,
	`provider_uid` text NOT NULL,
	`root_uid` text NOT NULL,
	`display_name` text NOT NULL,
	`display_name_key` text NOT NULL,
	`external_id` text NOT NULL,
	`mapped_id` text NOT NULL,
	`attributes` text NOT NULL,
	`member_set` integer NOT NULL,
	`revision` integer NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`provider_uid`) REFERENCES `identity_providers`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `scim_groups_children` ON `scim_groups` (`provider_uid`,`uid`);--> statement-breakpoint
CREATE INDEX `scim_groups_display_name` ON `scim_groups` (`provider_uid`,`display_name_key`,`uid`);--> statement-breakpoint
CREATE UNIQUE INDEX `scim_groups_external_id` ON `scim_groups` (`provider_uid`,`external_id`) WHERE external_id <> '';--> statement-breakpoint
CREATE INDEX `scim_groups_mapped_id` ON `scim_groups` (`mapped_id`,`uid`);--> statement-breakpoint
CREATE INDEX `scim_groups_updated` ON `scim_groups` (`provider_uid`,`update_time_ms`,`uid`);--> statement-breakpoint
CREATE TABLE `scim_members` (
	`group_uid` text NOT NULL,
	`member_set` integer NOT NULL,
	`user_uid` text NOT NULL,
	PRIMARY KEY(`group_uid`, `member_set`, `user_uid`),
	FOREIGN KEY (`user_uid`) REFERENCES `scim_users`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `scim_members_user` ON `scim_members` (`user_uid`,`group_uid`);--> statement-breakpoint
CREATE TABLE `scim_work` (
	`provider_uid` text NOT NULL,
	`kind` text NOT NULL,
	`uid` text NOT NULL,
	`position` text NOT NULL,
	PRIMARY KEY(`provider_uid`, `kind`, `uid`),
	FOREIGN KEY (`provider_uid`) REFERENCES `identity_providers`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE UNIQUE INDEX `role_bindings_manual` ON `role_bindings` (`group_uid`,`identity_uid`,`role_uid`) WHERE managed_by_uid IS NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `role_bindings_managed` ON `role_bindings` (`group_uid`,`identity_uid`,`role_uid`,`managed_by_uid`);--> statement-breakpoint
ALTER TABLE `external_group_role_mappings` ADD `created_by` text;--> statement-breakpoint
CREATE INDEX `external_group_role_mappings_granted` ON `external_group_role_mappings` (`scope`,`role_uid`,`provider_uid`,`external_group_id`);
