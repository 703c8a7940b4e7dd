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
	`root_uid` text NOT NULL,
	`name` text NOT NULL,
	`description` text NOT NULL,
	`accounts` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `account_associations_by_name` ON `account_associations` (`root_uid`,`name`,`uid`);--> statement-breakpoint
CREATE INDEX `account_associations_by_created_at` ON `account_associations` (`root_uid`,`create_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `account_associations_by_updated_at` ON `account_associations` (`root_uid`,`update_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `account_associations_children` ON `account_associations` (`parent_uid`,`uid`);--> statement-breakpoint
CREATE TABLE `advisories` (
	`number` integer PRIMARY KEY NOT NULL,
	`uid` text NOT NULL,
	`group_uid` text NOT NULL,
	`root_uid` text NOT NULL,
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
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `advisories_uid_unique` ON `advisories` (`uid`);--> statement-breakpoint
CREATE INDEX `advisories_by_created_at` ON `advisories` (`root_uid`,`create_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `advisories_by_updated_at` ON `advisories` (`root_uid`,`update_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `advisories_children` ON `advisories` (`group_uid`,`uid`);--> statement-breakpoint
CREATE INDEX `advisories_by_number` ON `advisories` (`root_uid`,`number`);--> statement-breakpoint
CREATE UNIQUE INDEX `advisories_id` ON `advisories` (`advisory_id`,`group_uid`);--> statement-breakpoint
CREATE INDEX `advisories_legacy` ON `advisories` (`legacy_advisory_id`);--> statement-breakpoint
CREATE INDEX `advisories_source` ON `advisories` (`group_uid`,`source_key`);--> statement-breakpoint
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
CREATE TABLE `advisory_values` (
	`root_uid` text NOT NULL,
	`filter` integer NOT NULL,
	`value` text NOT NULL,
	`number` integer NOT NULL,
	PRIMARY KEY(`root_uid`, `filter`, `value`, `number`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
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
	`remote_address` text NOT NULL,
	`version` integer DEFAULT 3 NOT NULL,
	`trace_id` text DEFAULT '' NOT NULL,
	`actor_name` text DEFAULT '' NOT NULL,
	`body_hash` text DEFAULT '' NOT NULL,
	`body` text DEFAULT '' NOT NULL
) STRICT;
--> statement-breakpoint
CREATE INDEX `audit_root` ON `audit` (`root_uid`,`id`);--> statement-breakpoint
CREATE INDEX `audit_time` ON `audit` (`root_uid`,`time_ms`,`id`);--> statement-breakpoint
CREATE INDEX `audit_subject` ON `audit` (`subject_uid`,`time_ms`,`id`);--> statement-breakpoint
CREATE INDEX `audit_actor` ON `audit` (`root_uid`,`actor_uid`,`time_ms`,`id`);--> statement-breakpoint
CREATE INDEX `audit_type` ON `audit` (`root_uid`,`type`,`time_ms`,`id`);--> statement-breakpoint
CREATE TABLE `audit_chain` (
	`root_uid` text NOT NULL,
	`seq` integer NOT NULL,
	`audit_id` integer NOT NULL,
	`hash` text NOT NULL,
	PRIMARY KEY(`root_uid`, `seq`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE UNIQUE INDEX `audit_chain_audit` ON `audit_chain` (`audit_id`);--> statement-breakpoint
CREATE TABLE `audit_checkpoints` (
	`root_uid` text PRIMARY KEY NOT NULL,
	`seq` integer NOT NULL,
	`hash` text NOT NULL,
	`entry_time_ms` integer NOT NULL,
	`time_ms` integer NOT NULL,
	`signature` text NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
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
	`settled_id` integer NOT NULL,
	`passes` integer NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `counters` (
	`scope` text NOT NULL,
	`counter` integer NOT NULL,
	`slot` integer NOT NULL,
	`n` integer NOT NULL,
	PRIMARY KEY(`scope`, `counter`, `slot`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `data_migrations` (
	`name` text PRIMARY KEY NOT NULL,
	`phase` text NOT NULL,
	`position` text NOT NULL,
	`done` integer NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `deployments` (
	`repo_uid` text PRIMARY KEY NOT NULL,
	`charts` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`repo_uid`) REFERENCES `repos`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `group_invites` (
	`uid` text PRIMARY KEY NOT NULL,
	`group_uid` text NOT NULL,
	`root_uid` text NOT NULL,
	`role_uid` text NOT NULL,
	`email` text NOT NULL,
	`single_use` integer NOT NULL,
	`key_id` text NOT NULL,
	`code_hash` text NOT NULL,
	`created_by` text DEFAULT '' NOT NULL,
	`expire_time_ms` integer NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer DEFAULT 0 NOT NULL,
	FOREIGN KEY (`group_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`role_uid`) REFERENCES `roles`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `group_invites_by_created_at` ON `group_invites` (`root_uid`,`create_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `group_invites_children` ON `group_invites` (`group_uid`,`uid`);--> statement-breakpoint
CREATE INDEX `group_invites_expiry` ON `group_invites` (`group_uid`,`expire_time_ms`);--> statement-breakpoint
CREATE INDEX `group_invites_role` ON `group_invites` (`role_uid`);--> statement-breakpoint
CREATE UNIQUE INDEX `group_invites_key` ON `group_invites` (`key_id`);--> statement-breakpoint
CREATE TABLE `external_group_role_mappings` (
	`uid` text PRIMARY KEY NOT NULL,
	`provider_uid` text NOT NULL,
	`root_uid` text NOT NULL,
	`external_group_id` text NOT NULL,
	`role_uid` text NOT NULL,
	`scope` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	FOREIGN KEY (`provider_uid`) REFERENCES `identity_providers`(`uid`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`role_uid`) REFERENCES `roles`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `external_group_role_mappings_by_created_at` ON `external_group_role_mappings` (`root_uid`,`create_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `external_group_role_mappings_children` ON `external_group_role_mappings` (`provider_uid`,`uid`);--> statement-breakpoint
CREATE UNIQUE INDEX `external_group_role_mappings_same` ON `external_group_role_mappings` (`provider_uid`,`external_group_id`,`role_uid`,`scope`);--> statement-breakpoint
CREATE INDEX `external_group_role_mappings_role` ON `external_group_role_mappings` (`role_uid`);--> statement-breakpoint
CREATE TABLE `groups` (
	`uid` text PRIMARY KEY NOT NULL,
	`parent_uid` text,
	`root_uid` text NOT NULL,
	`name` text NOT NULL,
	`description` text NOT NULL,
	`verified` integer NOT NULL,
	`kind` integer NOT NULL,
	`resource_limits` text NOT NULL,
	`created_by` text DEFAULT '' NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `groups_by_name` ON `groups` (`root_uid`,`name`,`uid`);--> statement-breakpoint
CREATE INDEX `groups_by_created_at` ON `groups` (`root_uid`,`create_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `groups_by_updated_at` ON `groups` (`root_uid`,`update_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `groups_children` ON `groups` (`parent_uid`,`uid`);--> statement-breakpoint
CREATE INDEX `groups_root_name` ON `groups` (`name`,`verified`) WHERE parent_uid IS NULL;--> statement-breakpoint
CREATE INDEX `groups_creator` ON `groups` (`created_by`,`uid`) WHERE created_by <> '';--> statement-breakpoint
CREATE TABLE `identities` (
	`uid` text PRIMARY KEY NOT NULL,
	`group_uid` text,
	`root_uid` text NOT NULL,
	`name` text NOT NULL,
	`description` text NOT NULL,
	`issuer` text NOT NULL,
	`subject` text NOT NULL,
	`email` text NOT NULL,
	`email_unverified` text NOT NULL,
	`company` text NOT NULL,
	`provider_uid` text,
	`relation` integer NOT NULL,
	`relationship` text NOT NULL,
	`metadata` text NOT NULL,
	`not_before` integer NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	`last_seen_time_ms` integer NOT NULL,
	`delete_time_ms` integer,
	FOREIGN KEY (`group_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `identities_by_name` ON `identities` (`root_uid`,`name`,`uid`);--> statement-breakpoint
CREATE INDEX `identities_by_created_at` ON `identities` (`root_uid`,`create_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `identities_by_updated_at` ON `identities` (`root_uid`,`update_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `identities_children` ON `identities` (`group_uid`,`uid`);--> statement-breakpoint
CREATE INDEX `identities_provider` ON `identities` (`provider_uid`);--> statement-breakpoint
CREATE INDEX `identities_deleted` ON `identities` (`delete_time_ms`) WHERE delete_time_ms IS NOT NULL;--> statement-breakpoint
CREATE TABLE `identity_providers` (
	`uid` text PRIMARY KEY NOT NULL,
	`group_uid` text NOT NULL,
	`root_uid` text NOT NULL,
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
CREATE INDEX `identity_providers_by_name` ON `identity_providers` (`root_uid`,`name`,`uid`);--> statement-breakpoint
CREATE INDEX `identity_providers_by_created_at` ON `identity_providers` (`root_uid`,`create_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `identity_providers_by_updated_at` ON `identity_providers` (`root_uid`,`update_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `identity_providers_children` ON `identity_providers` (`group_uid`,`uid`);--> statement-breakpoint
CREATE INDEX `identity_providers_role` ON `identity_providers` (`default_role`);--> statement-breakpoint
CREATE TABLE `jobs` (
	`name` text PRIMARY KEY NOT NULL,
	`holder` text NOT NULL,
	`fence` integer NOT NULL,
	`expire_time_ms` integer NOT NULL,
	`start_time_ms` integer,
	`duration_ms` integer,
	`changes` integer,
	`next_time_ms` integer,
	`failures` integer NOT NULL,
	`error` text,
	`error_time_ms` integer
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `keys` (
	`kid` text PRIMARY KEY NOT NULL,
	`purpose` text NOT NULL,
	`state` text NOT NULL,
	`public_jwk` text NOT NULL,
	`sealed` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	`next_time_ms` integer
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `manifests` (
	`repo_uid` text NOT NULL,
	`digest` text NOT NULL,
	`images` text NOT NULL,
	PRIMARY KEY(`repo_uid`, `digest`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `refresh_tokens` (
	`hash` text PRIMARY KEY NOT NULL,
	`family` text NOT NULL,
	`identity_uid` text NOT NULL,
	`grant` text NOT NULL,
	`used` integer NOT NULL,
	`create_time_ms` integer NOT NULL,
	`expire_time_ms` integer NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `refresh_tokens_family` ON `refresh_tokens` (`family`);--> statement-breakpoint
CREATE INDEX `refresh_tokens_identity` ON `refresh_tokens` (`identity_uid`);--> statement-breakpoint
CREATE INDEX `refresh_tokens_expiry` ON `refresh_tokens` (`expire_time_ms`);--> statement-breakpoint
CREATE TABLE `registry_events` (
	`id` text PRIMARY KEY NOT NULL,
	`time_ms` integer NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `registry_events_time` ON `registry_events` (`time_ms`);--> statement-breakpoint
CREATE TABLE `registry_names` (
	`name` text PRIMARY KEY NOT NULL,
	`group_uid` text NOT NULL,
	`uid_path` text NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE UNIQUE INDEX `registry_names_group` ON `registry_names` (`group_uid`);--> statement-breakpoint
CREATE TABLE `registry_settings` (
	`group_uid` text PRIMARY KEY NOT NULL,
	`unique_tags` integer NOT NULL,
	`eol_grace_period` integer NOT NULL,
	FOREIGN KEY (`group_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `repos` (
	`uid` text PRIMARY KEY NOT NULL,
	`group_uid` text NOT NULL,
	`root_uid` text NOT NULL,
	`name` text NOT NULL,
	`description` text NOT NULL,
	`config` text NOT NULL,
	`readme` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`group_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `repos_by_name` ON `repos` (`root_uid`,`name`,`uid`);--> statement-breakpoint
CREATE INDEX `repos_by_created_at` ON `repos` (`root_uid`,`create_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `repos_by_updated_at` ON `repos` (`root_uid`,`update_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `repos_children` ON `repos` (`group_uid`,`uid`);--> statement-breakpoint
CREATE UNIQUE INDEX `repos_name` ON `repos` (`group_uid`,`name`);--> statement-breakpoint
CREATE TABLE `role_bindings` (
	`uid` text PRIMARY KEY NOT NULL,
	`group_uid` text NOT NULL,
	`root_uid` text NOT NULL,
	`identity_uid` text NOT NULL,
	`role_uid` text NOT NULL,
	`automatic` integer NOT NULL,
	`accepted` integer DEFAULT false NOT NULL,
	`pending` integer DEFAULT false NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`group_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`role_uid`) REFERENCES `roles`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `role_bindings_by_created_at` ON `role_bindings` (`root_uid`,`create_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `role_bindings_children` ON `role_bindings` (`group_uid`,`uid`);--> statement-breakpoint
CREATE INDEX `role_bindings_identity` ON `role_bindings` (`identity_uid`,`group_uid`,`role_uid`);--> statement-breakpoint
CREATE INDEX `role_bindings_group` ON `role_bindings` (`group_uid`,`automatic`);--> statement-breakpoint
CREATE INDEX `role_bindings_pending` ON `role_bindings` (`identity_uid`,`pending`,`uid`);--> statement-breakpoint
CREATE INDEX `role_bindings_role` ON `role_bindings` (`role_uid`,`uid`);--> statement-breakpoint
CREATE UNIQUE INDEX `role_bindings_same` ON `role_bindings` (`group_uid`,`identity_uid`,`role_uid`);--> statement-breakpoint
CREATE TABLE `roles` (
	`uid` text PRIMARY KEY NOT NULL,
	`group_uid` text,
	`root_uid` text NOT NULL,
	`name` text NOT NULL,
	`description` text NOT NULL,
	`capabilities` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`group_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `roles_by_name` ON `roles` (`root_uid`,`name`,`uid`);--> statement-breakpoint
CREATE INDEX `roles_by_created_at` ON `roles` (`root_uid`,`create_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `roles_by_updated_at` ON `roles` (`root_uid`,`update_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `roles_children` ON `roles` (`group_uid`,`uid`);--> statement-breakpoint
CREATE INDEX `roles_name` ON `roles` (`name`,`uid`);--> statement-breakpoint
CREATE TABLE `settings` (
	`name` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `subscriptions` (
	`uid` text PRIMARY KEY NOT NULL,
	`group_uid` text NOT NULL,
	`root_uid` text NOT NULL,
	`sink` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`group_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `subscriptions_by_created_at` ON `subscriptions` (`root_uid`,`create_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `subscriptions_children` ON `subscriptions` (`group_uid`,`uid`);--> statement-breakpoint
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
	`root_uid` text NOT NULL,
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
CREATE INDEX `tags_by_uid` ON `tags` (`root_uid`,`family`,`uid`);--> statement-breakpoint
CREATE INDEX `tags_by_name` ON `tags` (`root_uid`,`family`,`name`,`uid`);--> statement-breakpoint
CREATE INDEX `tags_by_updated_at` ON `tags` (`root_uid`,`family`,`update_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `tags_children` ON `tags` (`repo_uid`,`family`,`uid`);--> statement-breakpoint
CREATE UNIQUE INDEX `tags_name` ON `tags` (`repo_uid`,`name`);--> statement-breakpoint
CREATE INDEX `tags_digest` ON `tags` (`digest`,`uid`);--> statement-breakpoint
CREATE TABLE `terms_acceptances` (
	`group_uid` text NOT NULL,
	`doc_id` text NOT NULL,
	`accepted_by` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	PRIMARY KEY(`group_uid`, `doc_id`),
	FOREIGN KEY (`group_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `tickets` (
	`hash` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`data` text NOT NULL,
	`expire_time_ms` integer NOT NULL,
	`origin` text,
	`is_kept` integer
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `tickets_expiry` ON `tickets` (`expire_time_ms`);--> statement-breakpoint
CREATE INDEX `tickets_origin` ON `tickets` (`origin`,`kind`,`is_kept`,`expire_time_ms`);
--> statement-breakpoint
-- The rest is not part of the schema that the generator knows.
CREATE VIRTUAL TABLE advisory_texts USING fts5(searched, content='advisories', content_rowid='number', columnsize=0, tokenize='trigram case_sensitive 1');
--> statement-breakpoint
CREATE TRIGGER advisories_added AFTER INSERT ON advisories BEGIN
	INSERT INTO advisory_texts (rowid, searched) VALUES (new.number, new.searched);
END;
--> statement-breakpoint
CREATE TRIGGER advisories_changed AFTER UPDATE OF searched ON advisories WHEN old.searched <> new.searched BEGIN
	INSERT INTO advisory_texts (advisory_texts, rowid, searched) VALUES ('delete', old.number, old.searched);
	INSERT INTO advisory_texts (rowid, searched) VALUES (new.number, new.searched);
END;
--> statement-breakpoint
CREATE TRIGGER advisories_removed AFTER DELETE ON advisories BEGIN
	INSERT INTO advisory_texts (advisory_texts, rowid, searched) VALUES ('delete', old.number, old.searched);
END;
