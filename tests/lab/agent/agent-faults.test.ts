/**
 * Faults of a machine and of the programs in it, put into QEMU while our server deploys it: what the operator reads. They share
 * a boot of the ramdisk for each kind of machine, whose agent starts again for each. AGENT_FAULT=… chooses some by their names; SHOW=1 prints what is read.
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { faultyImage, startFaultyImages, type FaultyImages } from '../../support/agent-faults/images';
import { type AgentFault, textOf } from '../../support/agent-faults/fault';
import { AGENT_FAULTS, type FaultyParts, type ImageMode, type MachineFault, type MachineKind } from '../../support/agent-faults/machine';
import { BOOT_FAULTS, QEMU_FAULTS } from '../../support/agent-faults/qemu';
import { freePort } from '../../support/free-port';
import { until } from '../../../demo/lab/machines';
import { startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { buildRamdisk } from '../support/ramdisk';
import { HOST, MAC, startFaultyMachine, type FaultyMachine, type MachineSettings } from './faulty-machine';

/** Seconds: a boot takes half a minute alone, and longer beside other work. */
const PATIENCE = 600;
jest.setTimeout(2 * PATIENCE * 1000);

const image = faultyImage();
let folder: string;
let server: RunningServer | undefined;
let machine: FaultyMachine;
let images: FaultyImages;
let port: number;
let api: string;
let node: string;
let mode: ImageMode = 'whole';

async function call(method: string, path: string, body?: unknown): Promise<Readonly<Record<string, unknown>>> {
  const answer = await fetch(`${api}${path}`, {
    method,
    headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text === '' ? {} : (JSON.parse(text) as Readonly<Record<string, unknown>>);
}
const show = () => call('GET', `/v1/nodes/${node}`);
const describeAll = (): string => `${machine.console()}\n${server?.logEnd()}`;
const reach = async (...states: readonly string[]): Promise<void> => {
  let seen: unknown;
  await until(
    PATIENCE,
    () => `${states.join(' or ')}, not ${String(seen)}\n${describeAll()}`,
    async () => {
      const now = await show();
      seen = now['provision_state'];
      return states.includes(seen as string) && now['reservation'] === null;
    },
  );
};

/** Seconds for the agent's call: of a machine whose agent never calls, and of others. */
const SHORT = 90;
const LONG = 900;
/** @param callbackTimeout seconds */
async function startServer(callbackTimeout: number): Promise<void> {
  await server?.stop();
  server = await startServerProcess(join(folder, 'server'), {
    DEFAULT: {
      my_ip: '127.0.0.1',
      auth_strategy: 'noauth',
      enabled_hardware_types: 'fake-hardware',
      enabled_boot_interfaces: 'fake',
      enabled_power_interfaces: 'fake',
      enabled_management_interfaces: 'fake',
      enabled_deploy_interfaces: 'direct',
      enabled_network_interfaces: 'noop',
    },
    api: { host_ip: '127.0.0.1', port, ramdisk_heartbeat_timeout: 5 },
    boot: { http_host: '127.0.0.1', http_port: await freePort(), tftp: 'false' },
    deploy: { http_url: `http://${HOST}:${images.port}` },
    conductor: {
      deploy_kernel: `file://${folder}/kernel`,
      deploy_ramdisk: `file://${folder}/ramdisk`,
      file_url_allowed_paths: folder,
      deploy_callback_timeout: callbackTimeout,
      check_provision_state_interval: 1,
    },
    agent: { deploy_logs_local_path: join(folder, 'logs'), command_timeout: 30 },
  });
}
beforeAll(async () => {
  await buildRamdisk();
  folder = mkdtempSync(join(tmpdir(), 'agent-faults-'));
  images = await startFaultyImages(image, HOST, Date.now(), () => mode);
  port = await freePort();
  api = `http://127.0.0.1:${port}`;
  writeFileSync(join(folder, 'image.raw'), image);
  for (const name of ['kernel', 'ramdisk']) writeFileSync(join(folder, name), randomBytes(1000));
  await startServer(SHORT);
  node = (await call('POST', '/v1/nodes', { driver: 'fake-hardware', automated_clean: false }))['uuid'] as string;
  await call('POST', '/v1/ports', { node_uuid: node, address: MAC });
  await order('manage', 'manageable');
  await order('provide', 'available');
});
afterAll(async () => {
  await server?.stop();
  await images.close();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

const order = async (target: string, state: string): Promise<void> => {
  await call('PUT', `/v1/nodes/${node}/states/provision`, { target });
  await reach(state);
};
const agentRuns = () => machine.guest('until pidof agent; do sleep 1; done');
const parts: FaultyParts = {
  guest: (command) => machine.guest(command),
  monitor: (name, args) => machine.monitor.execute(name, args),
  reset: async () => {
    await machine.reset();
    await agentRuns();
  },
};

async function prepare({ image: how = 'whole', disk = 'GOOD', instance }: Partial<MachineFault>): Promise<void> {
  mode = how;
  const value = {
    image_source: `file://${folder}/image.raw`,
    image_disk_format: 'raw',
    image_os_hash_algo: 'sha256',
    image_os_hash_value: createHash('sha256').update(image).digest('hex'),
    root_device: { serial: disk },
    ...instance,
  };
  await call('PATCH', `/v1/nodes/${node}`, [{ op: 'add', path: '/instance_info', value }]);
}
/** The agent's program has its name back before the next fault. */
const ENDS: Readonly<Record<NonNullable<MachineFault['ends']>, MachineFault['during']>> = {
  again: ({ guest }) => guest('kill -9 $(pidof agent)'),
  'for good': ({ guest }) => guest('mv /bin/agent /bin/agent-away; kill -9 $(pidof agent)'),
};

/** Waits until the image is written, and no heartbeat has just come: the server then asks nothing that the fault would break off. */
async function untilQuiet(): Promise<void> {
  const look = async () => {
    const { provision_state: state, deploy_step: step, reservation, driver_internal_info: internal } = await show();
    const writes = state === 'wait call-back' && reservation === null && (step as { readonly step?: string }).step === 'write_image';
    return writes ? String((internal as Readonly<Record<string, unknown>>)['agent_last_heartbeat']) : undefined;
  };
  await until(
    PATIENCE,
    () => `progress\n${describeAll()}`,
    async () => {
      const before = await look();
      await delay(2000);
      return before !== undefined && before === (await look());
    },
  );
}

async function failureOf(fault: MachineFault): Promise<string> {
  await prepare(fault);
  await fault.before?.(parts);
  // The agent of the deployment before would take the token of this one.
  await machine.guest('mv /bin/agent /bin/agent-away; kill -9 $(pidof agent)');
  await call('PUT', `/v1/nodes/${node}/states/provision`, {
    target: 'active',
    ...(fault.steps ? { deploy_steps: fault.steps } : {}),
  });
  await reach('wait call-back');
  await machine.guest('rm -f /run/agent-identity.json /run/agent.log; mv /bin/agent-away /bin/agent');
  const during = fault.during ?? (fault.ends && ENDS[fault.ends]);
  if (during) {
    await untilQuiet();
    await during(parts);
  }
  await reach('deploy failed', 'active');
  const { last_error: failure } = await show();
  await fault.after?.(parts);
  await machine.guest('[ -e /bin/agent ] || mv /bin/agent-away /bin/agent');
  return String(failure);
}

const only = process.env['AGENT_FAULT'];
const chosen = <F extends AgentFault>(faults: readonly F[]): readonly F[] =>
  faults.filter(({ name }) => only === undefined || new RegExp(only).test(name));
async function startMachine(name: string, settings: Pick<MachineSettings, 'kind' | 'memory'>): Promise<void> {
  const agentPort = await freePort();
  const words = [
    `ipa-api-url=http://${HOST}:${port}`,
    `ipa-advertise-host=127.0.0.1 ipa-advertise-port=${agentPort}`,
    'ipa-disk-wait-attempts=1 ipa-disk-timeout=20 ipa-lookup-timeout=3600 ipa-ca-file=/ca.pem',
    'ipa-image-download-connection-retries=0 ipa-image-download-connection-timeout=5',
  ];
  machine = await startFaultyMachine(join(folder, name), { ...settings, words, agentPort, files: { 'ca.pem': images.authority } });
}
async function read(fault: AgentFault, work: () => Promise<string>): Promise<void> {
  const began = Date.now();
  const failure = await work();
  if (process.env['SHOW']) process.stderr.write(`\n== ${fault.name} ${((Date.now() - began) / 1000).toFixed(1)} s\n${failure}\n`);
  expect(failure).toMatch(textOf(fault));
}

describe('a machine that boots while the node waits', () => {
  afterEach(() => machine.stop());
  for (const [index, fault] of chosen(BOOT_FAULTS).entries())
    it(`${fault.name}: last_error says so`, () =>
      read(fault, async () => {
        await prepare({});
        await call('PUT', `/v1/nodes/${node}/states/provision`, { target: 'active' });
        await reach('wait call-back');
        await startMachine(`boot-${index}`, { kind: 'BIOS', memory: fault.memory });
        if (fault.isUnplugged) await machine.monitor.execute('set_link', { name: 'nic', up: false });
        await reach('deploy failed');
        await until(PATIENCE, describeAll, () => fault.console.test(machine.console()));
        return String((await show())['last_error']);
      }));
});

describe.each<MachineKind>(['UEFI', 'BIOS'])('%s', (kind) => {
  beforeAll(async () => {
    await startServer(LONG);
    await startMachine(kind, { kind });
    await agentRuns();
  });
  afterAll(() => machine.stop());
  /** A deployment that goes on, or ended well, must not hinder the next fault. */
  afterEach(async () => {
    const { provision_state: state } = await show();
    if (state !== 'deploy failed' && state !== 'available') await order('deleted', 'available');
  });
  for (const fault of chosen([...QEMU_FAULTS, ...AGENT_FAULTS].filter(({ machine: its = 'BIOS' }) => its === kind)))
    it(`${fault.name}: last_error says so`, () => read({ ...fault, text: fault.textInQemu ?? fault.text }, () => failureOf(fault)));
});
