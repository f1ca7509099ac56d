/** The table `discovered_addresses`: machines that were enrolled because nobody knew them, and what the PXE filter goes by. */
import type { Knex } from 'knex';
import { run } from '../sql/faults';
import type { Discoveries, AddressStatus } from '../store';

const STANDING = `SELECT asked.mac,
    CASE WHEN nodes.provision_state IN ('inspecting', 'inspect wait') THEN nodes.inspect_interface END AS "inspectedBy",
    EXISTS (SELECT FROM introspections WHERE introspections.node_uuid = nodes.uuid AND finished_at IS NULL AND state IN ('starting', 'waiting'))
      AS "introspected"
  FROM unnest(?::text[]) AS asked (mac)
  LEFT JOIN ports ON ports.address = asked.mac
  LEFT JOIN discovered_addresses AS discovered ON discovered.address = asked.mac
  JOIN nodes ON nodes.uuid = coalesce(ports.node_uuid, discovered.node_uuid)`;
/** In order, so that two with addresses in common wait for each other instead of both failing. */
const CLAIM = `INSERT INTO discovered_addresses (address, node_uuid)
  SELECT DISTINCT address, ? FROM unnest(?::text[]) AS address ORDER BY address ON CONFLICT DO NOTHING RETURNING address`;

export function discoveriesOn(db: Knex): Discoveries {
  return {
    addressStatuses: async (macs) => {
      const { rows } = await run(db.raw<{ rows: AddressStatus[] }>(STANDING, [macs.map((mac) => mac.toLowerCase())]));
      return rows;
    },
    owners: (addresses) =>
      run(
        db<{ readonly node_uuid: string; readonly finished: boolean }>('discovered_addresses')
          .distinct('node_uuid', 'finished')
          .whereRaw('address = ANY(?)', [[...addresses]]),
      ),
    claim: async (nodeUuid, addresses) => {
      const { rows } = await run(db.raw<{ rows: unknown[] }>(CLAIM, [nodeUuid, [...addresses]]));
      return rows.length === new Set(addresses).size;
    },
    isFinished: async (nodeUuid) => {
      const rows = await run(db('discovered_addresses').where({ node_uuid: nodeUuid, finished: true }).limit(1).select('address'));
      return rows.length > 0;
    },
    finish: async (nodeUuid) => {
      await run(db('discovered_addresses').where({ node_uuid: nodeUuid }).update({ finished: true }));
    },
  };
}
