/** The table `leases`: addresses that the DHCP server gave from its pool. */
import type { Knex } from 'knex';
import type { LeaseRecord } from '../../model/records';
import { run } from '../sql/faults';
import type { Leases } from '../store';

export function leasesOn(db: Knex): Leases {
  return {
    list: () => run(db<LeaseRecord>('leases').select('*').orderBy('mac')),
    async put({ mac, address, expires_at }) {
      // Whoever had the address before has it no longer; in the same statement, so that no reader sees it twice or not at all.
      await run(
        db.raw(
          `WITH before AS (DELETE FROM leases WHERE address = :address AND mac <> :mac)
           INSERT INTO leases (mac, address, expires_at) VALUES (:mac, :address, :expires_at)
           ON CONFLICT (mac) DO UPDATE SET address = excluded.address, expires_at = excluded.expires_at`,
          { mac: mac.toLowerCase(), address, expires_at },
        ),
      );
    },
    async remove(mac) {
      await run(db('leases').where('mac', mac.toLowerCase()).delete());
    },
  };
}
