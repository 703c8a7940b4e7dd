DROP INDEX `groups_name`;--> statement-breakpoint
CREATE INDEX `groups_name` ON `groups` (`name`,`parent_uid`,`verified`);--> statement-breakpoint
ALTER TABLE `role_bindings` ADD `pending` integer DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX `role_bindings_pending` ON `role_bindings` (`identity_uid`,`pending`,`uid`);--> statement-breakpoint
CREATE INDEX `group_invites_expiry` ON `group_invites` (`group_uid`,`expire_time_ms`);