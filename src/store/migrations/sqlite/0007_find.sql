CREATE TABLE `name_words` (
	`root_uid` text NOT NULL,
	`kind` integer NOT NULL,
	`word` text NOT NULL,
	`uid` text NOT NULL,
	PRIMARY KEY(`root_uid`, `kind`, `word`, `uid`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `identities_email` ON `identities` (`email`,`uid`) WHERE email <> '';