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
CREATE TABLE `tickets` (
	`hash` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`data` text NOT NULL,
	`expire_time_ms` integer NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `tickets_expiry` ON `tickets` (`expire_time_ms`);--> statement-breakpoint
ALTER TABLE `group_invites` ADD `created_by` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `identities` ADD `provider_uid` text;--> statement-breakpoint
CREATE INDEX `identities_provider` ON `identities` (`provider_uid`);--> statement-breakpoint
ALTER TABLE `keys` ADD `next_time_ms` integer;--> statement-breakpoint
ALTER TABLE `role_bindings` ADD `accepted` integer DEFAULT false NOT NULL;