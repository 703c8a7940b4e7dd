CREATE TABLE "registry_names" (
	"name" text COLLATE "C" PRIMARY KEY NOT NULL,
	"group_uid" text COLLATE "C" NOT NULL,
	"uid_path" text COLLATE "C" NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX "registry_names_group" ON "registry_names" USING btree ("group_uid");--> statement-breakpoint
INSERT INTO "registry_names" ("name", "group_uid", "uid_path") SELECT "name", "uid", 'pulls' FROM "groups" WHERE "parent_uid" IS NULL AND "verified" ON CONFLICT DO NOTHING;
