CREATE TABLE `data_migrations` (
	`name` text PRIMARY KEY NOT NULL,
	`phase` text NOT NULL,
	`position` text NOT NULL,
	`done` integer NOT NULL
) STRICT, WITHOUT ROWID;
