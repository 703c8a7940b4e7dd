ALTER TABLE `role_bindings` ADD `pending` integer DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX `role_bindings_pending` ON `role_bindings` (`identity_uid`,`pending`,`uid`);--> statement-breakpoint
CREATE INDEX `group_invites_expiry` ON `group_invites` (`group_uid`,`expire_time_ms`);