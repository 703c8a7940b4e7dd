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
	"root_uid" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"description" text COLLATE "C" NOT NULL,
	"accounts" jsonb NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "advisories" (
	"number" bigserial PRIMARY KEY NOT NULL,
	"uid" text COLLATE "C" NOT NULL,
	"group_uid" text COLLATE "C" NOT NULL,
	"root_uid" text COLLATE "C" NOT NULL,
	"advisory_id" text COLLATE "C" NOT NULL,
	"legacy_advisory_id" text COLLATE "C" NOT NULL,
	"author" text COLLATE "C" NOT NULL,
	"artifact_name" text COLLATE "C" NOT NULL,
	"artifact_type" text COLLATE "C" NOT NULL,
	"artifact_architecture" text COLLATE "C" NOT NULL,
	"component_name" text COLLATE "C" NOT NULL,
	"component_location" text COLLATE "C" NOT NULL,
	"component_type" text COLLATE "C" NOT NULL,
	"aliases" jsonb NOT NULL,
	"severities" jsonb NOT NULL,
	"searched" text COLLATE "C" NOT NULL,
	"latest_event_type" integer NOT NULL,
	"source_key" text COLLATE "C" NOT NULL,
	"source_hash" text COLLATE "C" NOT NULL,
	"delete_time_ms" bigint,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL,
	CONSTRAINT "advisories_uid_unique" UNIQUE("uid")
);
--> statement-breakpoint
CREATE TABLE "advisory_events" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"advisory_uid" text COLLATE "C" NOT NULL,
	"type" integer NOT NULL,
	"author" text COLLATE "C" NOT NULL,
	"reviewer" text COLLATE "C" NOT NULL,
	"review_state" integer NOT NULL,
	"data" jsonb NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "advisory_values" (
	"root_uid" text COLLATE "C" NOT NULL,
	"filter" integer NOT NULL,
	"value" text COLLATE "C" NOT NULL,
	"number" bigint NOT NULL,
	CONSTRAINT "advisory_values_root_uid_filter_value_number_pk" PRIMARY KEY("root_uid","filter","value","number")
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
	"remote_address" text COLLATE "C" NOT NULL,
	"version" integer DEFAULT 3 NOT NULL,
	"trace_id" text COLLATE "C" DEFAULT '' NOT NULL,
	"actor_name" text COLLATE "C" DEFAULT '' NOT NULL,
	"body_hash" text COLLATE "C" DEFAULT '' NOT NULL,
	"body" text COLLATE "C" DEFAULT '' NOT NULL
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
CREATE TABLE "audit_checkpoints" (
	"root_uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"seq" bigint NOT NULL,
	"hash" text COLLATE "C" NOT NULL,
	"entry_time_ms" bigint NOT NULL,
	"time_ms" bigint NOT NULL,
	"signature" text COLLATE "C" NOT NULL
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
	"settled_id" bigint NOT NULL,
	"passes" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "counters" (
	"scope" text COLLATE "C" NOT NULL,
	"counter" integer NOT NULL,
	"slot" integer NOT NULL,
	"n" bigint NOT NULL,
	CONSTRAINT "counters_scope_counter_slot_pk" PRIMARY KEY("scope","counter","slot")
);
--> statement-breakpoint
CREATE TABLE "data_migrations" (
	"name" text COLLATE "C" PRIMARY KEY NOT NULL,
	"phase" text COLLATE "C" NOT NULL,
	"position" text COLLATE "C" NOT NULL,
	"done" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "deployments" (
	"repo_uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"charts" jsonb NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "group_invites" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"group_uid" text COLLATE "C" NOT NULL,
	"root_uid" text COLLATE "C" NOT NULL,
	"role_uid" text COLLATE "C" NOT NULL,
	"email" text COLLATE "C" NOT NULL,
	"single_use" boolean NOT NULL,
	"key_id" text COLLATE "C" NOT NULL,
	"code_hash" text COLLATE "C" NOT NULL,
	"created_by" text COLLATE "C" DEFAULT '' NOT NULL,
	"expire_time_ms" bigint NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "external_group_role_mappings" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"provider_uid" text COLLATE "C" NOT NULL,
	"root_uid" text COLLATE "C" NOT NULL,
	"external_group_id" text COLLATE "C" NOT NULL,
	"role_uid" text COLLATE "C" NOT NULL,
	"scope" text COLLATE "C" NOT NULL,
	"create_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "groups" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"parent_uid" text COLLATE "C",
	"root_uid" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"description" text COLLATE "C" NOT NULL,
	"verified" boolean NOT NULL,
	"kind" integer NOT NULL,
	"resource_limits" jsonb NOT NULL,
	"created_by" text COLLATE "C" DEFAULT '' NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "identities" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"group_uid" text COLLATE "C",
	"root_uid" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"description" text COLLATE "C" NOT NULL,
	"issuer" text COLLATE "C" NOT NULL,
	"subject" text COLLATE "C" NOT NULL,
	"email" text COLLATE "C" NOT NULL,
	"email_unverified" text COLLATE "C" NOT NULL,
	"company" text COLLATE "C" NOT NULL,
	"provider_uid" text COLLATE "C",
	"relation" integer NOT NULL,
	"relationship" jsonb NOT NULL,
	"metadata" jsonb NOT NULL,
	"not_before" bigint NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL,
	"last_seen_time_ms" bigint NOT NULL,
	"delete_time_ms" bigint
);
--> statement-breakpoint
CREATE TABLE "identity_providers" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"group_uid" text COLLATE "C" NOT NULL,
	"root_uid" text COLLATE "C" NOT NULL,
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
--> statement-breakpoint
CREATE TABLE "keys" (
	"kid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"purpose" text COLLATE "C" NOT NULL,
	"state" text COLLATE "C" NOT NULL,
	"public_jwk" text COLLATE "C" NOT NULL,
	"sealed" text COLLATE "C" NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"next_time_ms" bigint
);
--> statement-breakpoint
CREATE TABLE "manifests" (
	"repo_uid" text COLLATE "C" NOT NULL,
	"digest" text COLLATE "C" NOT NULL,
	"images" jsonb NOT NULL,
	CONSTRAINT "manifests_repo_uid_digest_pk" PRIMARY KEY("repo_uid","digest")
);
--> statement-breakpoint
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
CREATE TABLE "registry_events" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "registry_names" (
	"name" text COLLATE "C" PRIMARY KEY NOT NULL,
	"group_uid" text COLLATE "C" NOT NULL,
	"uid_path" text COLLATE "C" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "registry_settings" (
	"group_uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"unique_tags" boolean NOT NULL,
	"eol_grace_period" boolean NOT NULL
);
--> statement-breakpoint
CREATE TABLE "repos" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"group_uid" text COLLATE "C" NOT NULL,
	"root_uid" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"description" text COLLATE "C" NOT NULL,
	"config" jsonb NOT NULL,
	"readme" text COLLATE "C" NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "role_bindings" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"group_uid" text COLLATE "C" NOT NULL,
	"root_uid" text COLLATE "C" NOT NULL,
	"identity_uid" text COLLATE "C" NOT NULL,
	"role_uid" text COLLATE "C" NOT NULL,
	"automatic" boolean NOT NULL,
	"accepted" boolean DEFAULT false NOT NULL,
	"pending" boolean DEFAULT false NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "roles" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"group_uid" text COLLATE "C",
	"root_uid" text COLLATE "C" NOT NULL,
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
CREATE TABLE "subscriptions" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"group_uid" text COLLATE "C" NOT NULL,
	"root_uid" text COLLATE "C" NOT NULL,
	"sink" text COLLATE "C" NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tag_history" (
	"tag_uid" text COLLATE "C" NOT NULL,
	"time_ms" bigint NOT NULL,
	"digest" text COLLATE "C" NOT NULL,
	CONSTRAINT "tag_history_tag_uid_time_ms_digest_pk" PRIMARY KEY("tag_uid","time_ms","digest")
);
--> statement-breakpoint
CREATE TABLE "tag_marks" (
	"repo_uid" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"time_ms" bigint NOT NULL,
	CONSTRAINT "tag_marks_repo_uid_name_pk" PRIMARY KEY("repo_uid","name")
);
--> statement-breakpoint
CREATE TABLE "tags" (
	"uid" text COLLATE "C" PRIMARY KEY NOT NULL,
	"repo_uid" text COLLATE "C" NOT NULL,
	"root_uid" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"digest" text COLLATE "C" NOT NULL,
	"family" integer NOT NULL,
	"deprecated" boolean NOT NULL,
	"bundles" jsonb NOT NULL,
	"create_time_ms" bigint NOT NULL,
	"update_time_ms" bigint NOT NULL
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
CREATE TABLE "tickets" (
	"hash" text COLLATE "C" PRIMARY KEY NOT NULL,
	"kind" text COLLATE "C" NOT NULL,
	"data" jsonb NOT NULL,
	"expire_time_ms" bigint NOT NULL,
	"origin" text COLLATE "C",
	"is_kept" boolean
);
--> statement-breakpoint
ALTER TABLE "access_requests" ADD CONSTRAINT "access_requests_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "account_associations" ADD CONSTRAINT "account_associations_uid_groups_uid_fk" FOREIGN KEY ("uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "advisories" ADD CONSTRAINT "advisories_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "advisory_events" ADD CONSTRAINT "advisory_events_advisory_uid_advisories_uid_fk" FOREIGN KEY ("advisory_uid") REFERENCES "public"."advisories"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "deployments" ADD CONSTRAINT "deployments_repo_uid_repos_uid_fk" FOREIGN KEY ("repo_uid") REFERENCES "public"."repos"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "group_invites" ADD CONSTRAINT "group_invites_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "group_invites" ADD CONSTRAINT "group_invites_role_uid_roles_uid_fk" FOREIGN KEY ("role_uid") REFERENCES "public"."roles"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "external_group_role_mappings" ADD CONSTRAINT "external_group_role_mappings_provider_uid_identity_providers_uid_fk" FOREIGN KEY ("provider_uid") REFERENCES "public"."identity_providers"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "external_group_role_mappings" ADD CONSTRAINT "external_group_role_mappings_role_uid_roles_uid_fk" FOREIGN KEY ("role_uid") REFERENCES "public"."roles"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "identities" ADD CONSTRAINT "identities_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "identity_providers" ADD CONSTRAINT "identity_providers_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "identity_providers" ADD CONSTRAINT "identity_providers_default_role_roles_uid_fk" FOREIGN KEY ("default_role") REFERENCES "public"."roles"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "registry_settings" ADD CONSTRAINT "registry_settings_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "repos" ADD CONSTRAINT "repos_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "role_bindings" ADD CONSTRAINT "role_bindings_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "role_bindings" ADD CONSTRAINT "role_bindings_role_uid_roles_uid_fk" FOREIGN KEY ("role_uid") REFERENCES "public"."roles"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "roles" ADD CONSTRAINT "roles_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "subscriptions" ADD CONSTRAINT "subscriptions_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tags" ADD CONSTRAINT "tags_repo_uid_repos_uid_fk" FOREIGN KEY ("repo_uid") REFERENCES "public"."repos"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "terms_acceptances" ADD CONSTRAINT "terms_acceptances_group_uid_groups_uid_fk" FOREIGN KEY ("group_uid") REFERENCES "public"."groups"("uid") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "account_associations_by_name" ON "account_associations" USING btree ("root_uid","name","uid");--> statement-breakpoint
CREATE INDEX "account_associations_by_created_at" ON "account_associations" USING btree ("root_uid","create_time_ms","uid");--> statement-breakpoint
CREATE INDEX "account_associations_by_updated_at" ON "account_associations" USING btree ("root_uid","update_time_ms","uid");--> statement-breakpoint
CREATE INDEX "account_associations_children" ON "account_associations" USING btree ("parent_uid","uid");--> statement-breakpoint
CREATE INDEX "advisories_by_created_at" ON "advisories" USING btree ("root_uid","create_time_ms","uid");--> statement-breakpoint
CREATE INDEX "advisories_by_updated_at" ON "advisories" USING btree ("root_uid","update_time_ms","uid");--> statement-breakpoint
CREATE INDEX "advisories_children" ON "advisories" USING btree ("group_uid","uid");--> statement-breakpoint
CREATE INDEX "advisories_by_number" ON "advisories" USING btree ("root_uid","number");--> statement-breakpoint
CREATE UNIQUE INDEX "advisories_id" ON "advisories" USING btree ("advisory_id","group_uid");--> statement-breakpoint
CREATE INDEX "advisories_legacy" ON "advisories" USING btree ("legacy_advisory_id");--> statement-breakpoint
CREATE INDEX "advisories_source" ON "advisories" USING btree ("group_uid","source_key");--> statement-breakpoint
CREATE INDEX "advisory_events_advisory" ON "advisory_events" USING btree ("advisory_uid","create_time_ms","uid");--> statement-breakpoint
CREATE INDEX "audit_root" ON "audit" USING btree ("root_uid","id");--> statement-breakpoint
CREATE INDEX "audit_time" ON "audit" USING btree ("root_uid","time_ms","id");--> statement-breakpoint
CREATE INDEX "audit_subject" ON "audit" USING btree ("subject_uid","time_ms","id");--> statement-breakpoint
CREATE INDEX "audit_actor" ON "audit" USING btree ("root_uid","actor_uid","time_ms","id");--> statement-breakpoint
CREATE INDEX "audit_type" ON "audit" USING btree ("root_uid","type","time_ms","id");--> statement-breakpoint
CREATE UNIQUE INDEX "audit_chain_audit" ON "audit_chain" USING btree ("audit_id");--> statement-breakpoint
CREATE INDEX "group_invites_by_created_at" ON "group_invites" USING btree ("root_uid","create_time_ms","uid");--> statement-breakpoint
CREATE INDEX "group_invites_children" ON "group_invites" USING btree ("group_uid","uid");--> statement-breakpoint
CREATE INDEX "group_invites_expiry" ON "group_invites" USING btree ("group_uid","expire_time_ms");--> statement-breakpoint
CREATE INDEX "group_invites_role" ON "group_invites" USING btree ("role_uid");--> statement-breakpoint
CREATE UNIQUE INDEX "group_invites_key" ON "group_invites" USING btree ("key_id");--> statement-breakpoint
CREATE INDEX "external_group_role_mappings_by_created_at" ON "external_group_role_mappings" USING btree ("root_uid","create_time_ms","uid");--> statement-breakpoint
CREATE INDEX "external_group_role_mappings_children" ON "external_group_role_mappings" USING btree ("provider_uid","uid");--> statement-breakpoint
CREATE UNIQUE INDEX "external_group_role_mappings_same" ON "external_group_role_mappings" USING btree ("provider_uid","external_group_id","role_uid","scope");--> statement-breakpoint
CREATE INDEX "external_group_role_mappings_role" ON "external_group_role_mappings" USING btree ("role_uid");--> statement-breakpoint
CREATE INDEX "groups_by_name" ON "groups" USING btree ("root_uid","name","uid");--> statement-breakpoint
CREATE INDEX "groups_by_created_at" ON "groups" USING btree ("root_uid","create_time_ms","uid");--> statement-breakpoint
CREATE INDEX "groups_by_updated_at" ON "groups" USING btree ("root_uid","update_time_ms","uid");--> statement-breakpoint
CREATE INDEX "groups_children" ON "groups" USING btree ("parent_uid","uid");--> statement-breakpoint
CREATE INDEX "groups_root_name" ON "groups" USING btree ("name","verified") WHERE parent_uid IS NULL;--> statement-breakpoint
CREATE INDEX "groups_creator" ON "groups" USING btree ("created_by","uid") WHERE created_by <> '';--> statement-breakpoint
CREATE INDEX "identities_by_name" ON "identities" USING btree ("root_uid","name","uid");--> statement-breakpoint
CREATE INDEX "identities_by_created_at" ON "identities" USING btree ("root_uid","create_time_ms","uid");--> statement-breakpoint
CREATE INDEX "identities_by_updated_at" ON "identities" USING btree ("root_uid","update_time_ms","uid");--> statement-breakpoint
CREATE INDEX "identities_children" ON "identities" USING btree ("group_uid","uid");--> statement-breakpoint
CREATE INDEX "identities_provider" ON "identities" USING btree ("provider_uid");--> statement-breakpoint
CREATE INDEX "identities_deleted" ON "identities" USING btree ("delete_time_ms") WHERE delete_time_ms IS NOT NULL;--> statement-breakpoint
CREATE INDEX "identity_providers_by_name" ON "identity_providers" USING btree ("root_uid","name","uid");--> statement-breakpoint
CREATE INDEX "identity_providers_by_created_at" ON "identity_providers" USING btree ("root_uid","create_time_ms","uid");--> statement-breakpoint
CREATE INDEX "identity_providers_by_updated_at" ON "identity_providers" USING btree ("root_uid","update_time_ms","uid");--> statement-breakpoint
CREATE INDEX "identity_providers_children" ON "identity_providers" USING btree ("group_uid","uid");--> statement-breakpoint
CREATE INDEX "identity_providers_role" ON "identity_providers" USING btree ("default_role");--> statement-breakpoint
CREATE INDEX "refresh_tokens_family" ON "refresh_tokens" USING btree ("family");--> statement-breakpoint
CREATE INDEX "refresh_tokens_identity" ON "refresh_tokens" USING btree ("identity_uid");--> statement-breakpoint
CREATE INDEX "refresh_tokens_expiry" ON "refresh_tokens" USING btree ("expire_time_ms");--> statement-breakpoint
CREATE INDEX "registry_events_time" ON "registry_events" USING btree ("time_ms");--> statement-breakpoint
CREATE UNIQUE INDEX "registry_names_group" ON "registry_names" USING btree ("group_uid");--> statement-breakpoint
CREATE INDEX "repos_by_name" ON "repos" USING btree ("root_uid","name","uid");--> statement-breakpoint
CREATE INDEX "repos_by_created_at" ON "repos" USING btree ("root_uid","create_time_ms","uid");--> statement-breakpoint
CREATE INDEX "repos_by_updated_at" ON "repos" USING btree ("root_uid","update_time_ms","uid");--> statement-breakpoint
CREATE INDEX "repos_children" ON "repos" USING btree ("group_uid","uid");--> statement-breakpoint
CREATE UNIQUE INDEX "repos_name" ON "repos" USING btree ("group_uid","name");--> statement-breakpoint
CREATE INDEX "role_bindings_by_created_at" ON "role_bindings" USING btree ("root_uid","create_time_ms","uid");--> statement-breakpoint
CREATE INDEX "role_bindings_children" ON "role_bindings" USING btree ("group_uid","uid");--> statement-breakpoint
CREATE INDEX "role_bindings_identity" ON "role_bindings" USING btree ("identity_uid","group_uid","role_uid");--> statement-breakpoint
CREATE INDEX "role_bindings_group" ON "role_bindings" USING btree ("group_uid","automatic");--> statement-breakpoint
CREATE INDEX "role_bindings_pending" ON "role_bindings" USING btree ("identity_uid","pending","uid");--> statement-breakpoint
CREATE INDEX "role_bindings_role" ON "role_bindings" USING btree ("role_uid","uid");--> statement-breakpoint
CREATE UNIQUE INDEX "role_bindings_same" ON "role_bindings" USING btree ("group_uid","identity_uid","role_uid");--> statement-breakpoint
CREATE INDEX "roles_by_name" ON "roles" USING btree ("root_uid","name","uid");--> statement-breakpoint
CREATE INDEX "roles_by_created_at" ON "roles" USING btree ("root_uid","create_time_ms","uid");--> statement-breakpoint
CREATE INDEX "roles_by_updated_at" ON "roles" USING btree ("root_uid","update_time_ms","uid");--> statement-breakpoint
CREATE INDEX "roles_children" ON "roles" USING btree ("group_uid","uid");--> statement-breakpoint
CREATE INDEX "roles_name" ON "roles" USING btree ("name","uid");--> statement-breakpoint
CREATE INDEX "subscriptions_by_created_at" ON "subscriptions" USING btree ("root_uid","create_time_ms","uid");--> statement-breakpoint
CREATE INDEX "subscriptions_children" ON "subscriptions" USING btree ("group_uid","uid");--> statement-breakpoint
CREATE INDEX "tag_marks_time" ON "tag_marks" USING btree ("time_ms");--> statement-breakpoint
CREATE INDEX "tags_by_uid" ON "tags" USING btree ("root_uid","family","uid");--> statement-breakpoint
CREATE INDEX "tags_by_name" ON "tags" USING btree ("root_uid","family","name","uid");--> statement-breakpoint
CREATE INDEX "tags_by_updated_at" ON "tags" USING btree ("root_uid","family","update_time_ms","uid");--> statement-breakpoint
CREATE INDEX "tags_children" ON "tags" USING btree ("repo_uid","family","uid");--> statement-breakpoint
CREATE UNIQUE INDEX "tags_name" ON "tags" USING btree ("repo_uid","name");--> statement-breakpoint
CREATE INDEX "tags_digest" ON "tags" USING btree ("digest","uid");--> statement-breakpoint
CREATE INDEX "tickets_expiry" ON "tickets" USING btree ("expire_time_ms");--> statement-breakpoint
CREATE INDEX "tickets_origin" ON "tickets" USING btree ("origin","kind","is_kept","expire_time_ms");
--> statement-breakpoint
-- The rest is not part of the schema that the generator knows. A server without the extension does without: see
-- docs/advisories.md.
DO $$
BEGIN
	CREATE EXTENSION IF NOT EXISTS pg_trgm;
	CREATE INDEX advisories_trigrams ON advisories USING gin (searched gin_trgm_ops);
EXCEPTION WHEN feature_not_supported OR undefined_file OR undefined_object OR insufficient_privilege THEN
	NULL;
END $$;
--> statement-breakpoint
-- Without statistics of columns a plan depends on the statement alone: see docs/adr/0018-plain-indexes.md.
DO $$
DECLARE
	found record;
BEGIN
	FOR found IN
		SELECT attrelid::regclass AS relation, attname AS name FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
		WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relowner = current_user::regrole
			AND attnum > 0 AND NOT attisdropped
	LOOP
		EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', found.relation, found.name);
	END LOOP;
END $$;
