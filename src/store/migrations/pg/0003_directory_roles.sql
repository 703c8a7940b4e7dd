ALTER TABLE "identity_providers" ADD COLUMN "lacks_default_role" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "role_bindings" ADD COLUMN "managed_by_uid" text COLLATE "C";--> statement-breakpoint
-- Without statistics of columns a plan depends on the statement alone: see docs/adr/0018-plain-indexes.md.
ALTER TABLE "identity_providers" ALTER COLUMN "lacks_default_role" SET STATISTICS 0;--> statement-breakpoint
ALTER TABLE "role_bindings" ALTER COLUMN "managed_by_uid" SET STATISTICS 0;
