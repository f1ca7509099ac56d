import type { Knex } from 'knex';

/** The tables of all other resources. Text, JSON and names of constraints as in the first migration. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE chassis (
      id bigserial CONSTRAINT chassis_pkey PRIMARY KEY,
      uuid text COLLATE "C" NOT NULL CONSTRAINT chassis_uuid_unique UNIQUE,
      description text COLLATE "C",
      extra json NOT NULL DEFAULT '{}',
      created_at timestamptz NOT NULL,
      updated_at timestamptz,
      revision bigint NOT NULL DEFAULT 1
    );
    ALTER TABLE nodes ADD CONSTRAINT nodes_chassis_known FOREIGN KEY (chassis_uuid) REFERENCES chassis (uuid);
    CREATE INDEX nodes_chassis_uuid ON nodes (chassis_uuid) WHERE chassis_uuid IS NOT NULL;

    CREATE TABLE portgroups (
      id bigserial CONSTRAINT portgroups_pkey PRIMARY KEY,
      uuid text COLLATE "C" NOT NULL CONSTRAINT portgroups_uuid_unique UNIQUE,
      node_uuid text COLLATE "C" NOT NULL CONSTRAINT portgroups_node_known REFERENCES nodes (uuid) ON DELETE CASCADE,
      name text COLLATE "C" CONSTRAINT portgroups_name_unique UNIQUE,
      address text COLLATE "C" CONSTRAINT portgroups_address_unique UNIQUE,
      extra json NOT NULL DEFAULT '{}',
      internal_info json NOT NULL DEFAULT '{}',
      standalone_ports_supported boolean NOT NULL DEFAULT true,
      mode text COLLATE "C",
      properties json NOT NULL DEFAULT '{}',
      physical_network text COLLATE "C",
      category text COLLATE "C",
      dynamic_portgroup boolean NOT NULL DEFAULT false,
      created_at timestamptz NOT NULL,
      updated_at timestamptz,
      revision bigint NOT NULL DEFAULT 1
    );
    CREATE INDEX portgroups_node_uuid ON portgroups (node_uuid);
    ALTER TABLE ports ADD CONSTRAINT ports_portgroup_known FOREIGN KEY (portgroup_uuid) REFERENCES portgroups (uuid);

    CREATE TABLE volume_connectors (
      id bigserial CONSTRAINT volume_connectors_pkey PRIMARY KEY,
      uuid text COLLATE "C" NOT NULL CONSTRAINT volume_connectors_uuid_unique UNIQUE,
      node_uuid text COLLATE "C" NOT NULL CONSTRAINT volume_connectors_node_known REFERENCES nodes (uuid) ON DELETE CASCADE,
      type text COLLATE "C" NOT NULL,
      connector_id text COLLATE "C" NOT NULL,
      extra json NOT NULL DEFAULT '{}',
      created_at timestamptz NOT NULL,
      updated_at timestamptz,
      revision bigint NOT NULL DEFAULT 1,
      CONSTRAINT volume_connectors_type_and_id_unique UNIQUE (type, connector_id)
    );
    CREATE INDEX volume_connectors_node_uuid ON volume_connectors (node_uuid);

    CREATE TABLE volume_targets (
      id bigserial CONSTRAINT volume_targets_pkey PRIMARY KEY,
      uuid text COLLATE "C" NOT NULL CONSTRAINT volume_targets_uuid_unique UNIQUE,
      node_uuid text COLLATE "C" NOT NULL CONSTRAINT volume_targets_node_known REFERENCES nodes (uuid) ON DELETE CASCADE,
      volume_type text COLLATE "C" NOT NULL,
      volume_id text COLLATE "C" NOT NULL,
      boot_index integer NOT NULL,
      properties json NOT NULL DEFAULT '{}',
      extra json NOT NULL DEFAULT '{}',
      created_at timestamptz NOT NULL,
      updated_at timestamptz,
      revision bigint NOT NULL DEFAULT 1,
      CONSTRAINT volume_targets_boot_index_unique UNIQUE (node_uuid, boot_index)
    );

    CREATE TABLE allocations (
      id bigserial CONSTRAINT allocations_pkey PRIMARY KEY,
      uuid text COLLATE "C" NOT NULL CONSTRAINT allocations_uuid_unique UNIQUE,
      name text COLLATE "C" CONSTRAINT allocations_name_unique UNIQUE,
      node_uuid text COLLATE "C" CONSTRAINT allocations_node_known REFERENCES nodes (uuid) ON DELETE CASCADE,
      state text COLLATE "C" NOT NULL,
      owner text COLLATE "C",
      last_error text COLLATE "C",
      resource_class text COLLATE "C",
      traits text[] NOT NULL DEFAULT '{}',
      candidate_nodes text[] NOT NULL DEFAULT '{}',
      extra json NOT NULL DEFAULT '{}',
      created_at timestamptz NOT NULL,
      updated_at timestamptz,
      revision bigint NOT NULL DEFAULT 1
    );
    CREATE INDEX allocations_node_uuid ON allocations (node_uuid) WHERE node_uuid IS NOT NULL;
    CREATE INDEX allocations_state ON allocations (state);

    CREATE TABLE deploy_templates (
      id bigserial CONSTRAINT deploy_templates_pkey PRIMARY KEY,
      uuid text COLLATE "C" NOT NULL CONSTRAINT deploy_templates_uuid_unique UNIQUE,
      name text COLLATE "C" NOT NULL CONSTRAINT deploy_templates_name_unique UNIQUE,
      steps json NOT NULL DEFAULT '[]',
      extra json NOT NULL DEFAULT '{}',
      created_at timestamptz NOT NULL,
      updated_at timestamptz,
      revision bigint NOT NULL DEFAULT 1
    );

    CREATE TABLE runbooks (
      id bigserial CONSTRAINT runbooks_pkey PRIMARY KEY,
      uuid text COLLATE "C" NOT NULL CONSTRAINT runbooks_uuid_unique UNIQUE,
      name text COLLATE "C" NOT NULL CONSTRAINT runbooks_name_unique UNIQUE,
      description text COLLATE "C",
      steps json NOT NULL DEFAULT '[]',
      disable_ramdisk boolean NOT NULL DEFAULT false,
      public boolean NOT NULL DEFAULT false,
      owner text COLLATE "C",
      traits text[] NOT NULL DEFAULT '{}',
      extra json NOT NULL DEFAULT '{}',
      created_at timestamptz NOT NULL,
      updated_at timestamptz,
      revision bigint NOT NULL DEFAULT 1
    );

    CREATE TABLE inspection_rules (
      id bigserial CONSTRAINT inspection_rules_pkey PRIMARY KEY,
      uuid text COLLATE "C" NOT NULL CONSTRAINT inspection_rules_uuid_unique UNIQUE,
      description text COLLATE "C",
      priority integer NOT NULL DEFAULT 0,
      phase text COLLATE "C",
      sensitive boolean NOT NULL DEFAULT false,
      conditions json NOT NULL DEFAULT '[]',
      actions json NOT NULL DEFAULT '[]',
      created_at timestamptz NOT NULL,
      updated_at timestamptz,
      revision bigint NOT NULL DEFAULT 1
    );

    CREATE TABLE node_history (
      id bigserial CONSTRAINT node_history_pkey PRIMARY KEY,
      uuid text COLLATE "C" NOT NULL CONSTRAINT node_history_uuid_unique UNIQUE,
      node_uuid text COLLATE "C" NOT NULL CONSTRAINT node_history_node_known REFERENCES nodes (uuid) ON DELETE CASCADE,
      conductor text COLLATE "C",
      event_type text COLLATE "C",
      severity text COLLATE "C",
      event text COLLATE "C",
      "user" text COLLATE "C",
      project text COLLATE "C",
      state text COLLATE "C",
      target_provision_state text COLLATE "C",
      duration_seconds integer,
      created_at timestamptz NOT NULL,
      updated_at timestamptz,
      revision bigint NOT NULL DEFAULT 1
    );
    CREATE INDEX node_history_node_uuid ON node_history (node_uuid, id);

    CREATE TABLE bios_settings (
      node_uuid text COLLATE "C" NOT NULL CONSTRAINT bios_settings_node_known REFERENCES nodes (uuid) ON DELETE CASCADE,
      name text COLLATE "C" NOT NULL,
      value text COLLATE "C",
      attribute_type text COLLATE "C",
      allowable_values json,
      lower_bound bigint,
      upper_bound bigint,
      min_length bigint,
      max_length bigint,
      read_only boolean,
      reset_required boolean,
      "unique" boolean,
      created_at timestamptz NOT NULL,
      updated_at timestamptz,
      CONSTRAINT bios_settings_pkey PRIMARY KEY (node_uuid, name)
    );

    CREATE TABLE firmware_components (
      id bigserial CONSTRAINT firmware_components_pkey PRIMARY KEY,
      node_uuid text COLLATE "C" NOT NULL CONSTRAINT firmware_components_node_known REFERENCES nodes (uuid) ON DELETE CASCADE,
      component text COLLATE "C" NOT NULL,
      initial_version text COLLATE "C" NOT NULL,
      current_version text COLLATE "C",
      last_version_flashed text COLLATE "C",
      vendor text COLLATE "C",
      model text COLLATE "C",
      serial_number text COLLATE "C",
      created_at timestamptz NOT NULL,
      updated_at timestamptz,
      CONSTRAINT firmware_components_unique UNIQUE (node_uuid, component)
    );
  `);
}
