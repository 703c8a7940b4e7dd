CREATE TABLE "advisory_changes" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"uid" text COLLATE "C" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "advisory_entries" (
	"number" bigserial PRIMARY KEY NOT NULL,
	"root" bigint NOT NULL,
	"uid" text COLLATE "C" NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL,
	"searched" text COLLATE "C" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "advisory_facets" (
	"number" bigserial PRIMARY KEY NOT NULL,
	"facets" jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "advisory_postings" (
	"root" bigint NOT NULL,
	"filter" integer NOT NULL,
	"value" text COLLATE "C" NOT NULL,
	"word" bigint NOT NULL,
	"bits" bigint NOT NULL,
	CONSTRAINT "advisory_postings_root_filter_value_word_pk" PRIMARY KEY("root","filter","value","word")
);
--> statement-breakpoint
CREATE TABLE "advisory_roots" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"uid" text COLLATE "C" NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX "advisory_entries_uid" ON "advisory_entries" USING btree ("uid");--> statement-breakpoint
CREATE INDEX "advisory_entries_created" ON "advisory_entries" USING btree ("root","create_time_ms","uid");--> statement-breakpoint
CREATE INDEX "advisory_entries_updated" ON "advisory_entries" USING btree ("root","update_time_ms","uid");--> statement-breakpoint
CREATE UNIQUE INDEX "advisory_roots_uid" ON "advisory_roots" USING btree ("uid");
--> statement-breakpoint
-- The rest is not part of the schema that the generator knows.
CREATE FUNCTION note_advisory_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO advisory_changes (uid) VALUES (CASE WHEN TG_OP = 'DELETE' THEN old.uid ELSE new.uid END);
	RETURN NULL;
END $$;
--> statement-breakpoint
CREATE TRIGGER advisories_changed AFTER INSERT OR UPDATE OR DELETE ON advisories FOR EACH ROW EXECUTE FUNCTION note_advisory_change();
--> statement-breakpoint
-- A server without the extension does without: see docs/advisories.md.
DO $$
BEGIN
	CREATE EXTENSION IF NOT EXISTS pg_trgm;
	CREATE INDEX advisory_entries_trigrams ON advisory_entries USING gin (searched gin_trgm_ops);
EXCEPTION WHEN feature_not_supported OR undefined_file OR undefined_object OR insufficient_privilege THEN
	NULL;
END $$;
--> statement-breakpoint
INSERT INTO advisory_changes (uid) SELECT uid FROM advisories ORDER BY uid;
