/** The real ironic-python-agent, in a machine that boots in QEMU, is inspected through our server: inspect interface `agent`. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expectInspected, inspectMachine, ramdiskIn } from '../lab/inspect-machine';
import { openLab, type Lab } from '../lab/machines';
import { bootingSections, startServerProcess, type RunningServer } from '../lab/server';
import { root } from '../lab/venv';

const PATIENCE = 600;
const folder = join(root, '.cache/ipa-ramdisk');
let lab: Lab;
let server: RunningServer;

beforeAll(async () => {
  await promisify(execFile)('bash', [join(root, 'tests/reference/ipa-ramdisk.sh'), folder], { maxBuffer: 16 << 20, timeout: 1_800_000 });
  lab = await openLab('ref-inspection');
  const sections = bootingSections(lab);
  const inspector = {
    hooks: 'ramdisk-error,validate-interfaces,ports,architecture,memory,cpus,boot-mode,root-device,parse-lldp,local-link-connection',
    extra_kernel_params: 'ipa-inspection-collectors=default,logs,pci-devices,numa-topology,dmi-decode',
  };
  server = await startServerProcess(join(lab.folder, 'server'), { ...sections, inspector }, lab.namespace);
}, 1_900_000);
afterAll(async () => {
  await server?.stop();
  await lab?.close();
}, 60_000);

it(
  'from power on to manageable',
  async () => {
    const driverInfo = ramdiskIn(folder);
    const inspected = await inspectMachine(lab, { name: 'real-agent', bmcPort: 6230, memoryMiB: 1536, patience: PATIENCE, driverInfo });
    expectInspected(inspected);
    const { plugin_data: data } = inspected.data;
    expect(data).toMatchObject({ configuration: { managers: [{ name: 'generic_hardware_manager' }] }, dmi: {}, numa_topology: {} });
    expect(inspected.node['properties']).toMatchObject({ memory_mb: 1536, cpus: 2, local_gb: 4, capabilities: 'boot_mode:bios' });
    const { boot, inspection } = inspected.took;
    process.stderr.write(`real agent: started ${boot.toFixed(1)} s after power on, manageable ${inspection.toFixed(1)} s later\n`);
  },
  (4 * PATIENCE + 10) * 1000,
);
