/**
 * A conductor that is killed on the way from an instance into the ramdisk. Each case is the node's row as the killed process left it; the
 * next conductor finds it, and does the rest again.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { prepareService } from '../../../drivers/agent/ramdisk-servicing';
import { noopNetwork } from '../../../drivers/noop';
import type { InternalInfo } from '../../../model/internal-info';
import { ownCertificate } from '../../../wire/http/certificate';
import { randomBytes } from 'node:crypto';
import { createServer as createSecureServer } from 'node:https';
import { interfacesOf, newMachine } from '../../support/machine';
import { useConductor } from '../../support/use-conductor';

const { after, start } = useConductor();
const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

const { certificate, privateKey } = ownCertificate('127.0.0.1', 'instance', Date.now(), randomBytes);
type Answers = Readonly<Record<string, object>>;
/** An agent in an instance. Commands without an answer fail. */
async function startAgent(answers: Answers): Promise<{ readonly url: string; readonly asked: string[] }> {
  const asked: string[] = [];
  const server = createSecureServer({ cert: certificate, key: privateKey }, (request, response) => {
    let text = '';
    request.on('data', (part: Buffer) => (text += part.toString()));
    request.on('end', () => {
      const { name = '' } = JSON.parse(text || '{}') as { readonly name?: string };
      asked.push(`${name} ${new URL(request.url!, 'https://x').searchParams.get('agent_token')}`);
      const result = answers[name];
      const [, short] = name.split('.');
      const body = result
        ? { id: '1', command_name: short, command_status: 'SUCCEEDED', command_result: result }
        : { id: '1', command_name: short, command_status: 'FAILED', command_error: { message: `no ${short}` } };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}
async function startFiles(): Promise<string> {
  const server = createServer((_, response) => void response.writeHead(200, { 'content-length': 1 }).end('x'));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const NODE = '5d2a1a50-9d2a-4a5f-8f06-1f1f1f1f1f1f';
const IDENTITY = { node: NODE, boot_id: 'boot-1', going: false };
const WORKING: Answers = { 'resident.identify': IDENTITY, 'resident.load': { loaded: true }, 'resident.start': { going: true } };
const BY_KEXEC = 'The agent in the instance started the ramdisk by kexec: kernel';
const TOLD: InternalInfo = { resident_kexec: { at: Date.now(), kernel: 'kernel' } };
const ALL = ['resident.identify', 'resident.load', 'resident.start'];

it.each<[string, InternalInfo, Answers | undefined, readonly string[], readonly string[], readonly string[]]>([
  ['before it asks the agent', {}, WORKING, ALL, [], [BY_KEXEC]],
  ['after it has saved that it tells the agent, and before it tells it', TOLD, WORKING, ALL, [], [BY_KEXEC]],
  [
    'after it has told the agent, whose services stop',
    TOLD,
    { 'resident.identify': { ...IDENTITY, going: true } },
    ALL.slice(0, 1),
    [],
    [BY_KEXEC],
  ],
  ['after it has told the agent, which is gone', TOLD, undefined, [], [], [BY_KEXEC]],
  ['after the agent of the ramdisk has looked the node up', { ...TOLD, agent_secret_token: 'x' }, undefined, [], [], []],
  [
    'before it asks an agent that cannot load the ramdisk',
    {},
    { 'resident.identify': IDENTITY },
    ALL.slice(0, 2),
    ['reset'],
    ['The machine reboots into the ramdisk, without kexec: no load'],
  ],
  [
    'before it asks an agent of another boot',
    {},
    { ...WORKING, 'resident.identify': { ...IDENTITY, boot_id: 'boot-2' } },
    ALL.slice(0, 1),
    ['off', 'on'],
    ['The machine reboots into the ramdisk, without kexec: the resident agent has not registered since its system started'],
  ],
  [
    'before it asks an agent of another node',
    {},
    { ...WORKING, 'resident.identify': { ...IDENTITY, node: 'x' } },
    ALL.slice(0, 1),
    ['off', 'on'],
    ['The machine reboots into the ramdisk, without kexec: the resident agent says that it belongs to another node'],
  ],
])('%s', async (_, internal, answers, commands, orders, said) => {
  const agent = answers ? await startAgent(answers) : { url: 'https://127.0.0.1:1', asked: [] };
  const files = await startFiles();
  const machine = newMachine();
  const test = interfacesOf(machine);
  const ordered: string[] = [];
  let power = 'power on';
  const order = (name: string, state: string) => async () => {
    ordered.push(name);
    power = state;
  };
  const interfaces = {
    ...test,
    power: {
      ...test.power,
      test: {
        rebootsByReset: true,
        get: async () => power,
        on: order('on', 'power on'),
        off: order('off', 'power off'),
        reset: order('reset', 'power on'),
      },
    },
    deploy: { ...test.deploy, test: { ...test.deploy['test'], prepareService } },
    boot: {
      ...test.boot,
      test: {
        ...test.boot['test'],
        bootsFromNetwork: true,
        cleanUpInstance: async () => {},
        prepareRamdisk: async (task: Parameters<typeof prepareService>[0]) => {
          await task.boots.put({
            node_uuid: task.node.uuid,
            macs: [],
            method: 'ipxe',
            purpose: 'ramdisk',
            kernel_args: 'a=b',
            files: { kernel: 'file:///images/kernel', ramdisk: 'file:///images/ramdisk' },
          });
        },
      },
    },
    network: { ...test.network, test: noopNetwork },
  } as unknown as typeof test;
  const one = await start({
    rooms: { interfaces },
    options: { 'agent.max_command_attempts': 1, 'agent.command_timeout': 5, 'deploy.http_url': files },
  });
  await one.enrol({
    uuid: NODE,
    provision_state: 'servicing',
    target_provision_state: 'active',
    power_state: 'power on',
    driver_info: { bmc: '192.0.2.9', resident_kexec: true },
    driver_internal_info: { service_steps: [{ interface: 'deploy', step: 'erase_devices', args: {} }], ...internal },
  });
  await one.store.residentAgents.putToken(NODE, 'secret', 'operator');
  await one.store.residentAgents.register(NODE, 'secret', { url: agent.url, certificate, version: 'v', boot_id: 'boot-1' });
  await after(1500, async () => (await one.node(NODE)).provision_state === 'service wait');
  const node = await one.node(NODE);
  expect(node).toMatchObject({ reservation: null, last_error: null });
  const isAwaited = orders.length === 0;
  expect('resident_kexec' in node.driver_internal_info).toBe(isAwaited);
  expect([agent.asked, ordered]).toEqual([commands.map((name) => `${name} secret`), orders]);
  const history = await one.store.history.list({ where: { node_uuid: NODE } });
  expect(history.filter(({ event_type: type }) => type === 'ramdisk_boot').map(({ event }) => event)).toEqual(said);
});
