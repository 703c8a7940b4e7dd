CREATE TABLE "overlays" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"group_uid" text COLLATE "C" NOT NULL,
	"root_uid" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"config" jsonb NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "overlay_bindings" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"repo_uid" text COLLATE "C" NOT NULL,
	"root_uid" text COLLATE "C" NOT NULL,
	"overlay_uid" text COLLATE "C" NOT NULL,
	"selector_kind" integer NOT NULL,
	"tags" jsonb NOT NULL,
	"variant_type" integer NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "overlay_selections" (
	"repo_uid" text COLLATE "C" NOT NULL,
	"selection" text COLLATE "C" NOT NULL,
	"binding_uid" text COLLATE "C" NOT NULL,
	CONSTRAINT "overlay_selections_repo_uid_selection_pk" PRIMARY KEY("repo_uid","selection")
);
--> statement-breakpoint
ALTER TABLE "overlays" ADD CONSTRAINT "overlays_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "overlay_bindings" ADD CONSTRAINT "overlay_bindings_repo_uid_repos_uid_fk" FOREIGN KEY ("repo_uid") REFERENCES "public"."repos"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "overlay_bindings" ADD CONSTRAINT "overlay_bindings_overlay_uid_overlays_uid_fk" FOREIGN KEY ("overlay_uid") REFERENCES "public"."overlays"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "overlay_selections" ADD CONSTRAINT "overlay_selections_repo_uid_repos_uid_fk" FOREIGN KEY ("repo_uid") REFERENCES "public"."repos"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "overlay_selections" ADD CONSTRAINT "overlay_selections_binding_uid_overlay_bindings_uid_fk" FOREIGN KEY ("binding_uid") REFERENCES "public"."overlay_bindings"("uid") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "overlays_by_name" ON "overlays" USING btree ("root_uid","name","uid");--> statement-breakpoint
CREATE INDEX "overlays_by_created_at" ON "overlays" USING btree ("root_uid","create_time_ms","uid");--> statement-breakpoint
CREATE INDEX "overlays_by_updated_at" ON "overlays" USING btree ("root_uid","update_time_ms","uid");--> statement-breakpoint
CREATE INDEX "overlays_children" ON "overlays" USING btree ("group_uid","uid");--> statement-breakpoint
CREATE UNIQUE INDEX "overlays_name" ON "overlays" USING btree ("group_uid","name");--> statement-breakpoint
CREATE INDEX "overlay_bindings_by_created_at" ON "overlay_bindings" USING btree ("root_uid","create_time_ms","uid");--> statement-breakpoint
CREATE INDEX "overlay_bindings_by_updated_at" ON "overlay_bindings" USING btree ("root_uid","update_time_ms","uid");--> statement-breakpoint
CREATE INDEX "overlay_bindings_children" ON "overlay_bindings" USING btree ("repo_uid","uid");--> statement-breakpoint
CREATE INDEX "overlay_bindings_overlay" ON "overlay_bindings" USING btree ("overlay_uid","uid");--> statement-breakpoint
CREATE INDEX "overlay_selections_binding" ON "overlay_selections" USING btree ("binding_uid");--> statement-breakpoint
-- Without statistics of columns a plan depends on the statement alone: see docs/adr/0018-plain-indexes.md.
DO $$
DECLARE
	found record;
BEGIN
	FOR found IN
		SELECT attrelid::regclass AS relation, attname AS name FROM pg_attribute
		WHERE attrelid IN ('overlays'::regclass, 'overlay_bindings'::regclass, 'overlay_selections'::regclass)
			AND attnum > 0 AND NOT attisdropped
	LOOP
		EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', found.relation, found.name);
	END LOOP;
END $$;
