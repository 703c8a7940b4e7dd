CREATE TABLE "scim_users" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"provider_uid" text COLLATE "C" NOT NULL,
	"root_uid" text COLLATE "C" NOT NULL,
	"user_name" text COLLATE "C" NOT NULL,
	"user_name_key" text COLLATE "C" NOT NULL,
	"external_id" text COLLATE "C" NOT NULL,
	"display_name" text COLLATE "C" NOT NULL,
	"active" boolean NOT NULL,
	"attributes" jsonb NOT NULL,
	"identity_uid" text COLLATE "C",
	"revision" bigint NOT NULL,
	"reject_time_ms" bigint,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "former_scim_users" (
	"provider_uid" text COLLATE "C" NOT NULL,
	"external_id" text COLLATE "C" NOT NULL,
	"uid" text COLLATE "C" NOT NULL,
	"identity_uid" text COLLATE "C",
	"create_time_ms" bigint NOT NULL,
	"delete_time_ms" bigint NOT NULL,
	CONSTRAINT "former_scim_users_provider_uid_external_id_pk" PRIMARY KEY("provider_uid","external_id")
);
--> statement-breakpoint
ALTER TABLE "identities" ADD COLUMN "deactivate_time_ms" bigint;--> statement-breakpoint
ALTER TABLE "scim_users" ADD CONSTRAINT "scim_users_provider_uid_identity_providers_uid_fk" FOREIGN KEY ("provider_uid") REFERENCES "public"."identity_providers"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "former_scim_users" ADD CONSTRAINT "former_scim_users_provider_uid_identity_providers_uid_fk" FOREIGN KEY ("provider_uid") REFERENCES "public"."identity_providers"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "scim_users_children" ON "scim_users" USING btree ("provider_uid","uid");--> statement-breakpoint
CREATE UNIQUE INDEX "scim_users_user_name" ON "scim_users" USING btree ("provider_uid","user_name_key");--> statement-breakpoint
CREATE UNIQUE INDEX "scim_users_external_id" ON "scim_users" USING btree ("provider_uid","external_id") WHERE external_id <> '';--> statement-breakpoint
CREATE INDEX "scim_users_updated" ON "scim_users" USING btree ("provider_uid","update_time_ms","uid");--> statement-breakpoint
CREATE UNIQUE INDEX "scim_users_identity" ON "scim_users" USING btree ("identity_uid") WHERE identity_uid IS NOT NULL;--> statement-breakpoint
CREATE INDEX "scim_users_rejected" ON "scim_users" USING btree ("provider_uid","reject_time_ms") WHERE reject_time_ms IS NOT NULL;--> statement-breakpoint
-- Without statistics of columns a plan depends on the statement alone: see docs/adr/0018-plain-indexes.md.
ALTER TABLE "scim_users" ALTER COLUMN "uid" SET STATISTICS 0, ALTER COLUMN "provider_uid" SET STATISTICS 0, ALTER COLUMN "root_uid" SET STATISTICS 0, ALTER COLUMN "user_name" SET STATISTICS 0, ALTER COLUMN "user_name_key" SET STATISTICS 0, ALTER COLUMN "external_id" SET STATISTICS 0, ALTER COLUMN "display_name" SET STATISTICS 0, ALTER COLUMN "active" SET STATISTICS 0, ALTER COLUMN "attributes" SET STATISTICS 0, ALTER COLUMN "identity_uid" SET STATISTICS 0, ALTER COLUMN "revision" SET STATISTICS 0, ALTER COLUMN "reject_time_ms" SET STATISTICS 0, ALTER COLUMN "create_time_ms" SET STATISTICS 0, ALTER COLUMN "update_time_ms" SET STATISTICS 0;--> statement-breakpoint
ALTER TABLE "former_scim_users" ALTER COLUMN "provider_uid" SET STATISTICS 0, ALTER COLUMN "external_id" SET STATISTICS 0, ALTER COLUMN "uid" SET STATISTICS 0, ALTER COLUMN "identity_uid" SET STATISTICS 0, ALTER COLUMN "create_time_ms" SET STATISTICS 0, ALTER COLUMN "delete_time_ms" SET STATISTICS 0;--> statement-breakpoint
ALTER TABLE "identities" ALTER COLUMN "deactivate_time_ms" SET STATISTICS 0;
