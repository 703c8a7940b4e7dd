ALTER TABLE `groups` ADD `issuer_guard` text DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE `identities` ADD `conditions` text DEFAULT '[]' NOT NULL;