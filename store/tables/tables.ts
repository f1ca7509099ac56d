/** The tables of the resources beside nodes and ports: what differs between them is their columns and their faults. */
import type { Knex } from 'knex';
import type { Clock } from '../../model/clock';
import { timestamp } from '../../model/clock';
import { Fault, type FaultName } from '../../model/errors';
import { CHASSIS_FIELDS, PORTGROUP_FIELDS, VOLUME_CONNECTOR_FIELDS, VOLUME_TARGET_FIELDS } from '../../model/fields';
import type {
  AllocationRecord,
  ChassisRecord,
  DeployTemplateRecord,
  HistoryRecord,
  InspectionRuleRecord,
  IntrospectionRuleRecord,
  PortgroupRecord,
  ResourceRecord,
  RunbookRecord,
  VolumeConnectorRecord,
  VolumeTargetRecord,
} from '../../model/records';
import { run } from '../sql/faults';
import { findable, identColumn } from './nodes';
import { applyNodeScope, applyPaging, applyWhere, SHARED_COLUMNS, toRow } from '../sql/rows';
import type { Columns } from '../sql/rows';
import type { Store, Table, TableFilter } from '../store';

interface Definition<RecordType> {
  readonly table: string;
  readonly columns: Omit<Columns<RecordType>, keyof ResourceRecord>;
  /** The fault when there is none, and the detail that names what was asked for. */
  readonly notFound: readonly [FaultName, string];
}

/** Addresses are kept in lower case. */
const lowered = <T extends object>(record: T): T =>
  'address' in record && typeof record.address === 'string' ? { ...record, address: record.address.toLowerCase() } : record;

function tableOn<RecordType extends ResourceRecord, Needed extends keyof RecordType>(
  db: Knex,
  clock: Clock,
  { table, columns: own, notFound }: Definition<RecordType>,
): Table<RecordType, Needed> {
  const columns: Readonly<Record<string, Columns<ResourceRecord>[keyof ResourceRecord]>> = { ...SHARED_COLUMNS, ...own };
  const [fault, detail] = notFound;
  const missing = (ident: string): Fault => new Fault(fault, { [detail]: ident });
  const rows = () => db<Record<string, unknown>>(table);
  const byUuid = (uuid: string, only?: TableFilter<RecordType>['where']) => {
    const query = rows().where({ uuid: findable(uuid) ? uuid : '' });
    if (only) applyWhere(query, columns, only);
    return query;
  };
  const find = async (ident: string, column = 'name' in columns ? identColumn(ident) : 'uuid'): Promise<RecordType> => {
    const [record] = findable(ident) ? await run(rows().where(column, ident) as unknown as PromiseLike<RecordType[]>) : [];
    if (!record) throw missing(ident);
    return record;
  };
  return {
    find: (ident) => find(ident),

    async create(record) {
      const row = { ...toRow(columns, lowered(record)), created_at: timestamp(clock.now()) };
      const [made] = await run(rows().insert(row, '*') as unknown as PromiseLike<RecordType[]>, record);
      return made!;
    },

    async list(filter) {
      const marker = filter.marker === undefined ? undefined : await find(filter.marker, 'uuid');
      const query = db(table).select('*');
      if (filter.where) applyWhere(query, columns, lowered(filter.where));
      if (filter.nodeScope) applyNodeScope(query, db, filter.nodeScope);
      applyPaging(query, columns, filter, marker as Readonly<Record<string, unknown>> | undefined);
      return run(query as unknown as PromiseLike<RecordType[]>);
    },

    async update(uuid, changes, only) {
      const row = { ...toRow(columns, lowered(changes)), revision: db.raw('revision + 1'), updated_at: timestamp(clock.now()) };
      const [record] = await run(byUuid(uuid, only).update(row, '*') as unknown as PromiseLike<RecordType[]>, { ...changes, uuid });
      if (!record) throw missing(uuid);
      return record;
    },

    async remove(uuid, only) {
      if ((await run(byUuid(uuid, only).delete(), { uuid })) === 0) throw missing(uuid);
    },
  };
}

const CHASSIS: Definition<ChassisRecord> = {
  table: 'chassis',
  columns: CHASSIS_FIELDS,
  notFound: ['ChassisNotFound', 'chassis'],
};
const PORTGROUPS: Definition<PortgroupRecord> = {
  table: 'portgroups',
  columns: PORTGROUP_FIELDS,
  notFound: ['PortgroupNotFound', 'portgroup'],
};
const VOLUME_CONNECTORS: Definition<VolumeConnectorRecord> = {
  table: 'volume_connectors',
  columns: VOLUME_CONNECTOR_FIELDS,
  notFound: ['VolumeConnectorNotFound', 'connector'],
};
const VOLUME_TARGETS: Definition<VolumeTargetRecord> = {
  table: 'volume_targets',
  columns: VOLUME_TARGET_FIELDS,
  notFound: ['VolumeTargetNotFound', 'target'],
};
const ALLOCATIONS: Definition<AllocationRecord> = {
  table: 'allocations',
  columns: {
    name: 'text',
    node_uuid: 'text',
    state: 'text',
    owner: 'text',
    last_error: 'text',
    resource_class: 'text',
    traits: 'texts',
    candidate_nodes: 'texts',
    extra: 'json',
  },
  notFound: ['AllocationNotFound', 'allocation'],
};
const DEPLOY_TEMPLATES: Definition<DeployTemplateRecord> = {
  table: 'deploy_templates',
  columns: { name: 'text', steps: 'json', extra: 'json' },
  notFound: ['DeployTemplateNotFound', 'template'],
};
const RUNBOOKS: Definition<RunbookRecord> = {
  table: 'runbooks',
  columns: {
    name: 'text',
    description: 'text',
    steps: 'json',
    disable_ramdisk: 'boolean',
    public: 'boolean',
    owner: 'text',
    traits: 'texts',
    extra: 'json',
  },
  notFound: ['RunbookNotFound', 'runbook'],
};
const INSPECTION_RULES: Definition<InspectionRuleRecord> = {
  table: 'inspection_rules',
  columns: { description: 'text', priority: 'integer', phase: 'text', sensitive: 'boolean', conditions: 'json', actions: 'json' },
  notFound: ['InspectionRuleNotFound', 'rule'],
};
const INTROSPECTION_RULES: Definition<IntrospectionRuleRecord> = {
  table: 'introspection_rules',
  columns: { description: 'text', scope: 'text', conditions: 'json', actions: 'json' },
  notFound: ['IntrospectionRuleNotFound', 'rule'],
};
const HISTORY: Definition<HistoryRecord> = {
  table: 'node_history',
  columns: {
    node_uuid: 'text',
    conductor: 'text',
    event_type: 'text',
    severity: 'text',
    event: 'text',
    user: 'text',
    project: 'text',
    state: 'text',
    target_provision_state: 'text',
    duration_seconds: 'integer',
  },
  notFound: ['NodeHistoryNotFound', 'history'],
};
/** The oldest of each node first; those that are too young do not count. */
const trimOn =
  (db: Knex): Store['history']['trim'] =>
  async ({ keep, before, atMost }) => {
    const { rowCount } = await run(
      db.raw<{ rowCount: number }>(
        `DELETE FROM node_history WHERE id IN (
           SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY node_uuid ORDER BY id DESC) AS place FROM node_history WHERE created_at < :before) AS old
            WHERE place > :keep ORDER BY id LIMIT :atMost)`,
        { keep, before, atMost },
      ),
    );
    return rowCount;
  };

type Tables = Pick<
  Store,
  | 'chassis'
  | 'portgroups'
  | 'volumeConnectors'
  | 'volumeTargets'
  | 'allocations'
  | 'deployTemplates'
  | 'runbooks'
  | 'inspectionRules'
  | 'introspectionRules'
  | 'history'
>;
/** @param db the pool, or a transaction */
export const tablesOn = (db: Knex, clock: Clock): Tables => ({
  chassis: tableOn(db, clock, CHASSIS),
  portgroups: tableOn(db, clock, PORTGROUPS),
  volumeConnectors: tableOn(db, clock, VOLUME_CONNECTORS),
  volumeTargets: tableOn(db, clock, VOLUME_TARGETS),
  allocations: tableOn(db, clock, ALLOCATIONS),
  deployTemplates: tableOn(db, clock, DEPLOY_TEMPLATES),
  runbooks: tableOn(db, clock, RUNBOOKS),
  inspectionRules: tableOn(db, clock, INSPECTION_RULES),
  introspectionRules: {
    ...tableOn(db, clock, INTROSPECTION_RULES),
    removeAll: async () => {
      await run(db(INTROSPECTION_RULES.table).delete());
    },
  },
  history: { ...tableOn(db, clock, HISTORY), trim: trimOn(db) },
});
