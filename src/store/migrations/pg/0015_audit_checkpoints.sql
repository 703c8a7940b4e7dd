CREATE TABLE "audit_checkpoints" (
	"root_uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"seq" bigint NOT NULL,
	"hash" text COLLATE "C" NOT NULL,
	"entry_time_ms" bigint NOT NULL,
	"time_ms" bigint NOT NULL,
	"signature" text COLLATE "C" NOT NULL
);
