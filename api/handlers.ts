/** Every handler by its operationId. A new resource is a file and a line here. */
import { biosHandlers } from './nodes/bios';
import { chassisHandlers } from './resources/chassis';
import { allocationHandlers } from './resources/allocations';
import { conductorHandlers } from './resources/conductors';
import { deployTemplateHandlers } from './resources/deploy-templates';
import { docsHandlers } from './resources/docs';
import { driverHandlers } from './resources/drivers';
import { firmwareHandlers } from './nodes/firmware';
import { hardwareHandlers } from './resources/hardware';
import { indicatorHandlers } from './nodes/indicators';
import { machineStateHandlers } from './nodes/machine-states';
import { nodeHistoryHandlers } from './nodes/history';
import { inspectionRuleHandlers } from './resources/inspection-rules';
import { nodeListHandlers } from './nodes/list';
import { nodeManagementHandlers } from './nodes/management';
import { nodeStateHandlers } from './nodes/states';
import { nodeTraitHandlers } from './nodes/traits';
import { nodeVifHandlers } from './nodes/vifs';
import { nodeHandlers } from './nodes/nodes';
import { portgroupHandlers } from './resources/portgroups';
import { portHandlers } from './resources/ports';
import { raidHandlers } from './resources/raid';
import { ramdiskHandlers } from './resources/ramdisk';
import { readinessHandlers } from './nodes/readiness';
import { rootHandlers } from './resources/root';
import { shardHandlers } from './resources/shards';
import { eventHandlers } from './resources/events';
import { eventStreamHandlers } from './resources/event-stream';
import { volumeHandlers } from './resources/volumes';
import { vendorHandlers } from './resources/vendor-passthru';
import { virtualMediaHandlers } from './nodes/virtual-media';
import type { Handlers } from './resource/handler';
import { runbookHandlers } from './resources/runbooks';

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
