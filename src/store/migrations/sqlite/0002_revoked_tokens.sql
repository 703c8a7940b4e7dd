CREATE TABLE `revoked_tokens` (
	`identity_uid` text NOT NULL,
	`token_id` text NOT NULL,
	`expire_time_ms` integer NOT NULL,
	PRIMARY KEY(`identity_uid`, `token_id`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `revoked_tokens_expiry` ON `revoked_tokens` (`expire_time_ms`);--> statement-breakpoint
ALTER TABLE `identities` ADD `revoke_time_ms` integer DEFAULT 0 NOT NULL;