/** The table `leases`: the leases of the DHCP server's address pool. */
import type { Knex } from 'knex';
import type { LeaseRecord } from '../../model/records';
import { run } from '../sql/faults';

export interface Leases {
  /** All leases, including expired ones: the DHCP server reuses their addresses last. */
  list(): Promise<readonly LeaseRecord[]>;
  put(lease: LeaseRecord): Promise<void>;
  remove(mac: string): Promise<void>;
}

export function leasesOn(db: Knex): Leases {
  return {
    list: () => run(db<LeaseRecord>('leases').select('*').orderBy('mac')),
    async put({ mac, address, expires_at }) {
      // The same statement removes the previous lease of the address, so that a reader sees the address exactly once.
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
