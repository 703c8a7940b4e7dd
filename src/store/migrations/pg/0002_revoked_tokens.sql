CREATE TABLE "revoked_tokens" (
	"identity_uid" text COLLATE "C" NOT NULL,
	"token_id" text COLLATE "C" NOT NULL,
	"expire_time_ms" bigint NOT NULL,
	CONSTRAINT "revoked_tokens_identity_uid_token_id_pk" PRIMARY KEY("identity_uid","token_id")
);
--> statement-breakpoint
ALTER TABLE "identities" ADD COLUMN "revoke_time_ms" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX "revoked_tokens_expiry" ON "revoked_tokens" USING btree ("expire_time_ms");--> statement-breakpoint
-- Without statistics of columns a plan depends on the statement alone: see docs/adr/0018-plain-indexes.md.
ALTER TABLE "identities" ALTER COLUMN "revoke_time_ms" SET STATISTICS 0;--> statement-breakpoint
ALTER TABLE "revoked_tokens" ALTER COLUMN "identity_uid" SET STATISTICS 0, ALTER COLUMN "token_id" SET STATISTICS 0, ALTER COLUMN "expire_time_ms" SET STATISTICS 0;
