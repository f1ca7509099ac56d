/**
 * Faults of a machine and of the programs in it, put into QEMU while our server deploys it: what the operator reads. They share
 * a boot of the ramdisk, whose agent starts again for each. AGENT_FAULT=… chooses some by their names; SHOW=1 prints what is read.
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { faultyImage, startFaultyImages, type FaultyImages } from '../../support/agent-faults/images';
import { textOf } from '../../support/agent-faults/fault';
import { AGENT_FAULTS, type FaultyParts, type ImageMode, type MachineFault } from '../../support/agent-faults/machine';
import { QEMU_FAULTS } from '../../support/agent-faults/qemu';
import { freePort } from '../../support/free-port';
import { until } from '../../../demo/lab/machines';
import { startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { buildRamdisk } from '../support/ramdisk';
import { HOST, MAC, startFaultyMachine, type FaultyMachine } from './faulty-machine';

/** Seconds: a boot takes half a minute alone, and longer beside other work. */
const PATIENCE = 600;
jest.setTimeout(2 * PATIENCE * 1000);

const image = faultyImage();
let folder: string;
let server: RunningServer;
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
const describeAll = (): string => `${machine.console()}\n${server.logEnd()}`;
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

beforeAll(async () => {
  await buildRamdisk();
  folder = mkdtempSync(join(tmpdir(), 'agent-faults-'));
  images = await startFaultyImages(image, HOST, Date.now(), () => mode);
  port = await freePort();
  api = `http://127.0.0.1:${port}`;
  writeFileSync(join(folder, 'image.raw'), image);
  for (const name of ['kernel', 'ramdisk']) writeFileSync(join(folder, name), randomBytes(1000));
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
      deploy_callback_timeout: 900,
      check_provision_state_interval: 1,
    },
    agent: { deploy_logs_local_path: join(folder, 'logs'), command_timeout: 60, max_command_attempts: 1 },
  });
  node = (await call('POST', '/v1/nodes', { driver: 'fake-hardware', automated_clean: false }))['uuid'] as string;
  await call('POST', '/v1/ports', { node_uuid: node, address: MAC });
  await order('manage', 'manageable');
  await order('provide', 'available');
  const agentPort = await freePort();
  const words = [
    `ipa-api-url=http://${HOST}:${port}`,
    `ipa-advertise-host=127.0.0.1 ipa-advertise-port=${agentPort}`,
    'ipa-disk-wait-attempts=1 ipa-disk-timeout=20 ipa-lookup-timeout=3600 ipa-ca-file=/ca.pem',
    'ipa-image-download-connection-retries=0 ipa-image-download-connection-timeout=5',
  ];
  machine = await startFaultyMachine(join(folder, 'machine'), { words, agentPort, files: { 'ca.pem': images.authority } });
  await agentRuns();
});
afterAll(async () => {
  await machine.stop();
  await server.stop();
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
};

async function failureOf(fault: MachineFault): Promise<string> {
  mode = fault.image ?? 'whole';
  const instance = {
    image_source: `file://${folder}/image.raw`,
    image_disk_format: 'raw',
    image_os_hash_algo: 'sha256',
    image_os_hash_value: createHash('sha256').update(image).digest('hex'),
    root_device: { serial: fault.disk ?? 'GOOD' },
    ...fault.instance,
  };
  await call('PATCH', `/v1/nodes/${node}`, [{ op: 'add', path: '/instance_info', value: instance }]);
  await fault.before?.(parts);
  await call('PUT', `/v1/nodes/${node}/states/provision`, {
    target: 'active',
    ...(fault.steps ? { deploy_steps: fault.steps } : {}),
  });
  await reach('wait call-back');
  // Each deployment has an agent of its own: that of the one before has another token.
  await machine.guest('rm -f /run/agent-identity.json /run/agent.log; kill -CONT $(pidof agent); kill -9 $(pidof agent)');
  if (fault.during) {
    await until(
      PATIENCE,
      () => `progress\n${describeAll()}`,
      async () => {
        const { deploy_step: step, provision_state: state } = await show();
        return state === 'wait call-back' && (step as { readonly step?: string }).step === 'write_image';
      },
    );
    await delay(2000);
    await fault.during(parts);
  }
  await reach('deploy failed', 'active');
  const { last_error: failure } = await show();
  await fault.after?.(parts);
  return String(failure);
}

const only = process.env['AGENT_FAULT'];
const FAULTS = [...AGENT_FAULTS.filter(({ inQemu }) => inQemu), ...QEMU_FAULTS].filter(
  ({ name }) => only === undefined || new RegExp(only).test(name),
);

/** A deployment that goes on, or ended well, must not hinder the next fault. */
afterEach(async () => {
  const { provision_state: state } = await show();
  if (state !== 'deploy failed' && state !== 'available') await order('deleted', 'available');
});
it.each(FAULTS)('$name: last_error says so', async (fault) => {
  const began = Date.now();
  const failure = await failureOf(fault);
  if (process.env['SHOW']) process.stderr.write(`\n== ${fault.name} ${((Date.now() - began) / 1000).toFixed(1)} s\n${failure}\n`);
  expect(failure).toMatch(textOf(fault));
});
