/** The interface to an external DHCP server, which gets the DHCP options of machines that boot from the network. */
import type { Task } from '../interfaces';

/** A DHCP option in the syntax of dnsmasq and Neutron: `tag:!ipxe,67`. */
export interface DhcpOption {
  readonly opt_name: string;
  readonly opt_value: string;
  readonly ip_version: 4 | 6;
}

export interface DhcpProvider {
  /** Whether the server marks requests of iPXE with the tags ipxe and ipxe6. */
  readonly hasIpxeTag: boolean;
  /** Makes the server send these options to the node's machine, in place of earlier ones. Throws a Fault. */
  update(task: Task, options: readonly DhcpOption[]): Promise<void>;
  /** Removes the options: the node's machine must not boot from the network any more. Throws a Fault. */
  clean(task: Task): Promise<void>;
}
