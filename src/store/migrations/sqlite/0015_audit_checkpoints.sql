CREATE TABLE `audit_checkpoints` (
	`root_uid` text PRIMARY KEY NOT NULL,
	`seq` integer NOT NULL,
	`hash` text NOT NULL,
	`entry_time_ms` integer NOT NULL,
	`time_ms` integer NOT NULL,
	`signature` text NOT NULL
);
