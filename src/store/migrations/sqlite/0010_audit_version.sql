ALTER TABLE `audit` ADD `version` integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE `audit` ADD `trace_id` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `audit` ADD `actor_name` text DEFAULT '' NOT NULL;