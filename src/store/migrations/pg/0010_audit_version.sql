ALTER TABLE "audit" ADD COLUMN "version" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE "audit" ADD COLUMN "trace_id" text COLLATE "C" DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "audit" ADD COLUMN "actor_name" text COLLATE "C" DEFAULT '' NOT NULL;