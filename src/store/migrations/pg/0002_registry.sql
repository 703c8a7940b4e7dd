CREATE TABLE "advisories" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"group_uid" text COLLATE "C" NOT NULL,
	"advisory_id" text COLLATE "C" NOT NULL,
	"legacy_advisory_id" text COLLATE "C" NOT NULL,
	"author" text COLLATE "C" NOT NULL,
	"artifact_name" text COLLATE "C" NOT NULL,
	"artifact_type" text COLLATE "C" NOT NULL,
	"artifact_architecture" text COLLATE "C" NOT NULL,
	"component_name" text COLLATE "C" NOT NULL,
	"component_location" text COLLATE "C" NOT NULL,
	"component_type" text COLLATE "C" NOT NULL,
	"aliases" jsonb NOT NULL,
	"severities" jsonb NOT NULL,
	"searched" text COLLATE "C" NOT NULL,
	"latest_event_type" integer NOT NULL,
	"source_key" text COLLATE "C" NOT NULL,
	"source_hash" text COLLATE "C" NOT NULL,
	"delete_time_ms" bigint,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "advisory_aliases" (
	"alias" text COLLATE "C" NOT NULL,
	"advisory_uid" text COLLATE "C" NOT NULL,
	CONSTRAINT "advisory_aliases_alias_advisory_uid_pk" PRIMARY KEY("alias","advisory_uid")
);
--> statement-breakpoint
CREATE TABLE "advisory_events" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"advisory_uid" text COLLATE "C" NOT NULL,
	"type" integer NOT NULL,
	"author" text COLLATE "C" NOT NULL,
	"reviewer" text COLLATE "C" NOT NULL,
	"review_state" integer NOT NULL,
	"data" jsonb NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "manifests" (
	"repo_uid" text COLLATE "C" NOT NULL,
	"digest" text COLLATE "C" NOT NULL,
	"images" jsonb NOT NULL,
	CONSTRAINT "manifests_repo_uid_digest_pk" PRIMARY KEY("repo_uid","digest")
);
--> statement-breakpoint
CREATE TABLE "registry_events" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "repos" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"group_uid" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"description" text COLLATE "C" NOT NULL,
	"config" jsonb NOT NULL,
	"readme" text COLLATE "C" NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tag_history" (
	"tag_uid" text COLLATE "C" NOT NULL,
	"time_ms" bigint NOT NULL,
	"digest" text COLLATE "C" NOT NULL,
	CONSTRAINT "tag_history_tag_uid_time_ms_digest_pk" PRIMARY KEY("tag_uid","time_ms","digest")
);
--> statement-breakpoint
CREATE TABLE "tag_marks" (
	"repo_uid" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"time_ms" bigint NOT NULL,
	CONSTRAINT "tag_marks_repo_uid_name_pk" PRIMARY KEY("repo_uid","name")
);
--> statement-breakpoint
CREATE TABLE "tags" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"repo_uid" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"digest" text COLLATE "C" NOT NULL,
	"family" integer NOT NULL,
	"deprecated" boolean NOT NULL,
	"bundles" jsonb NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "advisories" ADD CONSTRAINT "advisories_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "advisory_events" ADD CONSTRAINT "advisory_events_advisory_uid_advisories_uid_fk" FOREIGN KEY ("advisory_uid") REFERENCES "public"."advisories"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "repos" ADD CONSTRAINT "repos_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tags" ADD CONSTRAINT "tags_repo_uid_repos_uid_fk" FOREIGN KEY ("repo_uid") REFERENCES "public"."repos"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "advisories_group" ON "advisories" USING btree ("group_uid","uid");--> statement-breakpoint
CREATE UNIQUE INDEX "advisories_id" ON "advisories" USING btree ("advisory_id","group_uid");--> statement-breakpoint
CREATE INDEX "advisories_legacy" ON "advisories" USING btree ("legacy_advisory_id");--> statement-breakpoint
CREATE INDEX "advisories_artifact" ON "advisories" USING btree ("artifact_name");--> statement-breakpoint
CREATE INDEX "advisories_component" ON "advisories" USING btree ("component_name");--> statement-breakpoint
CREATE INDEX "advisories_source" ON "advisories" USING btree ("group_uid","source_key");--> statement-breakpoint
CREATE INDEX "advisory_aliases_advisory" ON "advisory_aliases" USING btree ("advisory_uid");--> statement-breakpoint
CREATE INDEX "advisory_events_advisory" ON "advisory_events" USING btree ("advisory_uid","create_time_ms","uid");--> statement-breakpoint
CREATE INDEX "registry_events_time" ON "registry_events" USING btree ("time_ms");--> statement-breakpoint
CREATE INDEX "repos_group" ON "repos" USING btree ("group_uid","uid");--> statement-breakpoint
CREATE UNIQUE INDEX "repos_name" ON "repos" USING btree ("group_uid","name");--> statement-breakpoint
CREATE INDEX "tag_marks_time" ON "tag_marks" USING btree ("time_ms");--> statement-breakpoint
CREATE INDEX "tags_repo" ON "tags" USING btree ("repo_uid","uid");--> statement-breakpoint
CREATE UNIQUE INDEX "tags_name" ON "tags" USING btree ("repo_uid","name");--> statement-breakpoint
CREATE INDEX "tags_digest" ON "tags" USING btree ("digest","uid");