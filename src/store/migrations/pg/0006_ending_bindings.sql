ALTER TABLE "role_bindings" ADD COLUMN "end_time_ms" bigint;--> statement-breakpoint
CREATE INDEX "role_bindings_end" ON "role_bindings" USING btree ("end_time_ms") WHERE end_time_ms IS NOT NULL;--> statement-breakpoint
-- Without statistics of columns a plan depends on the statement alone: see docs/adr/0018-plain-indexes.md.
ALTER TABLE "role_bindings" ALTER COLUMN "end_time_ms" SET STATISTICS 0;
