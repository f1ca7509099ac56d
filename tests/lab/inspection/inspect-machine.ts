/** Enrols a machine of the lab behind ipmi_sim at a server in the lab's namespace, inspects it, and measures the times. */
import { join } from 'node:path';
import type { Inventory, JsonObject } from '../../../model/records';
import { startIpmiSim } from '../../../demo/lab/ipmi-sim';
import { consoleEnd, until, type Lab, type LabMachine } from '../../../demo/lab/machines';

export const API = 'http://10.77.0.1:6385';
export async function call(lab: Lab, method: string, path: string, body?: unknown): Promise<JsonObject> {
  const headers = ['-H', 'X-OpenStack-Ironic-API-Version: 1.95', '-H', 'content-type: application/json'];
  const data = body === undefined ? [] : ['--data', JSON.stringify(body)];
  const said = await lab.exec('curl', '-sS', '-w', '\n%{http_code}', '-X', method, ...headers, ...data, `${API}/v1${path}`);
  const [text, status] = [said.slice(0, said.lastIndexOf('\n')), Number(said.slice(said.lastIndexOf('\n') + 1))];
  if (status >= 400) throw new Error(`${method} ${path}: ${status} ${text}`);
  return (text === '' ? {} : JSON.parse(text)) as JsonObject;
}

export interface Inspected {
  readonly machine: LabMachine;
  readonly node: JsonObject;
  readonly ports: readonly JsonObject[];
  readonly data: { readonly inventory: Inventory; readonly plugin_data: JsonObject };
  /** Seconds: power on to the agent's start, and from there until the node is manageable again. */
  readonly took: { readonly boot: number; readonly inspection: number };
}

/** @param driverInfo besides the BMC's address and login */
export async function inspectMachine(
  lab: Lab,
  {
    name,
    bmcPort,
    memoryMiB,
    patience,
    driverInfo,
    inspectInterface = 'agent',
  }: Readonly<{
    name: string;
    bmcPort: number;
    memoryMiB: number;
    /** Seconds for each of the two waits. */
    patience: number;
    driverInfo: JsonObject;
    inspectInterface?: 'agent' | 'discoverd';
  }>,
): Promise<Inspected> {
  const machine = await lab.machine({ name, firmware: 'bios', memoryMiB, cpus: 2, diskGiB: 5 });
  const bmc = await startIpmiSim(machine, { namespace: lab.namespace, address: lab.address, port: bmcPort, folder: lab.folder });
  try {
    const info = { ipmi_address: bmc.address, ipmi_port: bmc.port, ipmi_username: bmc.username, ipmi_password: bmc.password };
    const description = { name, driver: 'ipmi', inspect_interface: inspectInterface, driver_info: { ...info, ...driverInfo } };
    const created = await call(lab, 'POST', '/nodes', description);
    await call(lab, 'POST', '/ports', { node_uuid: created['uuid'], address: machine.mac });
    let node: JsonObject = {};
    const describe = (): string => `${name}: ${JSON.stringify(node)}\n${consoleEnd(machine)}`;
    const reach = async (state: string): Promise<number> => {
      await until(patience, describe, async () => {
        node = await call(lab, 'GET', `/nodes/${name}`);
        if (/failed$|^error$/.test(String(node['provision_state']))) throw new Error(describe());
        return node['provision_state'] === state;
      });
      return Date.now();
    };
    await call(lab, 'PUT', `/nodes/${name}/states/provision`, { target: 'manage' });
    await reach('manageable');
    await call(lab, 'PUT', `/nodes/${name}/states/provision`, { target: 'inspect' });
    await until(patience, describe, () => machine.isOn());
    const on = Date.now();
    await until(patience, describe, () => /Agent started|The real agent starts/.test(consoleEnd(machine)));
    const started = Date.now();
    const end = await reach('manageable');
    return {
      machine,
      node,
      ports: (await call(lab, 'GET', `/ports?node=${name}&detail=true`))['ports'] as readonly JsonObject[],
      data: (await call(lab, 'GET', `/nodes/${name}/inventory`)) as unknown as Inspected['data'],
      took: { boot: (started - on) / 1000, inspection: (end - started) / 1000 },
    };
  } finally {
    await bmc.stop();
  }
}

/** Checks an inventory of such a machine, from any agent. */
export function expectInspected({ node, ports, data: { inventory, plugin_data: plugin }, machine }: Inspected): void {
  expect(node).toMatchObject({ provision_state: 'manageable', last_error: null, properties: { cpu_arch: 'x86_64' } });
  expect(ports).toMatchObject([{ address: machine.mac, pxe_enabled: true }]);
  expect(inventory.cpu).toMatchObject({ count: machine.cpus, architecture: 'x86_64' });
  expect(inventory.memory).toMatchObject({ physical_mb: machine.memoryMiB });
  expect(inventory.disks).toMatchObject([{ name: '/dev/vda', size: machine.diskGiB * 2 ** 30, serial: machine.diskSerial }]);
  expect(inventory.interfaces).toMatchObject([{ mac_address: machine.mac, driver: 'virtio_net', has_carrier: true }]);
  expect(plugin).toMatchObject({
    root_disk: { name: '/dev/vda' },
    boot_interface: expect.stringMatching(/52.54.00/) as string,
    macs: [machine.mac],
  });
  expect(plugin).not.toHaveProperty('logs');
}
export const ramdiskIn = (folder: string): JsonObject => ({
  deploy_kernel: `file://${join(folder, 'vmlinuz')}`,
  deploy_ramdisk: `file://${join(folder, 'initrd')}`,
});
