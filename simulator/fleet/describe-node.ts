/** The node and the ports of a simulated machine, in the form that Ironic's API and `openstack baremetal create` accept. */
import type { JsonObject } from '../../model/records';
import type { FleetMachine, Protocol } from './fleet';

export interface DescribedNode {
  readonly node: JsonObject;
  readonly ports: readonly JsonObject[];
}
const DRIVER_INFO: Readonly<Record<Protocol, (machine: FleetMachine) => JsonObject>> = {
  ipmi: ({ ipmi: { address, port, username, password } }) => ({
    ipmi_address: address,
    ipmi_port: port,
    ipmi_username: username,
    ipmi_password: password,
  }),
  redfish: ({ redfish: { address, systemId, username, password } }) => ({
    redfish_address: address,
    redfish_system_id: systemId,
    redfish_username: username,
    redfish_password: password,
  }),
};

/** @param protocol one that the machine has */
export function nodeOf(machine: FleetMachine, protocol: Protocol): DescribedNode {
  const { cpus, memoryMiB, architecture, disks } = machine.control.description;
  return {
    node: {
      name: machine.name,
      driver: protocol,
      driver_info: { ...DRIVER_INFO[protocol](machine), ...(machine.screen === undefined ? {} : { vnc_socket: machine.screen }) },
      resource_class: 'baremetal',
      properties: { cpus, memory_mb: memoryMiB, cpu_arch: architecture, local_gb: Math.floor(disks[0]!.size / 2 ** 30) },
    },
    ports: machine.macs.map((address, index) => ({ address, pxe_enabled: index === 0 })),
  };
}
/** The protocol of the node's driver. Machines with both protocols alternate: every second one uses the second protocol. */
export const protocolOf = ({ protocols }: FleetMachine, index: number): Protocol => protocols[index % protocols.length]!;
