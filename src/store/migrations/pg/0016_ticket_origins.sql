ALTER TABLE "tickets" ADD COLUMN "origin" text COLLATE "C";--> statement-breakpoint
ALTER TABLE "tickets" ADD COLUMN "is_kept" boolean;--> statement-breakpoint
CREATE INDEX "tickets_origin" ON "tickets" USING btree ("origin","kind","is_kept","expire_time_ms");