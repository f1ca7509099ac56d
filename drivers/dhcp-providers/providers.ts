/** The external DHCP servers, by `[dhcp]dhcp_provider`. They get the options of a machine before it boots from the network. */
import type { BootRecord } from '../../model/records';
import type { Task } from '../interfaces';
import { bootOptions } from './boot-options';
import { dnsmasq } from './dnsmasq';
import { neutron } from './neutron';
import type { DhcpProvider } from './provider';

/** `none` and `builtin` have no entry: our own DHCP service reads the boot record. */
const PROVIDERS: Readonly<Record<string, DhcpProvider>> = { dnsmasq, neutron };
const providerOf = ({ options }: Task): DhcpProvider | undefined => PROVIDERS[options['dhcp.dhcp_provider']];

/** Before the machine boots from the network. Throws a Fault. */
export async function updateDhcp(task: Task, method: BootRecord['method']): Promise<void> {
  const provider = providerOf(task);
  await provider?.update(task, bootOptions(task, method, provider.hasIpxeTag));
}
/** When the deployment is over. Throws a Fault. */
export const cleanDhcp = async (task: Task): Promise<void> => providerOf(task)?.clean(task);
