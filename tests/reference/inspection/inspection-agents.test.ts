/**
 * Our server inspects machines in QEMU with the real ironic-python-agent and with ours: by inspect interface `agent`, by our introspection
 * service, and with kernel command lines from which the agent has to find both by multicast DNS.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expectInspected, inspectMachine, ramdiskIn } from '../../lab/inspection/inspect-machine';
import { openLab, type Lab } from '../../../demo/lab/machines';
import { bootingSections, startServerProcess, type RunningServer, type Sections } from '../../../demo/lab/server';
import { root } from '../../lab/support/venv';

const PATIENCE = 600;
const AGENTS = {
  real: { folder: join(root, '.cache/ipa-ramdisk'), memoryMiB: 1536, manager: 'generic_hardware_manager' },
  ours: { folder: join(root, '.cache/ramdisk'), memoryMiB: 768, manager: 'BloomeryHardwareManager' },
} as const;
type Agent = keyof typeof AGENTS;

const API = 'http://10.77.0.1:6385';
const SERVICE = 'http://10.77.0.1:5050';
const HOOKS = 'ramdisk-error,validate-interfaces,ports,architecture,memory,cpus,boot-mode,root-device,parse-lldp,local-link-connection';
const COLLECTORS = 'ipa-inspection-collectors=default,logs,pci-devices,numa-topology,dmi-decode';
interface Way {
  readonly inspectInterface: 'agent' | 'discoverd';
  readonly extraParameters: string;
  readonly sections: Sections;
  /** The agent's parameters on the kernel's command line. */
  readonly expectedParameters: readonly string[];
  /** One of the capabilities that the hooks set. */
  readonly capability: 'boot_mode:bios' | 'cpu_vt:true';
  readonly agents: readonly Agent[];
}
const WAYS: Readonly<Record<string, Way>> = {
  'the inspect interface agent': {
    inspectInterface: 'agent',
    extraParameters: COLLECTORS,
    sections: {},
    expectedParameters: [`ipa-api-url=${API}`, `ipa-inspection-callback-url=${API}/v1/continue_inspection`],
    capability: 'boot_mode:bios',
    // Our agent: see tests/lab/inspection/inspection.test.ts.
    agents: ['real'],
  },
  'the introspection service': {
    inspectInterface: 'discoverd',
    extraParameters: COLLECTORS,
    sections: { inspector_service: { enabled: 'true' } },
    expectedParameters: [`ipa-api-url=${API}`, `ipa-inspection-callback-url=${SERVICE}/v1/continue`],
    capability: 'cpu_vt:true',
    agents: ['real', 'ours'],
  },
  'addresses from multicast DNS': {
    inspectInterface: 'discoverd',
    extraParameters: `${COLLECTORS} ipa-api-url=mdns`,
    sections: {
      inspector_service: { enabled: 'true', callback_url: 'mdns' },
      mdns: { interfaces: 'br0' },
    },
    expectedParameters: ['ipa-api-url=mdns', 'ipa-inspection-callback-url=mdns'],
    capability: 'cpu_vt:true',
    agents: ['real', 'ours'],
  },
};
const CASES = Object.entries(WAYS)
  .flatMap(([way, { agents }]) => agents.map((agent) => ({ agent, way })))
  .map(({ agent, way }, index) => [agent, way, `${agent}-${index}`] as const);

let lab: Lab;
let server: RunningServer | undefined;

beforeAll(async () => {
  // The script also builds our own ramdisk.
  const script = join(root, 'tests/reference/inspection/ipa-ramdisk.sh');
  await promisify(execFile)('bash', [script, AGENTS.real.folder], { maxBuffer: 16 << 20, timeout: 1_800_000 });
  lab = await openLab('ref-inspection');
  // Services are announced on running interfaces; a bridge runs once one of its ports runs.
  for (const words of ['add port0 type veth peer name cable0', 'set port0 master br0 up', 'set cable0 up'])
    await lab.exec('ip', 'link', ...words.split(' '));
}, 1_900_000);
afterEach(async () => {
  await server?.stop();
}, 60_000);
afterAll(() => lab?.close(), 60_000);

function sectionsOf({ inspectInterface, extraParameters, sections }: Way): Sections {
  const booting = bootingSections(lab);
  return {
    ...booting,
    DEFAULT: { ...booting['DEFAULT'], enabled_inspect_interfaces: inspectInterface, enable_mdns: 'mdns' in sections ? 'true' : 'false' },
    conductor: { ...booting['conductor'], enable_mdns: 'mdns' in sections ? 'true' : 'false' },
    inspector: { hooks: HOOKS, extra_kernel_params: extraParameters },
    discoverd: { enabled: 'true', service_url: `${SERVICE}/v1`, status_check_period: 1 },
    ...sections,
  };
}

it.each(CASES)(
  'our server inspects a machine with the %s agent by %s, and the node becomes manageable',
  async (agent, how, name) => {
    const way = WAYS[how]!;
    const { folder, memoryMiB, manager } = AGENTS[agent];
    server = await startServerProcess(join(lab.folder, `server-${name}`), sectionsOf(way), lab.namespace);
    const { inspectInterface } = way;
    const driverInfo = ramdiskIn(folder);
    const inspected = await inspectMachine(lab, { name, bmcPort: 6230, memoryMiB, patience: PATIENCE, driverInfo, inspectInterface });
    expectInspected(inspected);
    const { plugin_data: data } = inspected.data;
    expect(data).toMatchObject({ configuration: { managers: [{ name: manager }] }, dmi: {}, numa_topology: {} });
    const capabilities = expect.stringContaining(way.capability) as string;
    expect(inspected.node['properties']).toMatchObject({ memory_mb: memoryMiB, cpus: 2, local_gb: 4, capabilities });
    const said = readFileSync(inspected.machine.consoleFile, 'latin1');
    for (const word of way.expectedParameters) expect(said).toContain(word);
    const { boot, inspection } = inspected.took;
    const times = `started ${boot.toFixed(1)} s after power on, manageable ${inspection.toFixed(1)} s later`;
    process.stderr.write(`the ${agent} agent, by ${how}: ${times}\n`);
  },
  (4 * PATIENCE + 70) * 1000,
);
