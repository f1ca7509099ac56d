/**
 * The conductor's process is killed (SIGKILL) while iDRACs import a configuration, have their job queue cleared, and are reset. It starts
 * again, and each node reaches the end of its cleaning.
 */
import { tasksOf } from '../../../simulator/hardware/task-records';
import { type Body, useKilledServer } from '../../support/killed-server';
import { until } from '../../support/until';

const CONDUCTOR = 'conductor-1';
const { call, enrol, kill, machine, start } = useKilledServer({
  machines: 3,
  hosts: { front: 'api,boot', [CONDUCTOR]: 'conductor' },
  options: () => ({
    DEFAULT: {
      enabled_hardware_types: 'idrac',
      enabled_bios_interfaces: 'idrac-redfish',
      enabled_boot_interfaces: 'idrac-redfish-virtual-media',
      enabled_inspect_interfaces: 'idrac-redfish',
      enabled_management_interfaces: 'idrac-redfish',
      enabled_power_interfaces: 'idrac-redfish',
      enabled_raid_interfaces: 'idrac-redfish',
      enabled_vendor_interfaces: 'idrac-redfish',
    },
    conductor: { heartbeat_timeout: 5 },
    redfish: { connection_attempts: 1, connection_retry_interval: 0 },
  }),
  // An import outlives the restart of the conductor, so that the next one meets it. So does the reset.
  fleet: { maker: () => ({ personality: 'dell-idrac9' }), taskMs: 15_000, faults: () => ({ restart: 60_000 }) },
});
const node = (uuid: string): Promise<Body> => call('GET', `/v1/nodes/${uuid}`);
async function reach(uuid: string, state: string): Promise<void> {
  let found: Body = {};
  await until(`${uuid} in ${state}`, async () => {
    found = await node(uuid);
    const { provision_state: now, last_error: error } = found;
    if (typeof error === 'string' && (now as string).endsWith('failed')) throw new Error(`${uuid} is ${now as string}: ${error}`);
    return now === state && found['reservation'] === null;
  }).catch((error: unknown) => {
    throw new Error(`it stays so: ${JSON.stringify(found)}`, { cause: error });
  });
}
async function cleaned(index: number, kind: string, step: string): Promise<string> {
  const uuid = await enrol(machine(index), {
    driver: 'idrac',
    automated_clean: false,
    // A boot image for UEFI needs a boot loader, which this server does not have.
    properties: { capabilities: 'boot_mode:bios' },
  });
  await call('PUT', `/v1/nodes/${uuid}/states/provision`, { target: 'manage' });
  await reach(uuid, 'manageable');
  if (kind === 'management') machine(index).faults.now = { ...machine(index).faults.now, latency: 1000 };
  const more = kind === 'management' ? { disable_ramdisk: true } : {};
  await call('PUT', `/v1/nodes/${uuid}/states/provision`, { target: 'clean', clean_steps: [{ interface: kind, step }], ...more });
  return uuid;
}
const stepIs = (uuid: string, step: string) => async (): Promise<boolean> => ((await node(uuid))['clean_step'] as Body)['step'] === step;

it('an import, the clearing of the job queue and a reset end in spite of kill -9', async () => {
  const importing = await cleaned(0, 'deploy', 'erase_devices_metadata');
  const resetting = await cleaned(2, 'management', 'known_good_state');
  const imports = () => tasksOf(machine(0).control.hardware).filter(({ name }) => name.includes('Import'));
  await until('the iDRAC imports', () => imports().some(({ phase }) => phase === 'running'));
  await until('the iDRAC was reset', async () => ((await node(resetting))['driver_internal_info'] as Body)['idrac_reset'] === true);
  const clearing = await cleaned(1, 'management', 'clear_job_queue');
  await until('the queue is cleared', stepIs(clearing, 'clear_job_queue'));
  await kill(CONDUCTOR);
  for (const index of [1, 2]) machine(index).faults.now = { restart: 60_000 };
  await start(CONDUCTOR);
  await Promise.all([importing, clearing, resetting].map((uuid) => reach(uuid, 'manageable')));
  for (const uuid of [importing, clearing, resetting])
    expect(await node(uuid)).toMatchObject({ last_error: null, clean_step: {}, maintenance: false });
  expect((await node(resetting))['driver_internal_info']).not.toHaveProperty('idrac_reset');
  // The import that the killed one had begun came to its end first.
  expect(imports().map(({ phase }) => phase)).toEqual(['completed', 'completed']);
}, 900_000);
