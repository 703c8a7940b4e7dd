CREATE TABLE "jobs" (
	"name" text COLLATE "C" PRIMARY KEY NOT NULL,
	"holder" text COLLATE "C" NOT NULL,
	"fence" bigint NOT NULL,
	"expire_time_ms" bigint NOT NULL,
	"start_time_ms" bigint,
	"duration_ms" bigint,
	"changes" bigint,
	"next_time_ms" bigint,
	"failures" bigint NOT NULL,
	"error" text COLLATE "C",
	"error_time_ms" bigint
);
