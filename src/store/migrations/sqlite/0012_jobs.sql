CREATE TABLE `jobs` (
	`name` text PRIMARY KEY NOT NULL,
	`holder` text NOT NULL,
	`fence` integer NOT NULL,
	`expire_time_ms` integer NOT NULL,
	`start_time_ms` integer,
	`duration_ms` integer,
	`changes` integer,
	`next_time_ms` integer,
	`failures` integer NOT NULL,
	`error` text,
	`error_time_ms` integer
) STRICT, WITHOUT ROWID;
