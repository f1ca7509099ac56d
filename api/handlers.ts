/** Every handler by its operationId. The compiler compares the list with openapi.yaml (api/schema/operations.ts). */
import { biosHandlers } from './nodes/bios';
import { firmwareHandlers } from './nodes/firmware';
import { healthHandlers } from './nodes/health';
import { nodeHistoryHandlers } from './nodes/history';
import { indicatorHandlers } from './nodes/indicators';
import { nodeListHandlers } from './nodes/list';
import { machineStateHandlers } from './nodes/machine-states';
import { nodeManagementHandlers } from './nodes/management';
import { nodeHandlers } from './nodes/nodes';
import { outOfServiceHandlers } from './nodes/out-of-service';
import { nodePatchHandlers } from './nodes/patch';
import { readinessHandlers } from './nodes/readiness';
import { nodeStateHandlers } from './nodes/states';
import { nodeTraitHandlers } from './nodes/traits';
import { nodeVifHandlers } from './nodes/vifs';
import { virtualMediaHandlers } from './nodes/virtual-media';
import { allocationHandlers } from './resources/allocations';
import { chassisHandlers } from './resources/chassis';
import { conductorHandlers } from './resources/conductors';
import { defaultConfigHandlers } from './resources/default-configs';
import { deployTemplateHandlers } from './resources/deploy-templates';
import { docsHandlers } from './resources/docs';
import { driverHandlers } from './resources/drivers';
import { eventStreamHandlers } from './resources/event-stream';
import { eventHandlers } from './resources/events';
import { hardwareHandlers } from './resources/hardware';
import { imageHandlers } from './resources/images';
import { inspectionRuleHandlers } from './resources/inspection-rules';
import { portgroupHandlers } from './resources/portgroups';
import { portHandlers } from './resources/ports';
import { raidHandlers } from './resources/raid';
import { ramdiskHandlers } from './resources/ramdisk';
import { redfishEventHandlers } from './nodes/redfish-events';
import { residentAgentHandlers } from './resources/resident-agents';
import { rootHandlers } from './resources/root';
import { runbookHandlers } from './resources/runbooks';
import { shardHandlers } from './resources/shards';
import { erasureHandlers } from './resources/erasures';
import { snapshotHandlers } from './resources/snapshots';
import { stateCountHandlers } from './resources/state-counts';
import { vendorHandlers } from './resources/vendor-passthru';
import { volumeHandlers } from './resources/volumes';
import type { Handlers } from './pipeline/handler';

export const handlers: Handlers = {
  ...biosHandlers,
  ...firmwareHandlers,
  ...healthHandlers,
  ...nodeHistoryHandlers,
  ...indicatorHandlers,
  ...nodeListHandlers,
  ...machineStateHandlers,
  ...nodeManagementHandlers,
  ...nodeHandlers,
  ...outOfServiceHandlers,
  ...nodePatchHandlers,
  ...readinessHandlers,
  ...nodeStateHandlers,
  ...nodeTraitHandlers,
  ...nodeVifHandlers,
  ...virtualMediaHandlers,
  ...allocationHandlers,
  ...chassisHandlers,
  ...conductorHandlers,
  ...defaultConfigHandlers,
  ...deployTemplateHandlers,
  ...docsHandlers,
  ...driverHandlers,
  ...eventStreamHandlers,
  ...eventHandlers,
  ...hardwareHandlers,
  ...imageHandlers,
  ...inspectionRuleHandlers,
  ...portgroupHandlers,
  ...portHandlers,
  ...raidHandlers,
  ...ramdiskHandlers,
  ...redfishEventHandlers,
  ...residentAgentHandlers,
  ...rootHandlers,
  ...runbookHandlers,
  ...shardHandlers,
  ...snapshotHandlers,
  ...erasureHandlers,
  ...stateCountHandlers,
  ...vendorHandlers,
  ...volumeHandlers,
};
