import type { Knex } from 'knex';

/**
 * The tables of the first release.
 *
 * - Text is compared byte by byte (`COLLATE "C"`), so that every database sorts equally.
 * - Objects of clients are `json`, which preserves the order of keys and accepts all characters. Only the object that is updated key by
 *   key is `jsonb`.
 * - Constraints have names, which store/sql/faults.ts maps to faults.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE nodes (
      id bigserial CONSTRAINT nodes_pkey PRIMARY KEY,
      uuid text COLLATE "C" NOT NULL CONSTRAINT nodes_uuid_unique UNIQUE,
      name text COLLATE "C" CONSTRAINT nodes_name_unique UNIQUE,
      driver text COLLATE "C" NOT NULL,
      driver_info json NOT NULL DEFAULT '{}',
      driver_internal_info jsonb NOT NULL DEFAULT '{}',
      properties json NOT NULL DEFAULT '{}',
      instance_info json NOT NULL DEFAULT '{}',
      instance_uuid text COLLATE "C" CONSTRAINT nodes_instance_uuid_unique UNIQUE,
      instance_name text COLLATE "C",
      extra json NOT NULL DEFAULT '{}',
      chassis_uuid text COLLATE "C",
      resource_class text COLLATE "C",
      conductor_group text COLLATE "C" NOT NULL DEFAULT '',
      automated_clean boolean,
      protected boolean NOT NULL DEFAULT false,
      protected_reason text COLLATE "C",
      retired boolean NOT NULL DEFAULT false,
      retired_reason text COLLATE "C",
      owner text COLLATE "C",
      lessee text COLLATE "C",
      description text COLLATE "C",
      shard text COLLATE "C",
      parent_node text COLLATE "C",
      disable_power_off boolean NOT NULL DEFAULT false,
      network_data json NOT NULL DEFAULT '{}',
      maintenance boolean NOT NULL DEFAULT false,
      maintenance_reason text COLLATE "C",
      fault text COLLATE "C",
      power_state text COLLATE "C",
      target_power_state text COLLATE "C",
      provision_state text COLLATE "C" NOT NULL DEFAULT 'enroll',
      target_provision_state text COLLATE "C",
      provision_updated_at timestamptz,
      last_error text COLLATE "C",
      reservation text COLLATE "C",
      console_enabled boolean NOT NULL DEFAULT false,
      clean_step json NOT NULL DEFAULT '{}',
      deploy_step json NOT NULL DEFAULT '{}',
      service_step json NOT NULL DEFAULT '{}',
      raid_config json NOT NULL DEFAULT '{}',
      target_raid_config json NOT NULL DEFAULT '{}',
      inspection_started_at timestamptz,
      inspection_finished_at timestamptz,
      boot_mode text COLLATE "C",
      secure_boot boolean,
      health text COLLATE "C",
      traits text[] NOT NULL DEFAULT '{}',
      allocation_uuid text COLLATE "C",
      bios_interface text COLLATE "C",
      boot_interface text COLLATE "C",
      console_interface text COLLATE "C",
      deploy_interface text COLLATE "C",
      firmware_interface text COLLATE "C",
      inspect_interface text COLLATE "C",
      management_interface text COLLATE "C",
      network_interface text COLLATE "C",
      power_interface text COLLATE "C",
      raid_interface text COLLATE "C",
      rescue_interface text COLLATE "C",
      storage_interface text COLLATE "C",
      vendor_interface text COLLATE "C",
      created_at timestamptz NOT NULL,
      updated_at timestamptz,
      revision bigint NOT NULL DEFAULT 1,
      lock_fence bigint NOT NULL DEFAULT 0
    );
    CREATE INDEX nodes_provision_state ON nodes (provision_state, id);
    CREATE INDEX nodes_reservation ON nodes (reservation) WHERE reservation IS NOT NULL;
    CREATE INDEX nodes_owner ON nodes (owner) WHERE owner IS NOT NULL;
    CREATE INDEX nodes_lessee ON nodes (lessee) WHERE lessee IS NOT NULL;
    CREATE INDEX nodes_shard ON nodes (shard) WHERE shard IS NOT NULL;
    CREATE INDEX nodes_parent_node ON nodes (parent_node) WHERE parent_node IS NOT NULL;
    CREATE INDEX nodes_resource_class ON nodes (resource_class);
    CREATE INDEX nodes_conductor_group ON nodes (conductor_group);

    CREATE TABLE ports (
      id bigserial CONSTRAINT ports_pkey PRIMARY KEY,
      uuid text COLLATE "C" NOT NULL CONSTRAINT ports_uuid_unique UNIQUE,
      node_uuid text COLLATE "C" NOT NULL CONSTRAINT ports_node_known REFERENCES nodes (uuid) ON DELETE CASCADE,
      address text COLLATE "C" NOT NULL CONSTRAINT ports_address_unique UNIQUE,
      name text COLLATE "C" CONSTRAINT ports_name_unique UNIQUE,
      extra json NOT NULL DEFAULT '{}',
      internal_info json NOT NULL DEFAULT '{}',
      pxe_enabled boolean NOT NULL DEFAULT true,
      local_link_connection json NOT NULL DEFAULT '{}',
      portgroup_uuid text COLLATE "C",
      physical_network text COLLATE "C",
      is_smartnic boolean NOT NULL DEFAULT false,
      description text COLLATE "C",
      vendor text COLLATE "C",
      category text COLLATE "C",
      available_for_dynamic_portgroup boolean NOT NULL DEFAULT true,
      created_at timestamptz NOT NULL,
      updated_at timestamptz,
      revision bigint NOT NULL DEFAULT 1
    );
    CREATE INDEX ports_node_uuid ON ports (node_uuid);
    CREATE INDEX ports_portgroup_uuid ON ports (portgroup_uuid) WHERE portgroup_uuid IS NOT NULL;

    CREATE TABLE boots (
      node_uuid text COLLATE "C" CONSTRAINT boots_pkey PRIMARY KEY CONSTRAINT boots_node_known REFERENCES nodes (uuid) ON DELETE CASCADE,
      macs text[] NOT NULL,
      method text COLLATE "C" NOT NULL,
      purpose text COLLATE "C" NOT NULL,
      kernel_args text COLLATE "C" NOT NULL,
      files json NOT NULL,
      updated_at timestamptz NOT NULL
    );
    CREATE INDEX boots_macs ON boots USING gin (macs);

    CREATE TABLE inventories (
      node_uuid text COLLATE "C" CONSTRAINT inventories_pkey PRIMARY KEY
        CONSTRAINT inventories_node_known REFERENCES nodes (uuid) ON DELETE CASCADE,
      inventory json NOT NULL,
      plugin_data json NOT NULL,
      created_at timestamptz NOT NULL
    );

    CREATE TABLE conductors (
      id bigserial CONSTRAINT conductors_pkey PRIMARY KEY,
      hostname text COLLATE "C" NOT NULL CONSTRAINT conductors_hostname_unique UNIQUE,
      conductor_group text COLLATE "C" NOT NULL,
      drivers json NOT NULL,
      online boolean NOT NULL,
      created_at timestamptz NOT NULL,
      updated_at timestamptz NOT NULL
    );

    CREATE TABLE leases (
      mac text COLLATE "C" CONSTRAINT leases_pkey PRIMARY KEY,
      address text COLLATE "C" NOT NULL,
      expires_at bigint NOT NULL
    );
    CREATE INDEX leases_address ON leases (address);
  `);
}
