CREATE TABLE "access_requests" (
	"group_uid" text COLLATE "C" NOT NULL,
	"identity_uid" text COLLATE "C" NOT NULL,
	"time_ms" bigint NOT NULL,
	CONSTRAINT "access_requests_group_uid_identity_uid_pk" PRIMARY KEY("group_uid","identity_uid")
);
--> statement-breakpoint
CREATE TABLE "account_associations" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"parent_uid" text COLLATE "C",
	"name" text COLLATE "C" NOT NULL,
	"description" text COLLATE "C" NOT NULL,
	"accounts" jsonb NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "audit" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"root_uid" text COLLATE "C" NOT NULL,
	"time_ms" bigint NOT NULL,
	"type" text COLLATE "C" NOT NULL,
	"method" text COLLATE "C" NOT NULL,
	"subject_uid" text COLLATE "C" NOT NULL,
	"actor_uid" text COLLATE "C" NOT NULL,
	"token_id" text COLLATE "C" NOT NULL,
	"request_id" text COLLATE "C" NOT NULL,
	"remote_address" text COLLATE "C" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "audit_chain" (
	"root_uid" text COLLATE "C" NOT NULL,
	"seq" bigint NOT NULL,
	"audit_id" bigint NOT NULL,
	"hash" text COLLATE "C" NOT NULL,
	CONSTRAINT "audit_chain_root_uid_seq_pk" PRIMARY KEY("root_uid","seq")
);
--> statement-breakpoint
CREATE TABLE "audit_heads" (
	"root_uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"seq" bigint NOT NULL,
	"hash" text COLLATE "C" NOT NULL,
	"time_ms" bigint NOT NULL,
	"signature" text COLLATE "C" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "audit_sealer" (
	"name" text COLLATE "C" PRIMARY KEY NOT NULL,
	"holder" text COLLATE "C" NOT NULL,
	"expire_time_ms" bigint NOT NULL,
	"settled_id" bigint NOT NULL,
	"passes" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "counters" (
	"counter" integer NOT NULL,
	"scope" text COLLATE "C" NOT NULL,
	"slot" integer NOT NULL,
	"n" bigint NOT NULL,
	CONSTRAINT "counters_counter_scope_slot_pk" PRIMARY KEY("counter","scope","slot")
);
--> statement-breakpoint
CREATE TABLE "group_invites" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"group_uid" text COLLATE "C" NOT NULL,
	"role_uid" text COLLATE "C" NOT NULL,
	"email" text COLLATE "C" NOT NULL,
	"single_use" boolean NOT NULL,
	"key_id" text COLLATE "C" NOT NULL,
	"code_hash" text COLLATE "C" NOT NULL,
	"expire_time_ms" bigint NOT NULL,
	"create_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "external_group_role_mappings" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"provider_uid" text COLLATE "C" NOT NULL,
	"external_group_id" text COLLATE "C" NOT NULL,
	"role_uid" text COLLATE "C" NOT NULL,
	"scope" text COLLATE "C" NOT NULL,
	"create_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "groups" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"parent_uid" text COLLATE "C",
	"name" text COLLATE "C" NOT NULL,
	"description" text COLLATE "C" NOT NULL,
	"verified" boolean NOT NULL,
	"kind" integer NOT NULL,
	"resource_limits" jsonb NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "identities" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"group_uid" text COLLATE "C",
	"name" text COLLATE "C" NOT NULL,
	"description" text COLLATE "C" NOT NULL,
	"issuer" text COLLATE "C" NOT NULL,
	"subject" text COLLATE "C" NOT NULL,
	"email" text COLLATE "C" NOT NULL,
	"email_unverified" text COLLATE "C" NOT NULL,
	"company" text COLLATE "C" NOT NULL,
	"relation" integer NOT NULL,
	"relationship" jsonb NOT NULL,
	"metadata" jsonb NOT NULL,
	"not_before" bigint NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL,
	"last_seen_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "identity_providers" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"group_uid" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"description" text COLLATE "C" NOT NULL,
	"default_role" text COLLATE "C" NOT NULL,
	"oidc" jsonb NOT NULL,
	"sealed_secret" text COLLATE "C" NOT NULL,
	"scim" jsonb NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "keys" (
	"kid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"purpose" text COLLATE "C" NOT NULL,
	"state" text COLLATE "C" NOT NULL,
	"public_jwk" text COLLATE "C" NOT NULL,
	"sealed" text COLLATE "C" NOT NULL,
	"create_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "role_bindings" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"group_uid" text COLLATE "C" NOT NULL,
	"identity_uid" text COLLATE "C" NOT NULL,
	"role_uid" text COLLATE "C" NOT NULL,
	"automatic" boolean NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "roles" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"group_uid" text COLLATE "C",
	"name" text COLLATE "C" NOT NULL,
	"description" text COLLATE "C" NOT NULL,
	"capabilities" text COLLATE "C" NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "settings" (
	"name" text COLLATE "C" PRIMARY KEY NOT NULL,
	"value" text COLLATE "C" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "terms_acceptances" (
	"group_uid" text COLLATE "C" NOT NULL,
	"doc_id" text COLLATE "C" NOT NULL,
	"accepted_by" text COLLATE "C" NOT NULL,
	"create_time_ms" bigint NOT NULL,
	CONSTRAINT "terms_acceptances_group_uid_doc_id_pk" PRIMARY KEY("group_uid","doc_id")
);
--> statement-breakpoint
CREATE TABLE "text_order" (
	"list" integer NOT NULL,
	"scope" text COLLATE "C" NOT NULL,
	"key" text COLLATE "C" NOT NULL,
	"uid" text COLLATE "C" NOT NULL,
	CONSTRAINT "text_order_list_scope_key_uid_pk" PRIMARY KEY("list","scope","key","uid")
);
--> statement-breakpoint
CREATE TABLE "time_order" (
	"list" integer NOT NULL,
	"scope" text COLLATE "C" NOT NULL,
	"key" bigint NOT NULL,
	"uid" text COLLATE "C" NOT NULL,
	CONSTRAINT "time_order_list_scope_key_uid_pk" PRIMARY KEY("list","scope","key","uid")
);
--> statement-breakpoint
ALTER TABLE "access_requests" ADD CONSTRAINT "access_requests_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "account_associations" ADD CONSTRAINT "account_associations_uid_groups_uid_fk" FOREIGN KEY ("uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "group_invites" ADD CONSTRAINT "group_invites_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "group_invites" ADD CONSTRAINT "group_invites_role_uid_roles_uid_fk" FOREIGN KEY ("role_uid") REFERENCES "public"."roles"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "external_group_role_mappings" ADD CONSTRAINT "external_group_role_mappings_provider_uid_identity_providers_uid_fk" FOREIGN KEY ("provider_uid") REFERENCES "public"."identity_providers"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "external_group_role_mappings" ADD CONSTRAINT "external_group_role_mappings_role_uid_roles_uid_fk" FOREIGN KEY ("role_uid") REFERENCES "public"."roles"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "groups" ADD CONSTRAINT "groups_parent_uid_groups_uid_fk" FOREIGN KEY ("parent_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "identities" ADD CONSTRAINT "identities_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "identity_providers" ADD CONSTRAINT "identity_providers_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "identity_providers" ADD CONSTRAINT "identity_providers_default_role_roles_uid_fk" FOREIGN KEY ("default_role") REFERENCES "public"."roles"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "role_bindings" ADD CONSTRAINT "role_bindings_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "role_bindings" ADD CONSTRAINT "role_bindings_role_uid_roles_uid_fk" FOREIGN KEY ("role_uid") REFERENCES "public"."roles"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "roles" ADD CONSTRAINT "roles_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "terms_acceptances" ADD CONSTRAINT "terms_acceptances_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "account_associations_parent" ON "account_associations" USING btree ("parent_uid","uid");--> statement-breakpoint
CREATE INDEX "audit_root" ON "audit" USING btree ("root_uid","id");--> statement-breakpoint
CREATE UNIQUE INDEX "audit_chain_audit" ON "audit_chain" USING btree ("audit_id");--> statement-breakpoint
CREATE INDEX "group_invites_group" ON "group_invites" USING btree ("group_uid","uid");--> statement-breakpoint
CREATE INDEX "group_invites_role" ON "group_invites" USING btree ("role_uid");--> statement-breakpoint
CREATE UNIQUE INDEX "group_invites_key" ON "group_invites" USING btree ("key_id");--> statement-breakpoint
CREATE UNIQUE INDEX "external_group_role_mappings_same" ON "external_group_role_mappings" USING btree ("provider_uid","external_group_id","role_uid","scope");--> statement-breakpoint
CREATE INDEX "external_group_role_mappings_role" ON "external_group_role_mappings" USING btree ("role_uid");--> statement-breakpoint
CREATE INDEX "groups_children_uid" ON "groups" USING btree ("parent_uid","uid");--> statement-breakpoint
CREATE INDEX "groups_children_name" ON "groups" USING btree ("parent_uid","name","uid");--> statement-breakpoint
CREATE INDEX "groups_children_created" ON "groups" USING btree ("parent_uid","create_time_ms","uid");--> statement-breakpoint
CREATE INDEX "groups_children_updated" ON "groups" USING btree ("parent_uid","update_time_ms","uid");--> statement-breakpoint
CREATE INDEX "groups_name" ON "groups" USING btree ("name","parent_uid");--> statement-breakpoint
CREATE INDEX "identities_group" ON "identities" USING btree ("group_uid","uid");--> statement-breakpoint
CREATE INDEX "identity_providers_group" ON "identity_providers" USING btree ("group_uid","uid");--> statement-breakpoint
CREATE INDEX "identity_providers_role" ON "identity_providers" USING btree ("default_role");--> statement-breakpoint
CREATE INDEX "role_bindings_identity" ON "role_bindings" USING btree ("identity_uid","group_uid","role_uid");--> statement-breakpoint
CREATE INDEX "role_bindings_group" ON "role_bindings" USING btree ("group_uid","automatic");--> statement-breakpoint
CREATE INDEX "role_bindings_role" ON "role_bindings" USING btree ("role_uid","uid");--> statement-breakpoint
CREATE UNIQUE INDEX "role_bindings_same" ON "role_bindings" USING btree ("group_uid","identity_uid","role_uid");--> statement-breakpoint
CREATE INDEX "roles_group" ON "roles" USING btree ("group_uid","uid");--> statement-breakpoint
CREATE INDEX "roles_name" ON "roles" USING btree ("name","uid");