/** The table `discovered_addresses`: MAC addresses of automatically enrolled machines. The PXE filter reads it. */
import type { Knex } from 'knex';
import { run } from '../../sql/faults';

/** The state of the node that a MAC address belongs to. */
interface AddressStatus {
  readonly mac: string;
  /** The inspect interface of the node while it is inspected; null otherwise. */
  readonly inspectedBy: string | null;
  /** Whether an introspection of the node waits for the machine's report. */
  readonly introspected: boolean;
}
/** Machines that were enrolled automatically when they booted. */
interface Discoveries {
  /** The state of each address that belongs to a node, through a port or a discovery. One query. */
  addressStatuses(macs: readonly string[]): Promise<readonly AddressStatus[]>;
  /** The nodes that were enrolled for any of these addresses. */
  owners(addresses: readonly string[]): Promise<readonly { readonly node_uuid: string; readonly finished: boolean }[]>;
  /** Assigns the addresses to this node. False: another node has one of them. Called in the transaction that creates the node. */
  claim(nodeUuid: string, addresses: readonly string[]): Promise<boolean>;
  /** The number of nodes that were enrolled for addresses since this time, up to `limit`. */
  countSince(time: string, limit: number): Promise<number>;
  isFinished(nodeUuid: string): Promise<boolean>;
  /** Marks the machine's report as processed. Later reports of this machine are refused. */
  finish(nodeUuid: string): Promise<void>;
}

const STATUSES = `SELECT requested.mac,
    CASE WHEN nodes.provision_state IN ('inspecting', 'inspect wait') THEN nodes.inspect_interface END AS "inspectedBy",
    EXISTS (SELECT FROM introspections WHERE introspections.node_uuid = nodes.uuid AND finished_at IS NULL AND state IN ('starting', 'waiting'))
      AS "introspected"
  FROM unnest(?::text[]) AS requested (mac)
  LEFT JOIN ports ON ports.address = requested.mac
  LEFT JOIN discovered_addresses AS discovered ON discovered.address = requested.mac
  JOIN nodes ON nodes.uuid = coalesce(ports.node_uuid, discovered.node_uuid)`;
/** Sorted, so that two concurrent claims with common addresses wait for each other and do not deadlock. */
const CLAIM = `INSERT INTO discovered_addresses (address, node_uuid)
  SELECT DISTINCT address, ? FROM unnest(?::text[]) AS address ORDER BY address ON CONFLICT DO NOTHING RETURNING address`;

const RECENT = `SELECT uuid FROM nodes WHERE created_at > ? AND EXISTS (SELECT FROM discovered_addresses WHERE node_uuid = uuid) LIMIT ?`;

export function discoveriesOn(db: Knex): Discoveries {
  return {
    addressStatuses: async (macs) => {
      const { rows } = await run(db.raw<{ rows: AddressStatus[] }>(STATUSES, [macs.map((mac) => mac.toLowerCase())]));
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
    countSince: async (time, limit) => {
      const { rows } = await run(db.raw<{ rows: readonly unknown[] }>(RECENT, [time, limit]));
      return rows.length;
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
