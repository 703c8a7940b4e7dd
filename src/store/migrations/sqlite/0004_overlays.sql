CREATE TABLE `overlays` (
	`uid` text PRIMARY KEY NOT NULL,
	`group_uid` text NOT NULL,
	`root_uid` text NOT NULL,
	`name` text NOT NULL,
	`config` text NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`group_uid`) REFERENCES `groups`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `overlays_by_name` ON `overlays` (`root_uid`,`name`,`uid`);--> statement-breakpoint
CREATE INDEX `overlays_by_created_at` ON `overlays` (`root_uid`,`create_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `overlays_by_updated_at` ON `overlays` (`root_uid`,`update_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `overlays_children` ON `overlays` (`group_uid`,`uid`);--> statement-breakpoint
CREATE UNIQUE INDEX `overlays_name` ON `overlays` (`group_uid`,`name`);--> statement-breakpoint
CREATE TABLE `overlay_bindings` (
	`uid` text PRIMARY KEY NOT NULL,
	`repo_uid` text NOT NULL,
	`root_uid` text NOT NULL,
	`overlay_uid` text NOT NULL,
	`selector_kind` integer NOT NULL,
	`tags` text NOT NULL,
	`variant_type` integer NOT NULL,
	`create_time_ms` integer NOT NULL,
	`update_time_ms` integer NOT NULL,
	FOREIGN KEY (`repo_uid`) REFERENCES `repos`(`uid`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`overlay_uid`) REFERENCES `overlays`(`uid`) ON UPDATE no action ON DELETE no action
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `overlay_bindings_by_created_at` ON `overlay_bindings` (`root_uid`,`create_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `overlay_bindings_by_updated_at` ON `overlay_bindings` (`root_uid`,`update_time_ms`,`uid`);--> statement-breakpoint
CREATE INDEX `overlay_bindings_children` ON `overlay_bindings` (`repo_uid`,`uid`);--> statement-breakpoint
CREATE INDEX `overlay_bindings_overlay` ON `overlay_bindings` (`overlay_uid`,`uid`);--> statement-breakpoint
CREATE TABLE `overlay_selections` (
	`repo_uid` text NOT NULL,
	`selection` text NOT NULL,
	`binding_uid` text NOT NULL,
	PRIMARY KEY(`repo_uid`, `selection`),
	FOREIGN KEY (`repo_uid`) REFERENCES `repos`(`uid`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`binding_uid`) REFERENCES `overlay_bindings`(`uid`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `overlay_selections_binding` ON `overlay_selections` (`binding_uid`);