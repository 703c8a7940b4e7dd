ALTER TABLE "groups" ADD COLUMN "issuer_guard" jsonb DEFAULT '{}'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "identities" ADD COLUMN "conditions" jsonb DEFAULT '[]'::jsonb NOT NULL;--> statement-breakpoint
-- Without statistics of columns a plan depends on the statement alone: see docs/adr/0018-plain-indexes.md.
ALTER TABLE "groups" ALTER COLUMN "issuer_guard" SET STATISTICS 0;--> statement-breakpoint
ALTER TABLE "identities" ALTER COLUMN "conditions" SET STATISTICS 0;