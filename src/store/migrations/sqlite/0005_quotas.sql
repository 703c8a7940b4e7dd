ALTER TABLE `groups` ADD `created_by` text DEFAULT '' NOT NULL;--> statement-breakpoint
UPDATE `groups` SET `created_by` = coalesce((SELECT b.`identity_uid` FROM `role_bindings` b WHERE b.`group_uid` = `groups`.`uid` AND b.`automatic` LIMIT 1), '') WHERE `parent_uid` IS NULL AND NOT EXISTS (SELECT 1 FROM `audit` a WHERE a.`root_uid` = `groups`.`uid` AND a.`type` = 'arbor.bootstrap.v1');
