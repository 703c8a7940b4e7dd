CREATE INDEX `groups_root_name` ON `groups` (`name`,`verified`) WHERE parent_uid IS NULL;--> statement-breakpoint
CREATE INDEX `groups_creator` ON `groups` (`created_by`,`uid`) WHERE created_by <> '';