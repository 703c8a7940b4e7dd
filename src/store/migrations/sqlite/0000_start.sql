CREATE TABLE `access_requests` (
	`group_uid` text NOT NULL,
	`identity_uid` text NOT NULL,
	`time_ms` integer NOT NULL,
	PRIMARY KEY(`group_uid`, `identity_uid`),
	FOREIGN KEY (`group_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `account_associations` (
	`uid` text PRIMARY KEY NOT NULL,
	`parent_uid` text,
	`name` text NOT NULL,
	`description` text NOT NULL,
	`accounts` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `account_associations_parent` ON `account_associations` (`parent_uid`,`uid`);--> statement-breakpoint
CREATE TABLE `audit` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`root_uid` text NOT NULL,
	`time_ms` integer NOT NULL,
	`type` text NOT NULL,
	`method` text NOT NULL,
	`subject_uid` text NOT NULL,
	`actor_uid` text NOT NULL,
	`token_id` text NOT NULL,
	`request_id` text NOT NULL,
	`remote_address` text NOT NULL
) STRICT;
--> statement-breakpoint
CREATE INDEX `audit_root` ON `audit` (`root_uid`,`id`);--> statement-breakpoint
CREATE TABLE `audit_chain` (
	`root_uid` text NOT NULL,
	`seq` integer NOT NULL,
	`audit_id` integer NOT NULL,
	`hash` text NOT NULL,
	PRIMARY KEY(`root_uid`, `seq`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE UNIQUE INDEX `audit_chain_audit` ON `audit_chain` (`audit_id`);--> statement-breakpoint
CREATE TABLE `audit_heads` (
	`root_uid` text PRIMARY KEY NOT NULL,
	`seq` integer NOT NULL,
	`hash` text NOT NULL,
	`time_ms` integer NOT NULL,
	`signature` text NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `audit_sealer` (
	`name` text PRIMARY KEY NOT NULL,
	`holder` text NOT NULL,
	`expire_time_ms` integer NOT NULL,
	`settled_id` integer NOT NULL,
	`passes` integer NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `counters` (
	`counter` integer NOT NULL,
	`scope` text NOT NULL,
	`slot` integer NOT NULL,
	`n` integer NOT NULL,
	PRIMARY KEY(`counter`, `scope`, `slot`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `group_invites` (
	`uid` text PRIMARY KEY NOT NULL,
	`group_uid` text NOT NULL,
	`role_uid` text NOT NULL,
	`email` text NOT NULL,
	`single_use` integer NOT NULL,
	`key_id` text NOT NULL,
	`code_hash` text NOT NULL,
	`expire_time_ms` integer NOT NULL,
	`create_time_ms` integer NOT NULL,
	FOREIGN KEY (`group_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`role_uid`) REFERENCES `roles`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `group_invites_group` ON `group_invites` (`group_uid`,`uid`);--> statement-breakpoint
CREATE INDEX `group_invites_role` ON `group_invites` (`role_uid`);--> statement-breakpoint
CREATE UNIQUE INDEX `group_invites_key` ON `group_invites` (`key_id`);--> statement-breakpoint
CREATE TABLE `external_group_role_mappings` (
	`uid` text PRIMARY KEY NOT NULL,
	`provider_uid` text NOT NULL,
	`external_group_id` text NOT NULL,
	`role_uid` text NOT NULL,
	`scope` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	FOREIGN KEY (`provider_uid`) REFERENCES `identity_providers`(`uid`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`role_uid`) REFERENCES `roles`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE UNIQUE INDEX `external_group_role_mappings_same` ON `external_group_role_mappings` (`provider_uid`,`external_group_id`,`role_uid`,`scope`);--> statement-breakpoint
CREATE INDEX `external_group_role_mappings_role` ON `external_group_role_mappings` (`role_uid`);--> statement-breakpoint
CREATE TABLE `groups` (
	`uid` text PRIMARY KEY NOT NULL,
	`parent_uid` text,
	`name` text NOT NULL,
	`description` text NOT NULL,
	`verified` integer NOT NULL,
	`kind` integer NOT NULL,
	`resource_limits` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`parent_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `groups_children_uid` ON `groups` (`parent_uid`,`uid`);--> statement-breakpoint
CREATE INDEX `groups_children_name` ON `groups` (`parent_uid`,`name`,`uid`);--> statement-breakpoint
CREATE INDEX `groups_children_created` ON `groups` (`parent_uid`,`create_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `groups_children_updated` ON `groups` (`parent_uid`,`update_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `groups_name` ON `groups` (`name`,`parent_uid`);--> statement-breakpoint
CREATE TABLE `identities` (
	`uid` text PRIMARY KEY NOT NULL,
	`group_uid` text,
	`name` text NOT NULL,
	`description` text NOT NULL,
	`issuer` text NOT NULL,
	`subject` text NOT NULL,
	`email` text NOT NULL,
	`email_unverified` text NOT NULL,
	`company` text NOT NULL,
	`relation` integer NOT NULL,
	`relationship` text NOT NULL,
	`metadata` text NOT NULL,
	`not_before` integer NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	`last_seen_time_ms` integer NOT NULL,
	FOREIGN KEY (`group_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `identities_group` ON `identities` (`group_uid`,`uid`);--> statement-breakpoint
CREATE TABLE `identity_providers` (
	`uid` text PRIMARY KEY NOT NULL,
	`group_uid` text NOT NULL,
	`name` text NOT NULL,
	`description` text NOT NULL,
	`default_role` text NOT NULL,
	`oidc` text NOT NULL,
	`sealed_secret` text NOT NULL,
	`scim` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`group_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`default_role`) REFERENCES `roles`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `identity_providers_group` ON `identity_providers` (`group_uid`,`uid`);--> statement-breakpoint
CREATE INDEX `identity_providers_role` ON `identity_providers` (`default_role`);--> statement-breakpoint
CREATE TABLE `keys` (
	`kid` text PRIMARY KEY NOT NULL,
	`purpose` text NOT NULL,
	`state` text NOT NULL,
	`public_jwk` text NOT NULL,
	`sealed` text NOT NULL,
	`create_time_ms` integer NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `role_bindings` (
	`uid` text PRIMARY KEY NOT NULL,
	`group_uid` text NOT NULL,
	`identity_uid` text NOT NULL,
	`role_uid` text NOT NULL,
	`automatic` integer NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`group_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`role_uid`) REFERENCES `roles`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `role_bindings_identity` ON `role_bindings` (`identity_uid`,`group_uid`,`role_uid`);--> statement-breakpoint
CREATE INDEX `role_bindings_group` ON `role_bindings` (`group_uid`,`automatic`);--> statement-breakpoint
CREATE INDEX `role_bindings_role` ON `role_bindings` (`role_uid`,`uid`);--> statement-breakpoint
CREATE UNIQUE INDEX `role_bindings_same` ON `role_bindings` (`group_uid`,`identity_uid`,`role_uid`);--> statement-breakpoint
CREATE TABLE `roles` (
	`uid` text PRIMARY KEY NOT NULL,
	`group_uid` text,
	`name` text NOT NULL,
	`description` text NOT NULL,
	`capabilities` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`group_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `roles_group` ON `roles` (`group_uid`,`uid`);--> statement-breakpoint
CREATE INDEX `roles_name` ON `roles` (`name`,`uid`);--> statement-breakpoint
CREATE TABLE `settings` (
	`name` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `terms_acceptances` (
	`group_uid` text NOT NULL,
	`doc_id` text NOT NULL,
	`accepted_by` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	PRIMARY KEY(`group_uid`, `doc_id`),
	FOREIGN KEY (`group_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `text_order` (
	`list` integer NOT NULL,
	`scope` text NOT NULL,
	`key` text NOT NULL,
	`uid` text NOT NULL,
	PRIMARY KEY(`list`, `scope`, `key`, `uid`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `time_order` (
	`list` integer NOT NULL,
	`scope` text NOT NULL,
	`key` integer NOT NULL,
	`uid` text NOT NULL,
	PRIMARY KEY(`list`, `scope`, `key`, `uid`)
) STRICT, WITHOUT ROWID;
