/** The whole server with simulated machines: deployment of bootable containers. */
import { createHash } from 'node:crypto';
import { startWholeServer, type WholeServer } from '../../support/whole-server';
import { useDatabase } from '../../support/database';
import { until } from '../../support/until';

const database = useDatabase();
let whole: WholeServer;
beforeAll(async () => {
  whole = await startWholeServer(database.connection(), {
    machines: 2,
    options: {
      'DEFAULT.enabled_deploy_interfaces': ['direct', 'bootc'],
      'api.ramdisk_heartbeat_timeout': 2,
      'conductor.check_provision_state_interval': 1,
    },
  });
});
afterAll(() => whole.close(), 30_000);

const NAME = 'registry.example.com:5000/os/debian:13';
const SECRET = Buffer.from('user:a secret').toString('base64');
/** The second text: a heartbeat was being answered when the machine was reset, which ends the step too. */
const INTERRUPTED =
  /The machine booted again while the step ran, and its agent does not answer|Failed to connect to the agent running on node/;
let next = 0;
async function available(instance_info: Readonly<Record<string, unknown>>) {
  const machine = whole.fleet.machines[next++]!;
  const uuid = await whole.enrol(machine, { automated_clean: false, deploy_interface: 'bootc', instance_info });
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await whole.order(uuid, 'provide');
  await whole.reach(uuid, 'available');
  return { uuid, machine };
}

it('deploys a container with its config drive, and shows the secret of the registry to nobody', async () => {
  const { uuid, machine } = await available({ image_source: `oci://${NAME}`, image_pull_secret: SECRET });
  await whole.order(uuid, 'active', { configdrive: { meta_data: { role: 'web' } } });
  expect(await whole.reach(uuid, 'active')).toMatchObject({
    power_state: 'power on',
    last_error: null,
    instance_info: { image_source: `oci://${NAME}`, image_pull_secret: '******' },
  });
  const content = machine.control.content('/dev/sda')!;
  expect(content).toMatchObject({ url: `oci://${NAME}`, sha256: createHash('sha256').update(NAME).digest('hex') });
  expect(content.configDrive!.toString('latin1')).toContain('"role":"web"');
  const paths = [`/v1/nodes/${uuid}`, `/v1/nodes/${uuid}/history?detail=true`, `/v1/events?node=${uuid}&limit=1000`];
  for (const path of paths) expect(JSON.stringify((await whole.call('GET', path)).body)).not.toContain(SECRET);
  const history = JSON.stringify((await whole.call('GET', `/v1/nodes/${uuid}/history?detail=true`)).body);
  for (const step of ['execute_bootc_install', 'set_boot_to_disk']) expect(history).toContain(step);
  await whole.order(uuid, 'deleted');
  expect((await whole.reach(uuid, 'available'))['instance_info']).toEqual({});
});

it('refuses what is no container before the machine is touched, and never counts an interrupted installation', async () => {
  const { uuid, machine } = await available({ image_source: 'http://192.0.2.1/image.raw' });
  const refused = await whole.call('PUT', `/v1/nodes/${uuid}/states/provision`, { target: 'active' });
  expect(refused.status).toBe(400);
  expect(JSON.stringify(refused.body)).toContain('Invalid image href http://192.0.2.1/image.raw.');
  expect(machine.control.isOn()).toBe(false);

  await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/instance_info/image_source', value: `oci://${NAME}` }]);
  machine.control.behave({ stepMs: 3_600_000 });
  await whole.order(uuid, 'active');
  const step = async () => (await whole.call('GET', `/v1/nodes/${uuid}`)).body;
  await until('the installer to run', async () => {
    const { deploy_step: running, provision_state: state } = await step();
    return state === 'wait call-back' && (running as { readonly step?: string } | null)?.step === 'execute_bootc_install';
  });
  await machine.control.act('reset');
  await until('the deployment fails', async () => (await step())['provision_state'] === 'deploy failed');
  expect((await step())['last_error']).toMatch(INTERRUPTED);
  machine.control.behave({ stepMs: 0 });
  await whole.order(uuid, 'active');
  expect(await whole.reach(uuid, 'active')).toMatchObject({ last_error: null });
});
