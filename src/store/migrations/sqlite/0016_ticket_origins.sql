ALTER TABLE `tickets` ADD `origin` text;--> statement-breakpoint
ALTER TABLE `tickets` ADD `is_kept` integer;--> statement-breakpoint
CREATE INDEX `tickets_origin` ON `tickets` (`origin`,`kind`,`is_kept`,`expire_time_ms`);