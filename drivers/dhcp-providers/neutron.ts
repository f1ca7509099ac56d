/** `[dhcp]dhcp_provider = neutron`: Neutron's DHCP agents answer. The options are set on the Neutron ports that the node uses now. */
import { Fault, reasonOf } from '../../model/errors';
import { findPort, updatePort } from '../network/neutron-api';
import { currentVif } from '../network/vifs';
import type { Task } from '../interfaces';
import type { DhcpOption, DhcpProvider } from './provider';

/** Sets the options of those IP versions in which the port has addresses. */
async function setOptions(task: Task, vif: string, options: readonly DhcpOption[]): Promise<void> {
  const { fixedIps } = await findPort(task, vif);
  const versions = new Set(fixedIps.map(({ ip_address: address }) => (address?.includes(':') ? 6 : 4)));
  if (versions.size === 0) task.log.error('a Neutron port has no address: it gets no DHCP options', { vif });
  const extra = options.filter((option) => versions.has(option.ip_version));
  await updatePort(task, vif, { extra_dhcp_opts: extra });
}

export const neutron: DhcpProvider = {
  hasIpxeTag: true,
  update: async (task, options) => {
    const { uuid } = task.node;
    const vifs = [...task.ports, ...(await task.portgroups())].flatMap((record) => currentVif(record) ?? []);
    if (vifs.length === 0)
      throw new Fault('FailedToUpdateDHCPOptOnPort', {
        message: `No VIFs found for node ${uuid} when attempting to update DHCP BOOT options.`,
      });
    const failures: string[] = [];
    for (const vif of vifs)
      await setOptions(task, vif, options).catch((error: unknown) => {
        task.signal.throwIfAborted();
        task.log.warn('the DHCP options of a Neutron port cannot be set', { vif, reason: reasonOf(error) });
        failures.push(reasonOf(error));
      });
    if (failures.length === vifs.length)
      throw new Fault('FailedToUpdateDHCPOptOnPort', {
        message: `Failed to set DHCP BOOT options for any port on node ${uuid}. ${failures[0]!}`,
      });
    await task.clock.sleep(task.options['neutron.port_setup_delay'] * 1000, task.signal);
  },
  // Neutron deletes the options with the ports.
  clean: async () => {},
};
