/** Tables of API resources. They differ only in their columns and their faults. */
import type { Knex } from 'knex';
import type { Clock } from '../../model/clock';
import { timestamp } from '../../model/clock';
import { Fault, type FaultName } from '../../model/errors';
import type { ChangesOf, NewOf, ResourceRecord } from '../../model/records';
import { resourceIn, run } from '../sql/faults';
import { createNames, insertOf, preparedOn } from '../sql/prepared';
import { createTotalCheck, DEFAULT_SIZES, rowSize, type Sizes } from '../sql/sizes';
import { findable, identColumn } from './node-lookups';
import { applyNodeScope, applyPaging, applyProject, applyWhere, isOfProject, SHARED_COLUMNS, toRow } from '../sql/rows';
import type { Columns, NodeScope, Paging } from '../sql/rows';

export interface TableFilter<RecordType> extends Paging {
  /** Exact matches on columns. Null: the column is null; a list: any of its values. */
  readonly where?: Readonly<Partial<Record<keyof RecordType, string | number | boolean | null | readonly string[]>>> | undefined;
  readonly nodeScope?: NodeScope | undefined;
  /** Only the records that this project owns, and public ones. For tables with the columns `owner` and `public`. */
  readonly ownedOrPublic?: string | undefined;
  /** Only the records that this project owns or leases. For tables with the columns `owner` and `lessee`. */
  readonly ofProject?: string | undefined;
  /** Only the records whose list in a column has the text. */
  readonly listing?: { readonly column: string; readonly text: string } | undefined;
}
export interface RowSize {
  readonly uuid: string;
  /** Bytes of its texts and JSON. */
  readonly bytes: number;
  /** For tables with this column. */
  readonly owner?: string | null;
}
/** The methods of every resource's table. `Required`: the columns that a new record must have. */
export interface Table<RecordType extends ResourceRecord, Required extends keyof RecordType = never> {
  /** Throws the faults of the table's constraints. */
  create(record: NewOf<RecordType, Required>): Promise<RecordType>;
  /** By UUID, or by name if the table has names. Throws the table's "not found". */
  find(ident: string): Promise<RecordType>;
  list(filter: TableFilter<RecordType>): Promise<readonly RecordType[]>;
  /** As `list`, but only the UUIDs and the sizes of the rows: for lists that are read in slices. */
  sizes(filter: TableFilter<RecordType>): Promise<readonly RowSize[]>;
  /** The records with these UUIDs, in their order. Those that were removed meanwhile are missing. */
  byUuids(uuids: readonly string[]): Promise<readonly RecordType[]>;
  /** Raises the revision and sets updated_at. `only`: a row that does not match counts as not found. */
  update(uuid: string, changes: ChangesOf<RecordType>, only?: TableFilter<RecordType>['where']): Promise<RecordType>;
  remove(uuid: string, only?: TableFilter<RecordType>['where']): Promise<void>;
}

interface Definition<RecordType> {
  readonly table: string;
  readonly columns: Omit<Columns<RecordType>, keyof ResourceRecord>;
  /** Ironic's fault for an unknown record, and the detail of its message that holds the identifier. Absent: RecordNotFound. */
  readonly notFound?: readonly [FaultName, string];
}

/** Addresses are stored in lower case. */
const lowered = <T extends object>(record: T): T =>
  'address' in record && typeof record.address === 'string' ? { ...record, address: record.address.toLowerCase() } : record;

/** Returns the factory of a resource's table. Its parameter `db` is the pool or a transaction. */
export const resourceTable =
  <RecordType extends ResourceRecord, Required extends keyof RecordType = never>(definition: Definition<RecordType>) =>
  (db: Knex, clock: Clock, sizes: Sizes = DEFAULT_SIZES): Table<RecordType, Required> =>
    tableOn(db, clock, sizes, definition);

/** The node of a filter for all records of one node, which flows and drivers read. */
function onlyNodeOf({ where = {}, ...more }: TableFilter<ResourceRecord & { readonly node_uuid: string | null }>): string | undefined {
  const { node_uuid: node, ...others } = where;
  const isOnly = [...Object.values(others), ...Object.values(more)].every((value) => value === undefined);
  return isOnly && typeof node === 'string' ? node : undefined;
}

const nameOfInsert = createNames();
function tableOn<RecordType extends ResourceRecord, Required extends keyof RecordType>(
  db: Knex,
  clock: Clock,
  sizes: Sizes,
  { table, columns: own, notFound }: Definition<RecordType>,
): Table<RecordType, Required> {
  const columns: Readonly<Record<string, Columns<ResourceRecord>[keyof ResourceRecord]>> = { ...SHARED_COLUMNS, ...own };
  const missing = (ident: string): Fault =>
    notFound ? new Fault(notFound[0], { [notFound[1]]: ident }) : new Fault('RecordNotFound', { resource: resourceIn(table), ident });
  const rows = () => db<Record<string, unknown>>(table);
  const byUuid = (uuid: string, only?: TableFilter<RecordType>['where']) => {
    const query = rows().where({ uuid: findable(uuid) ? uuid : '' });
    if (only) applyWhere(query, columns, only);
    return query;
  };
  const all = `"${Object.keys(columns).join('", "')}"`;
  const prepared = preparedOn(db);
  const checkWhole = createTotalCheck(table, columns, sizes, prepared);
  const find = async (ident: string, column = 'name' in columns ? identColumn(ident) : 'uuid'): Promise<RecordType> => {
    const text = `SELECT ${all} FROM ${table} WHERE ${column} = $1`;
    const [record] = findable(ident) ? await prepared<RecordType>(`${table}_${column}`, text, [ident]) : [];
    if (!record) throw missing(ident);
    return record;
  };
  /** A record that the list may not show counts as unknown. Otherwise the list's position would reveal the record's values. */
  async function markerOf({ marker: uuid, where, nodeScope, ownedOrPublic: project, ofProject }: TableFilter<RecordType>) {
    if (uuid === undefined) return undefined;
    const marker = (await find(uuid, 'uuid')) as Readonly<Record<string, unknown>>;
    const owner = (where as { readonly owner?: unknown } | undefined)?.owner ?? undefined;
    const isShown =
      (owner === undefined || marker['owner'] === owner) &&
      (project === undefined || marker['owner'] === project || marker['public'] === true) &&
      (ofProject === undefined || marker['owner'] === ofProject || marker['lessee'] === ofProject) &&
      (await isOfProject(db, String(marker['node_uuid']), nodeScope?.project));
    if (!isShown) throw missing(uuid);
    return marker;
  }
  /** The query of a list, without columns. */
  function selection(filter: TableFilter<RecordType>, marker: Readonly<Record<string, unknown>> | undefined): Knex.QueryBuilder {
    const query = db(table);
    if (filter.where) applyWhere(query, columns, lowered(filter.where));
    if (filter.nodeScope) applyNodeScope(query, db, filter.nodeScope);
    const owner = filter.ownedOrPublic;
    if (owner !== undefined) void query.where((either) => void either.where('owner', owner).orWhere('public', true));
    if (filter.ofProject !== undefined) applyProject(query, filter.ofProject);
    if (filter.listing) void query.whereRaw('?? @> ARRAY[?]::text[]', [filter.listing.column, filter.listing.text]);
    applyPaging(query, columns, filter, marker);
    return query;
  }
  return {
    find: (ident) => find(ident),

    async create(record) {
      const row = { ...toRow(columns, lowered(record), sizes).values, created_at: timestamp(clock.now()) };
      const text = insertOf(table, Object.keys(row), all);
      const [made] = await prepared<RecordType>(nameOfInsert(text), text, Object.values(row), record);
      return made!;
    },

    async list(filter) {
      const node = onlyNodeOf(filter);
      if (node !== undefined)
        return prepared<RecordType>(`${table}_of_node`, `SELECT ${all} FROM ${table} WHERE node_uuid = $1 ORDER BY id`, [node]);
      return run(selection(filter, await markerOf(filter)).select('*') as unknown as PromiseLike<RecordType[]>);
    },

    async sizes(filter) {
      const query = selection(filter, await markerOf(filter))
        .select('uuid', ...('owner' in columns ? ['owner'] : []))
        .select(db.raw(`(${rowSize(columns)})::bigint AS bytes`));
      return run(query as unknown as PromiseLike<RowSize[]>);
    },

    async byUuids(uuids) {
      const found = await run(rows().whereRaw('uuid = ANY(?)', [[...uuids]]) as unknown as PromiseLike<RecordType[]>);
      const known = new Map(found.map((record) => [record.uuid, record]));
      return uuids.flatMap((uuid) => known.get(uuid) ?? []);
    },

    async update(uuid, changes, only) {
      const made = toRow(columns, lowered(changes), sizes);
      await checkWhole(uuid, made);
      const row = { ...made.values, revision: db.raw('revision + 1'), updated_at: timestamp(clock.now()) };
      const [record] = await run(byUuid(uuid, only).update(row, '*') as unknown as PromiseLike<RecordType[]>, { ...changes, uuid });
      if (!record) throw missing(uuid);
      return record;
    },

    async remove(uuid, only) {
      if ((await run(byUuid(uuid, only).delete(), { uuid })) === 0) throw missing(uuid);
    },
  };
}
