CREATE TABLE "event_positions" (
	"subscription_uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"root_uid" text COLLATE "C" NOT NULL,
	"seq" bigint NOT NULL,
	"state" text COLLATE "C" NOT NULL,
	"suspend_reason" text COLLATE "C" NOT NULL,
	"failing_since_ms" bigint,
	"revision" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "event_deliveries" (
	"subscription_uid" text COLLATE "C" NOT NULL,
	"seq" bigint NOT NULL,
	"subject_uid" text COLLATE "C" NOT NULL,
	"since_ms" bigint NOT NULL,
	"next_time_ms" bigint,
	"dead_time_ms" bigint,
	"attempts" integer NOT NULL,
	"last_time_ms" bigint,
	"last_status" integer NOT NULL,
	"last_error" text COLLATE "C" NOT NULL,
	CONSTRAINT "event_deliveries_subscription_uid_seq_pk" PRIMARY KEY("subscription_uid","seq")
);
--> statement-breakpoint
ALTER TABLE "event_positions" ADD CONSTRAINT "event_positions_subscription_uid_subscriptions_uid_fk" FOREIGN KEY ("subscription_uid") REFERENCES "public"."subscriptions"("uid") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "event_deliveries" ADD CONSTRAINT "event_deliveries_subscription_uid_event_positions_subscription_uid_fk" FOREIGN KEY ("subscription_uid") REFERENCES "public"."event_positions"("subscription_uid") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "event_positions_root" ON "event_positions" USING btree ("root_uid","seq");--> statement-breakpoint
CREATE INDEX "event_deliveries_state" ON "event_deliveries" USING btree ("subscription_uid","dead_time_ms","seq");--> statement-breakpoint
CREATE INDEX "event_deliveries_dead" ON "event_deliveries" USING btree ("dead_time_ms");--> statement-breakpoint
-- Without statistics of columns a plan depends on the statement alone: see docs/adr/0018-plain-indexes.md.
DO $$
DECLARE
	found record;
BEGIN
	FOR found IN
		SELECT attrelid::regclass AS relation, attname AS name FROM pg_attribute
		WHERE attrelid IN ('event_positions'::regclass, 'event_deliveries'::regclass) AND attnum > 0 AND NOT attisdropped
	LOOP
		EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', found.relation, found.name);
	END LOOP;
END $$;
