ALTER TABLE "role_bindings" ADD COLUMN "pending" boolean DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX "group_invites_expiry" ON "group_invites" USING btree ("group_uid","expire_time_ms");--> statement-breakpoint
CREATE INDEX "role_bindings_pending" ON "role_bindings" USING btree ("identity_uid","pending","uid");