/** What a DHCP server that others run is told about a machine that boots from the network. */
import type { Task } from '../interfaces';

/** An option in the words of dnsmasq and Neutron: `tag:!ipxe,67`. */
export interface DhcpOption {
  readonly opt_name: string;
  readonly opt_value: string;
  readonly ip_version: 4 | 6;
}

export interface DhcpProvider {
  /** Whether the server marks requests of iPXE with the tags ipxe and ipxe6. */
  readonly hasIpxeTag: boolean;
  /** The node's machine is to boot with these options, which replace earlier ones. Throws a Fault. */
  update(task: Task, options: readonly DhcpOption[]): Promise<void>;
  /** The node's machine is not to boot any more. Throws a Fault. */
  clean(task: Task): Promise<void>;
}
