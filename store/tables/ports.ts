/** The table `ports`: network interfaces of nodes. MAC addresses are stored in lower case. */
import type { Knex } from 'knex';
import type { Clock } from '../../model/clock';
import { timestamp } from '../../model/clock';
import { Fault } from '../../model/errors';
import { PORT_FIELDS } from '../../model/fields';
import type { NewPort, PortChanges, PortRecord } from '../../model/records';
import { asked, batched, eachOf } from '../sql/batch';
import { run } from '../sql/faults';
import { createTotalCheck, DEFAULT_SIZES, sizesByIds, type Sizes } from '../sql/sizes';
import { findable, identColumn } from './node-lookups';
import { createNames, insertOf, preparedOn } from '../sql/prepared';
import { applyNodeScope, applyPaging, applyWhere, contains, isOfProject, SHARED_COLUMNS, toRow, versionsOf } from '../sql/rows';
import type { Columns, NodeScope, Paging, RowVersion } from '../sql/rows';

interface PortFilter extends Paging, NodeScope {
  readonly ids?: readonly number[];
  readonly where?: Readonly<Partial<Record<keyof PortRecord, string | number | boolean | null | readonly string[]>>>;
  /** Part of the description. */
  readonly descriptionContains?: string;
}
interface Ports {
  /** Throws MACAlreadyExists, PortAlreadyExists. */
  create(port: NewPort): Promise<PortRecord>;
  /** Creates the ports whose addresses no port has yet, in one statement. The given ports must have no names. */
  createMissing(ports: readonly NewPort[]): Promise<void>;
  /** By UUID or name. Throws PortNotFound. */
  find(ident: string): Promise<PortRecord>;
  list(filter: PortFilter): Promise<readonly PortRecord[]>;
  versions(filter: PortFilter): Promise<readonly RowVersion[]>;
  /** Bytes of the texts and JSON of these rows, by ID. */
  sizes(ids: readonly number[]): Promise<ReadonlyMap<number, number>>;
  ofNode(nodeUuid: string): Promise<readonly PortRecord[]>;
  /** The existing ports with these addresses. One query. */
  byMacs(macs: readonly string[]): Promise<readonly PortRecord[]>;
  /** The UUIDs of the nodes that have ports with these addresses. */
  ownersOf(macs: readonly string[]): Promise<readonly string[]>;
  update(uuid: string, changes: PortChanges): Promise<PortRecord>;
  remove(uuid: string): Promise<void>;
}

/** @internal */
export const PORT_COLUMNS: Columns<PortRecord> = { ...PORT_FIELDS, ...SHARED_COLUMNS };
const nameOfInsert = createNames();
const ALL = Object.keys(PORT_COLUMNS).join(', ');
const findBy = (column: string): string => `SELECT ${ALL} FROM ports WHERE ${column} = $1`;
const OF_NODES = `${eachOf('ports', 'node_uuid', ALL)} ORDER BY found.id`;
const BY_MACS = `SELECT ${ALL} FROM ports WHERE address = ANY($1) ORDER BY id`;
const OWNERS_OF_MACS = 'SELECT node_uuid FROM ports WHERE address = ANY($1) GROUP BY node_uuid ORDER BY min(id)';
const FIND = { uuid: findBy('uuid'), name: findBy('name') };
/** A copy with the MAC address in lower case. */
const lowered = <T extends object>(record: T): T =>
  'address' in record && typeof record.address === 'string' ? { ...record, address: record.address.toLowerCase() } : record;

export function portsOn(db: Knex, clock: Clock, sizes: Sizes = DEFAULT_SIZES): Ports {
  const prepared = preparedOn(db);
  const checkWhole = createTotalCheck('ports', PORT_COLUMNS, sizes, prepared);
  const ports = () => db<PortRecord>('ports');
  const find = async (ident: string): Promise<PortRecord> => {
    const column = identColumn(ident);
    const [port] = findable(ident) ? await prepared<PortRecord>(`port_${column}`, FIND[column], [ident]) : [];
    if (!port) throw new Fault('PortNotFound', { port: ident });
    return port;
  };
  const ofNode = batched(async (nodeUuids: readonly string[]): Promise<readonly (readonly PortRecord[])[]> => {
    const found = new Map<string, PortRecord[]>(nodeUuids.map((uuid) => [uuid, []]));
    for (const port of await prepared<PortRecord>('ports_of_nodes', OF_NODES, [asked(nodeUuids)])) found.get(port.node_uuid)!.push(port);
    return nodeUuids.map((uuid) => found.get(uuid)!);
  });
  const markerOf = async ({ marker, project }: PortFilter): Promise<PortRecord | undefined> => {
    if (marker === undefined) return undefined;
    const port = await find(marker);
    if (!(await isOfProject(db, port.node_uuid, project))) throw new Fault('PortNotFound', { port: marker });
    return port;
  };
  /** The query of a list, without columns. */
  const selection = (filter: PortFilter, marker: PortRecord | undefined): Knex.QueryBuilder => {
    const query = db('ports');
    if (filter.where) applyWhere(query, PORT_COLUMNS, lowered(filter.where));
    if (filter.ids) void query.whereRaw('ports.id = ANY(?)', [[...filter.ids]]);
    if (filter.descriptionContains !== undefined) contains(query, 'description', filter.descriptionContains);
    applyNodeScope(query, db, filter);
    applyPaging(query, PORT_COLUMNS, filter, marker as unknown as Record<string, unknown> | undefined);
    return query;
  };
  return {
    find,

    async create(port) {
      const row = { ...toRow(PORT_COLUMNS, lowered(port), sizes).values, created_at: timestamp(clock.now()) };
      const text = insertOf('ports', Object.keys(row), ALL);
      const [made] = await prepared<PortRecord>(nameOfInsert(text), text, Object.values(row), port);
      return made!;
    },

    async createMissing(list) {
      if (list.length === 0) return;
      const created_at = timestamp(clock.now());
      const rows = list.map((port) => ({ ...toRow(PORT_COLUMNS, lowered(port), sizes).values, created_at }));
      await run(ports().insert(rows).onConflict('address').ignore(), list[0]);
    },

    list: async (filter) => run(selection(filter, await markerOf(filter)).select('*') as PromiseLike<PortRecord[]>),
    versions: async (filter) => versionsOf(db, prepared, selection(filter, await markerOf(filter))),

    sizes: (ids) => sizesByIds(prepared, 'ports', PORT_COLUMNS, ids),

    ofNode,

    byMacs: (macs) => prepared<PortRecord>('ports_by_macs', BY_MACS, [macs.map((mac) => mac.toLowerCase())]),

    async ownersOf(macs) {
      const found = await prepared<{ readonly node_uuid: string }>('owners_of_macs', OWNERS_OF_MACS, [
        macs.map((mac) => mac.toLowerCase()),
      ]);
      return found.map(({ node_uuid: uuid }) => uuid);
    },

    async update(uuid, changes) {
      const made = toRow(PORT_COLUMNS, lowered(changes), sizes);
      await checkWhole(uuid, made);
      const row = {
        ...made.values,
        revision: db.raw('ports.revision + 1'),
        updated_at: timestamp(clock.now()),
      };
      const query = ports()
        .where({ uuid: findable(uuid) ? uuid : '' })
        .update(row as object, '*') as unknown as PromiseLike<PortRecord[]>;
      const [port] = await run(query, { ...changes, uuid });
      if (!port) throw new Fault('PortNotFound', { port: uuid });
      return port;
    },

    async remove(uuid) {
      const gone = await run(
        ports()
          .where({ uuid: findable(uuid) ? uuid : '' })
          .delete(),
      );
      if (gone === 0) throw new Fault('PortNotFound', { port: uuid });
    },
  };
}
