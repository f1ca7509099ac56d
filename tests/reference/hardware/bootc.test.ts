/** The deploy interface bootc beside the real Ironic: what the validation says, and what the agent is told. */
import { gzipSync } from 'node:zlib';
import type { JsonObject } from '../../../model/records';
import { type FakeAgent, startFakeAgent } from '../../support/fakes/fake-agent';
import { NEWEST_VERSION } from '../../support/newest';
import { until } from '../../support/until';
import { type Both, ENABLED, startBoth } from '../both';
import { isoImage } from '../../../wire/images/iso9660';
import { ask } from '../compare';

let both: Both;
beforeAll(async () => {
  const settings = {
    DEFAULT: { ...ENABLED, enabled_deploy_interfaces: 'fake,bootc', default_deploy_interface: 'bootc' },
    agent: { require_tls: 'false' },
    deploy: { erase_devices_priority: '0', erase_devices_metadata_priority: '0' },
  };
  both = await startBoth(settings);
}, 1_800_000);
afterAll(() => both?.stop());

type Side = 'reference' | 'ours';
const send = async (side: Side, method: string, path: string, body?: unknown): Promise<JsonObject> => {
  const answer = await ask(both[side], { method, path: `/v1${path}`, version: NEWEST_VERSION, body });
  if (answer.status >= 400) throw new Error(`${side}: ${method} ${path}: ${answer.status} ${answer.body}`);
  return (answer.body === '' ? {} : JSON.parse(answer.body)) as JsonObject;
};
const IMAGE = 'oci://registry.example.com:5000/os/debian:13';
const AUTH = Buffer.from('user:a secret').toString('base64');
const DRIVE = gzipSync(isoImage('config-2', { 'openstack/latest/meta_data.json': Buffer.from('{}') }, 0)).toString('base64');
const ID = '1be26c0b-03f2-4d2e-ae87-c02d7f33c7a1';
const create = (side: Side, uuid: string, instance: JsonObject, more: JsonObject = {}) =>
  send(side, 'POST', '/nodes', { uuid, driver: 'fake-hardware', deploy_interface: 'bootc', automated_clean: false, ...more }).then(() =>
    send(side, 'PATCH', `/nodes/${uuid}`, [{ op: 'add', path: '/instance_info', value: instance }]),
  );

it.each<[string, JsonObject]>([
  ['no image', {}],
  ['an image of a web server', { image_source: 'http://192.0.2.1/image.raw' }],
  ['an image of Glance', { image_source: '6f4a7a55-3c6d-4f1f-9a6e-1bd8eb7d5a11' }],
  ['a container', { image_source: IMAGE }],
  ['hints that are none', { image_source: IMAGE, root_device: { size: 'much' } }],
])('the validation of %s has the same result and reason', async (what, instance) => {
  const uuid = ID.replace(/^.{8}/, Buffer.from(what).toString('hex').slice(-8));
  const [reference, ours] = await Promise.all(
    (['reference', 'ours'] as const).map(async (side) => {
      await create(side, uuid, instance);
      return (await send(side, 'GET', `/nodes/${uuid}/validate`))['deploy'];
    }),
  );
  expect(ours).toEqual(reference);
});

/** An agent like ironic-python-agent, whose step never ends. */
const startAgent = (): Promise<FakeAgent> => {
  const commands: JsonObject[] = [];
  return startFakeAgent(({ method, body }) => {
    if (method === 'GET') return { body: { commands } };
    const name = body!.name.split('.')[1]!;
    const steps = { deploy_steps: { GenericHardwareManager: [] }, hardware_manager_version: { GenericHardwareManager: '1.2' } };
    const isList = name === 'get_deploy_steps';
    const command = {
      id: String(commands.length),
      command_name: name,
      command_status: isList ? 'SUCCEEDED' : 'RUNNING',
      command_error: null,
      command_result: isList ? steps : null,
    };
    commands.push(command);
    return { body: command };
  });
};

it('the agent is told the same step, with the same arguments', async () => {
  const told = await Promise.all(
    (['reference', 'ours'] as const).map(async (side) => {
      const agent = await startAgent();
      try {
        const secrets = { image_pull_secret: AUTH, bootc_authorized_keys: 'ssh-ed25519 AAAA', bootc_tpm2_luks: true };
        await create(side, ID, { image_source: IMAGE, ...secrets });
        const state = async (): Promise<unknown> => (await send(side, 'GET', `/nodes/${ID}`))['provision_state'];
        const reach = (wanted: string) => until(`${side}: ${wanted}`, async () => (await state()) === wanted, 100);
        await send(side, 'PUT', `/nodes/${ID}/states/provision`, { target: 'manage' });
        await reach('manageable');
        await send(side, 'PUT', `/nodes/${ID}/states/provision`, { target: 'provide' });
        await reach('available');
        await send(side, 'PUT', `/nodes/${ID}/states/provision`, { target: 'active', configdrive: DRIVE });
        await reach('wait call-back');
        const { config } = await send(side, 'GET', `/lookup?node_uuid=${ID}`);
        const beat = { callback_url: agent.url, agent_version: '13.0.0', agent_token: (config as JsonObject)['agent_token'] };
        const install = () => agent.asked.find(({ body }) => body?.name === 'deploy.execute_deploy_step')?.body!.params;
        await until(
          `${side}: the step`,
          async () => {
            await ask(both[side], { method: 'POST', path: `/v1/heartbeat/${ID}`, version: NEWEST_VERSION, body: beat });
            return install() !== undefined;
          },
          500,
        );
        const { step, node } = install()!;
        const { instance_info: info } = node as { readonly instance_info: JsonObject };
        const { priority: _, ...rest } = step as JsonObject;
        return { step: rest, info, commands: agent.asked.flatMap(({ body }) => body?.name ?? []) };
      } finally {
        await agent.close();
      }
    }),
  );
  const [reference, ours] = told;
  expect(ours!.step).toEqual(reference!.step);
  expect(ours!.info).toMatchObject({ bootc_authorized_keys: 'ssh-ed25519 AAAA', bootc_tpm2_luks: true });
  expect(ours!.info['image_pull_secret']).toBe(reference!.info['image_pull_secret']);
  expect(ours!.commands).toEqual(reference!.commands);
}, 300_000);
