/** The registry of tables: each row is a member of `Store` and the function that creates it on the pool or on a transaction. */
import * as fields from '../../model/fields';
import type {
  AllocationRecord,
  ChassisRecord,
  DeployTemplateRecord,
  ImageRecord,
  InspectionRuleRecord,
  PortgroupRecord,
  RunbookRecord,
  SnapshotRecord,
  VolumeConnectorRecord,
  VolumeTargetRecord,
} from '../../model/records';
import { apiTokensOn } from './api-tokens';
import { bmcWatchesOn } from './bmc-watches';
import { bootsOn } from './boots';
import { conductorsOn } from './conductors';
import { defaultConfigsOn } from './default-configs';
import { discoveriesOn } from './inspection/discoveries';
import { erasuresOn } from './erasures';
import { eventsOn } from './events';
import { hardwareOn } from './hardware';
import { biosSettingsOn, firmwareComponentsOn } from './hardware-facts';
import { healthAlertsOn } from './health-alerts';
import { historyOn } from './history';
import { introspectionRulesOn } from './inspection/introspection-rules';
import { introspectionsOn } from './inspection/introspections';
import { inventoriesOn } from './inspection/inventories';
import { leasesOn } from './leases';
import { mediaOn } from './media';
import { nodesOn } from './nodes';
import { portsOn } from './ports';
import { residentAgentsOn } from './resident-agents';
import { resourceTable } from './resources';
import { secretsOn } from './secrets';
import { stateCountsOn } from './state-counts';

export const TABLES = {
  nodes: nodesOn,
  ports: portsOn,
  chassis: resourceTable<ChassisRecord>({
    table: 'chassis',
    columns: fields.CHASSIS_FIELDS,
    notFound: ['ChassisNotFound', 'chassis'],
  }),
  portgroups: resourceTable<PortgroupRecord, 'node_uuid'>({
    table: 'portgroups',
    columns: fields.PORTGROUP_FIELDS,
    notFound: ['PortgroupNotFound', 'portgroup'],
  }),
  volumeConnectors: resourceTable<VolumeConnectorRecord, 'node_uuid' | 'type' | 'connector_id'>({
    table: 'volume_connectors',
    columns: fields.VOLUME_CONNECTOR_FIELDS,
    notFound: ['VolumeConnectorNotFound', 'connector'],
  }),
  volumeTargets: resourceTable<VolumeTargetRecord, 'node_uuid' | 'volume_type' | 'volume_id' | 'boot_index'>({
    table: 'volume_targets',
    columns: fields.VOLUME_TARGET_FIELDS,
    notFound: ['VolumeTargetNotFound', 'target'],
  }),
  allocations: resourceTable<AllocationRecord, 'state'>({
    table: 'allocations',
    columns: fields.ALLOCATION_FIELDS,
    notFound: ['AllocationNotFound', 'allocation'],
  }),
  deployTemplates: resourceTable<DeployTemplateRecord, 'name'>({
    table: 'deploy_templates',
    columns: fields.DEPLOY_TEMPLATE_FIELDS,
    notFound: ['DeployTemplateNotFound', 'template'],
  }),
  runbooks: resourceTable<RunbookRecord, 'name'>({
    table: 'runbooks',
    columns: fields.RUNBOOK_FIELDS,
    notFound: ['RunbookNotFound', 'runbook'],
  }),
  images: resourceTable<ImageRecord, 'name' | 'image_source'>({
    table: 'images',
    columns: fields.IMAGE_FIELDS,
  }),
  defaultConfigs: defaultConfigsOn,
  snapshots: resourceTable<SnapshotRecord, 'node_uuid' | 'state'>({
    table: 'snapshots',
    columns: fields.SNAPSHOT_FIELDS,
  }),
  erasures: erasuresOn,
  inspectionRules: resourceTable<InspectionRuleRecord>({
    table: 'inspection_rules',
    columns: fields.INSPECTION_RULE_FIELDS,
    notFound: ['InspectionRuleNotFound', 'rule'],
  }),
  introspections: introspectionsOn,
  introspectionRules: introspectionRulesOn,
  history: historyOn,
  biosSettings: biosSettingsOn,
  firmwareComponents: firmwareComponentsOn,
  inventories: inventoriesOn,
  hardware: hardwareOn,
  healthAlerts: healthAlertsOn,
  bmcWatches: bmcWatchesOn,
  residentAgents: residentAgentsOn,
  discoveries: discoveriesOn,
  boots: bootsOn,
  media: mediaOn,
  leases: leasesOn,
  conductors: conductorsOn,
  secrets: secretsOn,
  apiTokens: apiTokensOn,
  events: eventsOn,
  stateCounts: stateCountsOn,
} as const;

export type Tables = { readonly [Name in keyof typeof TABLES]: ReturnType<(typeof TABLES)[Name]> };
