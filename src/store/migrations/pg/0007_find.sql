CREATE TABLE "name_words" (
	"root_uid" text COLLATE "C" NOT NULL,
	"kind" integer NOT NULL,
	"word" text COLLATE "C" NOT NULL,
	"uid" text COLLATE "C" NOT NULL,
	CONSTRAINT "name_words_root_uid_kind_word_uid_pk" PRIMARY KEY("root_uid","kind","word","uid")
);
--> statement-breakpoint
CREATE INDEX "identities_email" ON "identities" USING btree ("email","uid") WHERE email <> '';--> statement-breakpoint
-- Without statistics of columns a plan depends on the statement alone: see docs/adr/0018-plain-indexes.md.
ALTER TABLE "name_words" ALTER COLUMN "root_uid" SET STATISTICS 0, ALTER COLUMN "kind" SET STATISTICS 0, ALTER COLUMN "word" SET STATISTICS 0, ALTER COLUMN "uid" SET STATISTICS 0;
