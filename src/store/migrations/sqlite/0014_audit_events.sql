CREATE INDEX `audit_time` ON `audit` (`root_uid`,`time_ms`,`id`);--> statement-breakpoint
CREATE INDEX `audit_subject` ON `audit` (`subject_uid`,`time_ms`,`id`);--> statement-breakpoint
CREATE INDEX `audit_actor` ON `audit` (`root_uid`,`actor_uid`,`time_ms`,`id`);--> statement-breakpoint
CREATE INDEX `audit_type` ON `audit` (`root_uid`,`type`,`time_ms`,`id`);