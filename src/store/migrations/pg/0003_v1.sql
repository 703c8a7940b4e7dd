CREATE TABLE "deployments" (
	"repo_uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"charts" jsonb NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "registry_settings" (
	"group_uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"unique_tags" boolean NOT NULL,
	"eol_grace_period" boolean NOT NULL
);
--> statement-breakpoint
CREATE TABLE "subscriptions" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"group_uid" text COLLATE "C" NOT NULL,
	"sink" text COLLATE "C" NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "group_invites" ADD COLUMN "update_time_ms" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "deployments" ADD CONSTRAINT "deployments_repo_uid_repos_uid_fk" FOREIGN KEY ("repo_uid") REFERENCES "public"."repos"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "registry_settings" ADD CONSTRAINT "registry_settings_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "subscriptions" ADD CONSTRAINT "subscriptions_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "subscriptions_group" ON "subscriptions" USING btree ("group_uid","uid");