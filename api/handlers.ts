/** Every handler by its operationId. A new resource is a file and a line here. */
import { biosHandlers } from './bios';
import { chassisHandlers } from './chassis';
import { allocationHandlers } from './allocations';
import { conductorHandlers } from './conductors';
import { deployTemplateHandlers } from './deploy-templates';
import { docsHandlers } from './docs';
import { driverHandlers } from './drivers';
import { firmwareHandlers } from './firmware';
import { hardwareHandlers } from './hardware';
import { indicatorHandlers } from './indicators';
import { machineStateHandlers } from './machine-states';
import { nodeHistoryHandlers } from './node-history';
import { inspectionRuleHandlers } from './inspection-rules';
import { nodeListHandlers } from './node-list';
import { nodeManagementHandlers } from './node-management';
import { nodeStateHandlers } from './node-states';
import { nodeTraitHandlers } from './node-traits';
import { nodeVifHandlers } from './node-vifs';
import { nodeHandlers } from './nodes';
import { portgroupHandlers } from './portgroups';
import { portHandlers } from './ports';
import { raidHandlers } from './raid';
import { ramdiskHandlers } from './ramdisk';
import { readinessHandlers } from './readiness';
import { rootHandlers } from './root';
import { shardHandlers } from './shards';
import { eventHandlers } from './events';
import { eventStreamHandlers } from './event-stream';
import { volumeHandlers } from './volumes';
import { vendorHandlers } from './vendor-passthru';
import { virtualMediaHandlers } from './virtual-media';
import type { Handlers } from './routes';
import { runbookHandlers } from './runbooks';

export const handlers: Handlers = {
  ...rootHandlers,
  ...docsHandlers,
  ...nodeListHandlers,
  ...nodeHandlers,
  ...nodeStateHandlers,
  ...nodeManagementHandlers,
  ...readinessHandlers,
  ...hardwareHandlers,
  ...nodeTraitHandlers,
  ...machineStateHandlers,
  ...raidHandlers,
  ...indicatorHandlers,
  ...vendorHandlers,
  ...biosHandlers,
  ...firmwareHandlers,
  ...virtualMediaHandlers,

  ...nodeVifHandlers,
  ...nodeHistoryHandlers,
  ...portHandlers,
  ...portgroupHandlers,
  ...chassisHandlers,
  ...volumeHandlers,
  ...allocationHandlers,
  ...shardHandlers,
  ...eventHandlers,
  ...eventStreamHandlers,
  ...driverHandlers,
  ...conductorHandlers,
  ...ramdiskHandlers,

  ...deployTemplateHandlers,
  ...runbookHandlers,
  ...inspectionRuleHandlers,
};
