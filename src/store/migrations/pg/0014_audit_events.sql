CREATE INDEX "audit_time" ON "audit" USING btree ("root_uid","time_ms","id");--> statement-breakpoint
CREATE INDEX "audit_subject" ON "audit" USING btree ("subject_uid","time_ms","id");--> statement-breakpoint
CREATE INDEX "audit_actor" ON "audit" USING btree ("root_uid","actor_uid","time_ms","id");--> statement-breakpoint
CREATE INDEX "audit_type" ON "audit" USING btree ("root_uid","type","time_ms","id");