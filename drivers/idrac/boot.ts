/** The boot interface of Dell machines: virtual media, whose CD is no boot device of the standard's with most iDRACs. */
import { reasonOf } from '../../model/errors';
import { RedfishError, member, patchResource, readResource, textOf, type RedfishResource } from '../../wire/redfish';
import type { BootInterface, Task } from '../interfaces';
import { virtualMediaBoot } from '../boot-interfaces/virtual-media-boot';
import { managersOf } from '../redfish/managers';
import { validateCdDrive } from '../redfish/media-support';
import { onSystem, type SystemView } from '../redfish/target';
import { importConfiguration } from './configuration';
import { attributesPath, namingLockdown } from './lockdown';
import { onManager } from './manager';

const escaped = (text: string): string => text.replace(/[&<>"]/g, (mark) => `&#${mark.charCodeAt(0)};`);
/** The configuration that makes the machine boot from the virtual CD: one boot, or each. */
const bootsFromCd = (manager: RedfishResource, persistent: boolean): string =>
  `<SystemConfiguration><Component FQDD="${escaped(textOf(member(manager.body, 'Id')) ?? '')}">` +
  `<Attribute Name="ServerBoot.1#BootOnce">${persistent ? 'Disabled' : 'Enabled'}</Attribute>` +
  '<Attribute Name="ServerBoot.1#FirstBootDevice">VCD-DVD</Attribute></Component></SystemConfiguration>';

/** Attributes of the iDRAC with which a medium is inserted, and yet no drive of the machine shows it. */
const HINDRANCES: readonly {
  readonly name: string;
  readonly hinders: (value: unknown, version: string) => boolean;
  readonly value: string;
}[] = [
  { name: 'VirtualMedia.1.Attached', hinders: (value) => value === 'Detached', value: 'AutoAttach' },
  // The console's plug-in holds the drive in this firmware.
  {
    name: 'VirtualConsole.1.PluginType',
    hinders: (value, version) => value === 'eHTML5' && /^4\.40\.[0-3]\d\./.test(version),
    value: 'HTML5',
  },
];
async function unhinder(task: Task, { ask }: SystemView, manager: RedfishResource): Promise<void> {
  const attributes = await readResource(ask, attributesPath(manager));
  const version = textOf(member(manager.body, 'FirmwareVersion')) ?? '';
  const wrong = HINDRANCES.filter(({ name, hinders }) => hinders(member(attributes.body, 'Attributes', name), version));
  if (wrong.length === 0) return;
  task.log.warn('Attributes of the iDRAC keep virtual media from the machine, and are changed', {
    attributes: wrong.map(({ name }) => name),
  });
  await patchResource(ask, attributes, { Attributes: Object.fromEntries(wrong.map(({ name, value }) => [name, value])) });
}
/** An iDRAC whose attributes cannot be read or changed gets the medium all the same. */
const prepare = (task: Task): Promise<void> =>
  onSystem(task, undefined, async (system) => {
    for (const manager of await managersOf(system))
      await unhinder(task, system, manager).catch((error: unknown) => {
        task.signal.throwIfAborted();
        if (!(error instanceof RedfishError) || error.kind === 'closed') throw error;
        task.log.debug('The attributes of the iDRAC cannot be checked', { reason: reasonOf(error) });
      });
  });

export const idracVirtualMediaBoot: BootInterface = virtualMediaBoot({
  validate: validateCdDrive,
  prepare,
  setBootDevice: (task, persistent) =>
    namingLockdown(task, () =>
      onManager(task, 'set virtual boot device', (manager, system) =>
        importConfiguration(task, system, manager, bootsFromCd(manager, persistent)),
      ),
    ),
});
