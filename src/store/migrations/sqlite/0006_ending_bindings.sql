ALTER TABLE `role_bindings` ADD `end_time_ms` integer;--> statement-breakpoint
CREATE INDEX `role_bindings_end` ON `role_bindings` (`end_time_ms`) WHERE end_time_ms IS NOT NULL;