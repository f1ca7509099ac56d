/** The tables `bios_settings` and `firmware_components`: one row for each name that a node's BMC reports. */
import type { Knex } from 'knex';
import type { Clock } from '../../model/clock';
import { timestamp } from '../../model/clock';
import type { BiosSettingRecord, FirmwareComponentRecord } from '../../model/records';
import { storableJson } from '../../model/text';
import { run } from '../sql/faults';

interface BiosSettings {
  /** Sorted by name. */
  ofNode(nodeUuid: string): Promise<readonly BiosSettingRecord[]>;
  /** Inserts new settings and updates existing ones. */
  put(nodeUuid: string, settings: readonly (Partial<BiosSettingRecord> & { readonly name: string })[]): Promise<void>;
  remove(nodeUuid: string, names: readonly string[]): Promise<void>;
}
interface FirmwareComponents {
  ofNode(nodeUuid: string): Promise<readonly FirmwareComponentRecord[]>;
  /** Inserts new components and updates existing ones. */
  put(
    nodeUuid: string,
    components: readonly (Partial<FirmwareComponentRecord> & Pick<FirmwareComponentRecord, 'component' | 'initial_version'>)[],
  ): Promise<void>;
}

const STAMPS = ['created_at', 'updated_at'] as const;
const SETTING = [
  'name',
  'value',
  'attribute_type',
  'allowable_values',
  'lower_bound',
  'upper_bound',
  'min_length',
  'max_length',
  'read_only',
  'reset_required',
  'unique',
  ...STAMPS,
] as const;
const COMPONENT = [
  'component',
  'initial_version',
  'current_version',
  'last_version_flashed',
  'vendor',
  'model',
  'serial_number',
  ...STAMPS,
] as const;

/** Inserts rows, or updates those with the same node and name. All given rows must have the same columns. */
async function put(db: Knex, clock: Clock, table: string, key: string, nodeUuid: string, records: readonly object[]): Promise<void> {
  if (records.length === 0) return;
  const now = timestamp(clock.now());
  const rows = records.map((record) => ({ ...record, node_uuid: nodeUuid, created_at: now }));
  const changed = [...new Set(records.flatMap((record) => Object.keys(record)))].filter((name) => name !== key);
  const updates = { ...Object.fromEntries(changed.map((name) => [name, db.raw('excluded.??', [name])])), updated_at: now };
  await run(db(table).insert(rows).onConflict(['node_uuid', key]).merge(updates), { node_uuid: nodeUuid });
}

export function biosSettingsOn(db: Knex, clock: Clock): BiosSettings {
  const ofNode = (nodeUuid: string) => db<BiosSettingRecord & { node_uuid: string }>('bios_settings').where('node_uuid', nodeUuid);
  return {
    ofNode: (nodeUuid) =>
      run(
        ofNode(nodeUuid)
          .select(...SETTING)
          .orderBy('name'),
      ),
    put: (nodeUuid, settings) =>
      put(
        db,
        clock,
        'bios_settings',
        'name',
        nodeUuid,
        settings.map((setting) =>
          'allowable_values' in setting ? { ...setting, allowable_values: storableJson(setting.allowable_values) } : setting,
        ),
      ),
    async remove(nodeUuid, names) {
      await run(
        ofNode(nodeUuid)
          .whereRaw('name = ANY(?)', [[...names]])
          .delete(),
      );
    },
  };
}

export function firmwareComponentsOn(db: Knex, clock: Clock): FirmwareComponents {
  return {
    ofNode: (nodeUuid) =>
      run(
        db<FirmwareComponentRecord & { id: number; node_uuid: string }>('firmware_components')
          .where('node_uuid', nodeUuid)
          .select(...COMPONENT)
          .orderBy('id'),
      ),
    put: (nodeUuid, components) => put(db, clock, 'firmware_components', 'component', nodeUuid, components),
  };
}
