CREATE TABLE `event_positions` (
	`subscription_uid` text PRIMARY KEY NOT NULL,
	`root_uid` text NOT NULL,
	`seq` integer NOT NULL,
	`state` text NOT NULL,
	`suspend_reason` text NOT NULL,
	`failing_since_ms` integer,
	`revision` integer NOT NULL,
	FOREIGN KEY (`subscription_uid`) REFERENCES `subscriptions`(`uid`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `event_positions_root` ON `event_positions` (`root_uid`,`seq`);--> statement-breakpoint
CREATE TABLE `event_deliveries` (
	`subscription_uid` text NOT NULL,
	`seq` integer NOT NULL,
	`subject_uid` text NOT NULL,
	`since_ms` integer NOT NULL,
	`next_time_ms` integer,
	`dead_time_ms` integer,
	`attempts` integer NOT NULL,
	`last_time_ms` integer,
	`last_status` integer NOT NULL,
	`last_error` text NOT NULL,
	PRIMARY KEY(`subscription_uid`, `seq`),
	FOREIGN KEY (`subscription_uid`) REFERENCES `event_positions`(`subscription_uid`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `event_deliveries_state` ON `event_deliveries` (`subscription_uid`,`dead_time_ms`,`seq`);--> statement-breakpoint
CREATE INDEX `event_deliveries_dead` ON `event_deliveries` (`dead_time_ms`);