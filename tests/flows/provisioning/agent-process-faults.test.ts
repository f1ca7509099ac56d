/** What the operator reads when the agent meets faults of disks and image servers: the real agent in this process, in machines of files. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { textOf } from '../../support/agent-faults/fault';
import { faultyImage, startFaultyImages, type FaultyImages } from '../../support/agent-faults/images';
import { AGENT_FAULTS, type ImageMode, type MachineFault } from '../../support/agent-faults/machine';
import { runAgentProcess } from '../../support/agent-faults/process';
import { useDatabase } from '../../support/database';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

const YEAR_MS = 31_536_000_000;
const image = faultyImage();
const database = useDatabase();
let whole: WholeServer;
let images: FaultyImages;
let folder: string;

async function failureOf(fault: MachineFault, index: number): Promise<string> {
  const mac = `52:54:00:fa:12:${index.toString(16).padStart(2, '0')}`;
  const instance = {
    image_source: `http://127.0.0.1:${images.port}/${fault.image ?? 'whole'}`,
    image_disk_format: 'raw',
    image_os_hash_algo: 'sha256',
    image_os_hash_value: createHash('sha256').update(image).digest('hex'),
    root_device: { serial: fault.disk ?? 'GOOD' },
    ...fault.instance,
  };
  const created = await whole.call('POST', '/v1/nodes', {
    driver: 'fake-hardware',
    boot_interface: 'fake',
    automated_clean: false,
    instance_info: instance,
  });
  const uuid = created.body['uuid'] as string;
  await whole.call('POST', '/v1/ports', { node_uuid: uuid, address: mac });
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await whole.order(uuid, 'provide');
  await whole.reach(uuid, 'available');
  await whole.order(uuid, 'active', fault.steps ? { deploy_steps: fault.steps } : {});
  await whole.reach(uuid, 'wait call-back');
  let stop = new AbortController();
  const root = join(folder, `machine-${index}`);
  const options = { root, mac, apiUrl: whole.server.apiUrl!, port: await freePort(), authority: images.authority, now: Date.now };
  let agent = runAgentProcess(options, stop.signal).catch(() => {});
  try {
    if (fault.ends) {
      await until('the image to be written', async () => {
        const { provision_state: state, deploy_step: step } = (await whole.call('GET', `/v1/nodes/${uuid}`)).body;
        return state === 'wait call-back' && (step as { readonly step?: string }).step === 'write_image';
      });
      stop.abort();
      await agent;
      writeFileSync(join(root, 'agent-ended'), '137');
      stop = new AbortController();
      if (fault.ends === 'again') agent = runAgentProcess(options, stop.signal).catch(() => {});
    }
    const { last_error: failure } = await whole.reach(uuid, 'deploy failed');
    return String(failure);
  } finally {
    stop.abort();
    await agent;
  }
}

/** The cases wait more than they work: some run at once, and each test awaits its own. More would wait for each other beyond their limits. */
const AT_ONCE = 4;
const failures = new Map<string, Promise<unknown>>();
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'agent-faults-'));
  writeFileSync(join(folder, 'image.raw'), image);
  // A machine whose clock is a year behind sees such a certificate.
  images = await startFaultyImages(image, '127.0.0.1', Date.now() + YEAR_MS, (path) => path.slice(1) as ImageMode);
  whole = await startWholeServer(database.connection(), {
    machines: 1,
    options: {
      'DEFAULT.enabled_hardware_types': ['fake-hardware', 'redfish'],
      'DEFAULT.enabled_boot_interfaces': ['fake', 'ipxe'],
      'DEFAULT.enabled_power_interfaces': ['fake', 'redfish'],
      'DEFAULT.enabled_management_interfaces': ['fake', 'redfish'],
      'agent.deploy_logs_collect': 'always',
      'DEFAULT.webserver_connection_timeout': 600,
      'agent.deploy_logs_local_path': join(folder, 'logs'),
    },
  });
  const lanes: Promise<unknown>[] = Array.from({ length: AT_ONCE }, () => Promise.resolve());
  for (const [index, fault] of AGENT_FAULTS.entries()) {
    const lane = index % AT_ONCE;
    lanes[lane] = lanes[lane]!.then(() => failureOf(fault, index)).catch((error: unknown) => error);
    failures.set(fault.name, lanes[lane]);
  }
});
afterAll(async () => {
  await whole.close();
  await images.close();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

it.each(AGENT_FAULTS)('$name: last_error says so', async (fault) => {
  const failure = await failures.get(fault.name);
  if (failure instanceof Error) throw failure;
  expect(failure).toMatch(textOf(fault));
});

it('with deploy_logs_collect = always, the logs of a deployment and a cleaning that succeed are stored', async () => {
  const [machine] = whole.fleet.machines;
  const uuid = await whole.enrol(machine!, { instance_info: whole.deployable(), automated_clean: false });
  for (const [verb, state] of [
    ['manage', 'manageable'],
    ['provide', 'available'],
    ['active', 'active'],
  ] as const) {
    await whole.order(uuid, verb);
    await whole.reach(uuid, state);
  }
  const stored = (): readonly string[] => readdirSync(join(folder, 'logs')).filter((name) => name.startsWith(uuid));
  expect(stored()).toEqual([expect.stringMatching(/_\d{4}(-\d\d){5}\.tar\.gz$/)]);
  await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/automated_clean', value: true }]);
  await whole.order(uuid, 'deleted');
  await whole.reach(uuid, 'available');
  expect(stored().filter((name) => name.includes('_cleaning_'))).toHaveLength(1);
});
