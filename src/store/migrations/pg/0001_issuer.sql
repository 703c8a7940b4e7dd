CREATE TABLE "refresh_tokens" (
	"hash" text COLLATE "C" PRIMARY KEY NOT NULL,
	"family" text COLLATE "C" NOT NULL,
	"identity_uid" text COLLATE "C" NOT NULL,
	"grant" jsonb NOT NULL,
	"used" boolean NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"expire_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tickets" (
	"hash" text COLLATE "C" PRIMARY KEY NOT NULL,
	"kind" text COLLATE "C" NOT NULL,
	"data" jsonb NOT NULL,
	"expire_time_ms" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "group_invites" ADD COLUMN "created_by" text COLLATE "C" DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "identities" ADD COLUMN "provider_uid" text COLLATE "C";--> statement-breakpoint
ALTER TABLE "keys" ADD COLUMN "next_time_ms" bigint;--> statement-breakpoint
ALTER TABLE "role_bindings" ADD COLUMN "accepted" boolean DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX "refresh_tokens_family" ON "refresh_tokens" USING btree ("family");--> statement-breakpoint
CREATE INDEX "refresh_tokens_identity" ON "refresh_tokens" USING btree ("identity_uid");--> statement-breakpoint
CREATE INDEX "refresh_tokens_expiry" ON "refresh_tokens" USING btree ("expire_time_ms");--> statement-breakpoint
CREATE INDEX "tickets_expiry" ON "tickets" USING btree ("expire_time_ms");--> statement-breakpoint
CREATE INDEX "identities_provider" ON "identities" USING btree ("provider_uid");