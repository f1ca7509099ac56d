/** A machine may have a lease in each pool, so the primary key of a lease is its address, not the MAC address. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    DELETE FROM leases one USING leases other WHERE one.address = other.address AND one.mac < other.mac;
    ALTER TABLE leases DROP CONSTRAINT leases_pkey;
    DROP INDEX leases_address;
    ALTER TABLE leases ADD CONSTRAINT leases_pkey PRIMARY KEY (address);
    CREATE INDEX leases_mac ON leases (left(mac, 17));
  `);
}
