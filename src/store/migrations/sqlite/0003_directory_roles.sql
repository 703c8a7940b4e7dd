ALTER TABLE `identity_providers` ADD `lacks_default_role` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `role_bindings` ADD `managed_by_uid` text;