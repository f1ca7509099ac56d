/**
 * Steps of the agent in one cleaning of a machine in QEMU, behind IPMI: burn-in of processor, memory, network and disk, boot entries of the
 * firmware, and a hardware manager of the site. The partner of the network is the real agent's function with real fio. The server is killed
 * in the middle of a burn-in.
 */
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startIpmiSim } from '../../../demo/lab/ipmi-sim';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { bootingSections, startServerProcess, type RunningServer } from '../../../demo/lab/server';
import type { JsonObject } from '../../../model/records';
import { overlaid } from '../disks/disk-machine';
import { call } from '../inspection/inspect-machine';
import { needs } from '../support/needs';
import { buildRamdisk } from '../support/ramdisk';
import { programs, root } from '../support/venv';

/** Seconds. */
const PATIENCE = 900;
jest.setTimeout(3 * PATIENCE * 1000);
const MiB = 2 ** 20;
const NODE = 'steps';

/** A program of the site: a stand-in for a maker's tool. */
const MANAGER = `#!/bin/sh
read -r question
case $question in
  *'"method":"describe"'*)
    echo '{"protocol": 1, "name": "SiteHardwareManager", "version": "1.0", "support": "service-provider", "steps": [
      {"step": "update_disk_firmware", "priority": {"clean": 0}, "timeout": 60,
       "argsinfo": {"version": {"description": "the version", "required": true}}},
      {"step": "erase_pstore", "priority": {"clean": 0}}]}' ;;
  *'"step":"update_disk_firmware"'*'"version":"2.1"'*) echo '{"result": {"disk": "/dev/vda", "from": "1.0", "to": "2.1"}}' ;;
  *) echo '{"error": "no such thing"}' ;;
esac
`;

let lab: Lab;
let server: RunningServer;
let machine: LabMachine;
let python: string;
const undo: (() => Promise<unknown>)[] = [];
const initrd = join(root, '.cache/ramdisk-steps/initrd');
function serve(): Promise<RunningServer> {
  const sections = bootingSections(lab);
  const conductor = { ...sections['conductor'], deploy_ramdisk: `file://${initrd}` };
  const agent = { deploy_logs_collect: 'always', deploy_logs_local_path: join(lab.folder, 'logs') };
  return startServerProcess(join(lab.folder, 'server'), { ...sections, conductor, agent }, lab.namespace);
}

beforeAll(async () => {
  needs({ fio: 'fio' });
  const ramdisk = await buildRamdisk();
  mkdirSync(dirname(initrd), { recursive: true });
  overlaid(initrd, { 'lib/hardware-managers/site': MANAGER }, join(ramdisk, 'initrd'));
  python = join(await programs('agent-functions', ['ironic-python-agent==13.0.0']), 'python');
  lab = await openLab('bloomery-steps');
  undo.push(() => lab.close());
  server = await serve();
  undo.push(() => server.stop());
  machine = await lab.machine({ name: NODE, firmware: 'uefi', memoryMiB: 768, cpus: 2, diskGiB: 5 });
  const sim = await startIpmiSim(machine, { namespace: lab.namespace, address: lab.address, port: 6230, folder: lab.folder });
  undo.push(() => sim.stop());
  const { uuid } = await call(lab, 'POST', '/nodes', {
    name: NODE,
    driver: 'ipmi',
    boot_interface: 'ipxe',
    automated_clean: false,
    driver_info: {
      ipmi_address: sim.address,
      ipmi_port: sim.port,
      ipmi_username: sim.username,
      ipmi_password: sim.password,
      agent_burnin_cpu_timeout: '40s',
      agent_burnin_cpu_outputfile: '/var/log/burnin.cpu',
      agent_burnin_vm_timeout: 10,
      'agent_burnin_vm_vm-bytes': '50%',
      agent_burnin_fio_disk_runtime: 10,
      agent_burnin_fio_network_runtime: 5,
      agent_burnin_fio_network_config: { role: 'writer', partner: lab.address },
    },
    properties: { capabilities: 'boot_mode:uefi' },
  });
  await call(lab, 'POST', '/ports', { node_uuid: uuid, address: machine.mac });
  await call(lab, 'PUT', `/nodes/${NODE}/states/provision`, { target: 'manage' });
  await reach((node) => node['provision_state'] === 'manageable' && node['reservation'] === null);
}, 1_500_000);
afterAll(async () => {
  for (const step of undo.reverse()) await step();
}, 120_000);

async function reach(isSo: (node: JsonObject) => boolean): Promise<JsonObject> {
  let node: JsonObject = {};
  const described = (): string => `${JSON.stringify(node)}\n${consoleEnd(machine)}\n${server.logEnd()}`;
  await until(PATIENCE, described, async () => {
    node = await call(lab, 'GET', `/nodes/${NODE}`);
    if (isSo(node)) return true;
    if (/failed$|^error$/.test(String(node['provision_state']))) throw new Error(described());
    await delay(500);
    return false;
  });
  return node;
}
const internal = (node: JsonObject): JsonObject => node['driver_internal_info'] as JsonObject;
const isAt = (step: string) => (node: JsonObject) => (node['clean_step'] as JsonObject | null)?.['step'] === step;

const STEPS: readonly (readonly [string, JsonObject?])[] = [
  ['burnin_cpu'],
  ['burnin_memory'],
  ['burnin_network'],
  ['burnin_disk'],
  ['clean_uefi_nvram', { match_patterns: ['FvFile\\('] }],
  ['erase_devices_metadata'],
  ['update_disk_firmware', { version: '2.1' }],
];

it('burns in, cleans the boot entries and runs a program of the site, while the server is killed and starts again', async () => {
  const clean_steps = STEPS.map(([step, args]) => ({ interface: 'deploy', step, ...(args ? { args } : {}) }));
  await call(lab, 'PUT', `/nodes/${NODE}/states/provision`, { target: 'clean', clean_steps });
  await reach(isAt('burnin_cpu'));
  await until(
    PATIENCE,
    () => consoleEnd(machine),
    () => /Burn-in \(cpu\): 2 workers for 40 s/.test(consoleEnd(machine)),
  );
  await server.kill();
  server = await serve();
  const burning = await reach(isAt('burnin_network'));
  const guest = new URL(String(internal(burning)['agent_url'])).hostname;
  // The real agent reads first, as the machine writes, and then writes.
  const node = {
    driver_info: { agent_burnin_fio_network_runtime: 5, agent_burnin_fio_network_config: { role: 'reader', partner: guest } },
  };
  expect(await lab.exec(python, join(__dirname, 'burnin-partner.py'), JSON.stringify(node))).toContain('done');
  const ended = await reach(({ provision_state: state, reservation }) => state === 'manageable' && reservation === null);
  const results = internal(ended)['agent_step_results'] as Readonly<Record<string, { readonly result: JsonObject }>>;
  const of = (step: string): JsonObject => results[`deploy.${step}`]!.result;
  process.stderr.write(`${JSON.stringify(results)}\n`);
  expect(of('burnin_cpu')).toMatchObject({ workers: 2, rounds: expect.any(Number) as number });
  expect(of('burnin_cpu')['seconds']).toBeGreaterThanOrEqual(40);
  expect(of('burnin_memory')['bytes']).toBeGreaterThan(100 * MiB);
  for (const side of ['written', 'read']) expect((of('burnin_network')[side] as JsonObject)['bytes']).toBeGreaterThan(MiB);
  expect(of('burnin_disk')).toMatchObject({ disks: [{ disk: '/dev/vda', serial: machine.diskSerial, wrong: 0 }], untouched: [] });
  expect(of('clean_uefi_nvram')['removed']).toContainEqual(expect.objectContaining({ path: expect.stringContaining('FvFile(') as string }));
  expect(of('update_disk_firmware')).toEqual({ disk: '/dev/vda', from: '1.0', to: '2.1' });
  expect(internal(ended)['hardware_manager_version']).toEqual({ BloomeryHardwareManager: '4', SiteHardwareManager: '1.0' });
});
