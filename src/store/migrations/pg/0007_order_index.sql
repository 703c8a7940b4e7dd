CREATE TABLE "scopes" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"uid" text COLLATE "C" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "text_entries" (
	"list" integer NOT NULL,
	"scope" bigint NOT NULL,
	"key" text COLLATE "C" NOT NULL,
	"below" "bytea" NOT NULL,
	CONSTRAINT "text_entries_scope_list_key_below_pk" PRIMARY KEY("scope","list","key","below")
);
--> statement-breakpoint
CREATE TABLE "text_ranks" (
	"list" integer NOT NULL,
	"scope" bigint NOT NULL,
	"key" text COLLATE "C" NOT NULL,
	"below" "bytea" NOT NULL,
	"slot" integer NOT NULL,
	"n" bigint,
	CONSTRAINT "text_ranks_scope_list_key_below_slot_pk" PRIMARY KEY("scope","list","key","below","slot")
);
--> statement-breakpoint
CREATE TABLE "time_entries" (
	"list" integer NOT NULL,
	"scope" bigint NOT NULL,
	"key" bigint NOT NULL,
	"below" "bytea" NOT NULL,
	CONSTRAINT "time_entries_scope_list_key_below_pk" PRIMARY KEY("scope","list","key","below")
);
--> statement-breakpoint
CREATE TABLE "time_ranks" (
	"list" integer NOT NULL,
	"scope" bigint NOT NULL,
	"key" bigint NOT NULL,
	"below" "bytea" NOT NULL,
	"slot" integer NOT NULL,
	"n" bigint,
	CONSTRAINT "time_ranks_scope_list_key_below_slot_pk" PRIMARY KEY("scope","list","key","below","slot")
);
--> statement-breakpoint
CREATE TABLE "totals" (
	"counter" integer NOT NULL,
	"scope" bigint NOT NULL,
	"slot" integer NOT NULL,
	"n" bigint NOT NULL,
	CONSTRAINT "totals_scope_counter_slot_pk" PRIMARY KEY("scope","counter","slot")
);
--> statement-breakpoint
CREATE UNIQUE INDEX "scopes_uid" ON "scopes" USING btree ("uid");