/** Every handler by its operationId. A new resource is a file and a line here. */
import { chassisHandlers } from './chassis';
import { conductorHandlers } from './conductors';
import { driverHandlers } from './drivers';
import { nodeListHandlers } from './node-list';
import { nodeManagementHandlers } from './node-management';
import { nodeStateHandlers } from './node-states';
import { nodeTraitHandlers } from './node-traits';
import { nodeHandlers } from './nodes';
import { portHandlers } from './ports';
import { ramdiskHandlers } from './ramdisk';
import { rootHandlers } from './root';
import { volumeHandlers } from './volumes';
import type { Handlers } from './routes';

export const handlers: Handlers = {
  ...rootHandlers,
  ...nodeListHandlers,
  ...nodeHandlers,
  ...nodeStateHandlers,
  ...nodeManagementHandlers,
  ...nodeTraitHandlers,
  ...portHandlers,
  ...chassisHandlers,
  ...volumeHandlers,
  ...driverHandlers,
  ...conductorHandlers,
  ...ramdiskHandlers,
};
