/** Deployments by our server and by the real Ironic in equal labs: the server, requests to it, and machines of QEMU behind IPMI. */
import { startIpmiSim } from '../../demo/lab/ipmi-sim';
import { consoleEnd, until, type Lab, type LabMachine } from '../../demo/lab/machines';
import { bootingSections, startServerProcess, type Sections } from '../../demo/lab/server';
import type { JsonObject } from '../../model/records';
import { startBootingIronic } from './booting-ironic';

const API = 'http://10.77.0.1:6385/v1';
const KERNEL = 'console=ttyS0 no_timer_check';

export type Server = 'ours' | 'real';
interface Ramdisk {
  /** Paths. */
  readonly kernel: string;
  readonly initrd: string;
}

/**
 * Starts a server that boots machines of the lab with this ramdisk. It does not clean them.
 * @param agent options of the section [agent]
 */
export async function startServer(
  lab: Lab,
  which: Server,
  ramdisk: Ramdisk,
  agent: Readonly<Record<string, string>> = {},
): Promise<{ stop(): Promise<unknown> }> {
  const pxe = { kernel_append_params: KERNEL };
  if (which === 'real') return startBootingIronic(lab, ramdisk, { pxe, conductor: { automated_clean: 'false' }, agent });
  const sections: Sections = bootingSections(lab);
  const conductor = {
    ...sections['conductor'],
    deploy_kernel: `file://${ramdisk.kernel}`,
    deploy_ramdisk: `file://${ramdisk.initrd}`,
    automated_clean: 'false',
  };
  return startServerProcess(`${lab.folder}/server`, { ...sections, conductor, pxe, agent }, lab.namespace);
}

/** A request to the server of the lab. Throws an Error with the answer of a refused one. */
async function request(lab: Lab, method: string, path: string, body?: unknown): Promise<JsonObject> {
  const headers = ['-H', 'X-OpenStack-Ironic-API-Version: 1.95', '-H', 'content-type: application/json'];
  const data = body === undefined ? [] : ['--data', JSON.stringify(body)];
  const said = await lab.exec('curl', '-sS', '-X', method, ...headers, ...data, `${API}${path}`);
  const answer = (said === '' ? {} : JSON.parse(said)) as JsonObject;
  if (answer['error_message'] !== undefined) throw new Error(`${method} ${path}: ${said}`);
  return answer;
}

export interface Enrolled {
  readonly machine: LabMachine;
  /** The node and the console, for the message of a failure. */
  readonly describe: () => string;
  readonly show: () => Promise<JsonObject>;
  readonly order: (target: string, more?: JsonObject) => Promise<unknown>;
  /** Whether the node is free and in this state. Throws an Error if it has failed. */
  readonly isNow: (state: string) => Promise<boolean>;
  readonly reach: (state: string) => Promise<JsonObject>;
  readonly stop: () => Promise<unknown>;
}

interface Wanted {
  readonly name: string;
  readonly firmware: 'bios' | 'uefi';
  readonly instance: JsonObject;
  /** The UDP port of its BMC. */
  readonly port: number;
  /** Seconds for each state. */
  readonly patience: number;
}
/** A machine whose node is available. */
export async function enrol(lab: Lab, { name, firmware, instance, port, patience }: Wanted): Promise<Enrolled> {
  const machine = await lab.machine({ name, firmware, memoryMiB: 2048, cpus: 2, diskGiB: 5 });
  const bmc = await startIpmiSim(machine, { namespace: lab.namespace, address: lab.address, port, folder: lab.folder });
  const { uuid } = await request(lab, 'POST', '/nodes', {
    name,
    driver: 'ipmi',
    driver_info: {
      ipmi_address: bmc.address,
      ipmi_port: bmc.port,
      ipmi_username: bmc.username,
      ipmi_password: bmc.password,
      ipmi_cipher_suite: 3,
    },
    properties: { capabilities: `boot_mode:${firmware}` },
    instance_info: instance,
    boot_interface: 'ipxe',
    deploy_interface: 'direct',
    network_interface: 'noop',
  });
  await request(lab, 'POST', '/ports', { node_uuid: uuid, address: machine.mac });
  let node: JsonObject = {};
  const describe = (): string => `${name}: ${JSON.stringify(node)}\n${consoleEnd(machine)}`;
  const show = (): Promise<JsonObject> => request(lab, 'GET', `/nodes/${name}`);
  const isNow = async (state: string): Promise<boolean> => {
    node = await show();
    if (node['provision_state'] === state) return node['reservation'] === null;
    if (/failed$|^error$/.test(String(node['provision_state']))) throw new Error(describe());
    return false;
  };
  const order = (target: string, more: JsonObject = {}): Promise<unknown> =>
    request(lab, 'PUT', `/nodes/${name}/states/provision`, { target, ...more });
  const reach = async (state: string): Promise<JsonObject> => {
    await until(patience, describe, () => isNow(state));
    return node;
  };
  for (const [target, state] of [
    ['manage', 'manageable'],
    ['provide', 'available'],
  ] as const) {
    await order(target);
    await reach(state);
  }
  return { machine, describe, show, order, isNow, reach, stop: () => bmc.stop() };
}
