CREATE TABLE "scim_groups" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"provider_uid" text COLLATE "C" NOT NULL,
	"root_uid" text COLLATE "C" NOT NULL,
	"display_name" text COLLATE "C" NOT NULL,
	"display_name_key" text COLLATE "C" NOT NULL,
	"external_id" text COLLATE "C" NOT NULL,
	"mapped_id" text COLLATE "C" NOT NULL,
	"attributes" jsonb NOT NULL,
	"member_set" bigint NOT NULL,
	"revision" bigint NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "scim_members" (
	"group_uid" text COLLATE "C" NOT NULL,
	"member_set" bigint NOT NULL,
	"user_uid" text COLLATE "C" NOT NULL,
	CONSTRAINT "scim_members_group_uid_member_set_user_uid_pk" PRIMARY KEY("group_uid","member_set","user_uid")
);
--> statement-breakpoint
CREATE TABLE "scim_work" (
	"provider_uid" text COLLATE "C" NOT NULL,
	"kind" text COLLATE "C" NOT NULL,
	"uid" text COLLATE "C" NOT NULL,
	"position" text COLLATE "C" NOT NULL,
	CONSTRAINT "scim_work_provider_uid_kind_uid_pk" PRIMARY KEY("provider_uid","kind","uid")
);
--> statement-breakpoint
ALTER TABLE "external_group_role_mappings" ADD COLUMN "created_by" text COLLATE "C";--> statement-breakpoint
ALTER TABLE "scim_groups" ADD CONSTRAINT "scim_groups_provider_uid_identity_providers_uid_fk" FOREIGN KEY ("provider_uid") REFERENCES "public"."identity_providers"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "scim_members" ADD CONSTRAINT "scim_members_user_uid_scim_users_uid_fk" FOREIGN KEY ("user_uid") REFERENCES "public"."scim_users"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "scim_work" ADD CONSTRAINT "scim_work_provider_uid_identity_providers_uid_fk" FOREIGN KEY ("provider_uid") REFERENCES "public"."identity_providers"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "scim_groups_children" ON "scim_groups" USING btree ("provider_uid","uid");--> statement-breakpoint
CREATE INDEX "scim_groups_display_name" ON "scim_groups" USING btree ("provider_uid","display_name_key","uid");--> statement-breakpoint
CREATE UNIQUE INDEX "scim_groups_external_id" ON "scim_groups" USING btree ("provider_uid","external_id") WHERE external_id <> '';--> statement-breakpoint
CREATE INDEX "scim_groups_mapped_id" ON "scim_groups" USING btree ("mapped_id","uid");--> statement-breakpoint
CREATE INDEX "scim_groups_updated" ON "scim_groups" USING btree ("provider_uid","update_time_ms","uid");--> statement-breakpoint
CREATE INDEX "scim_members_user" ON "scim_members" USING btree ("user_uid","group_uid");--> statement-breakpoint
CREATE INDEX "external_group_role_mappings_granted" ON "external_group_role_mappings" USING btree ("scope","role_uid","provider_uid","external_group_id");--> statement-breakpoint
CREATE UNIQUE INDEX "role_bindings_manual" ON "role_bindings" USING btree ("group_uid","identity_uid","role_uid") WHERE managed_by_uid IS NULL;--> statement-breakpoint
CREATE UNIQUE INDEX "role_bindings_managed" ON "role_bindings" USING btree ("group_uid","identity_uid","role_uid","managed_by_uid");--> statement-breakpoint
-- Without statistics of columns a plan depends on the statement alone: see docs/adr/0018-plain-indexes.md.
ALTER TABLE "scim_groups" ALTER COLUMN "uid" SET STATISTICS 0, ALTER COLUMN "provider_uid" SET STATISTICS 0, ALTER COLUMN "root_uid" SET STATISTICS 0, ALTER COLUMN "display_name" SET STATISTICS 0, ALTER COLUMN "display_name_key" SET STATISTICS 0, ALTER COLUMN "external_id" SET STATISTICS 0, ALTER COLUMN "mapped_id" SET STATISTICS 0, ALTER COLUMN "attributes" SET STATISTICS 0, ALTER COLUMN "member_set" SET STATISTICS 0, ALTER COLUMN "revision" SET STATISTICS 0, ALTER COLUMN "create_time_ms" SET STATISTICS 0, ALTER COLUMN "update_time_ms" SET STATISTICS 0;--> statement-breakpoint
ALTER TABLE "scim_members" ALTER COLUMN "group_uid" SET STATISTICS 0, ALTER COLUMN "member_set" SET STATISTICS 0, ALTER COLUMN "user_uid" SET STATISTICS 0;--> statement-breakpoint
ALTER TABLE "scim_work" ALTER COLUMN "provider_uid" SET STATISTICS 0, ALTER COLUMN "kind" SET STATISTICS 0, ALTER COLUMN "uid" SET STATISTICS 0, ALTER COLUMN "position" SET STATISTICS 0;--> statement-breakpoint
ALTER TABLE "external_group_role_mappings" ALTER COLUMN "created_by" SET STATISTICS 0;
