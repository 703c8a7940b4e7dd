CREATE TABLE "data_migrations" (
	"name" text COLLATE "C" PRIMARY KEY NOT NULL,
	"phase" text COLLATE "C" NOT NULL,
	"position" text COLLATE "C" NOT NULL,
	"done" bigint NOT NULL
);
