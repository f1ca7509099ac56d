/** [pxe]boot_retry_timeout and enable_netboot_fallback, through the whole server with simulated machines. */
import type { Log } from '../../../model/log';
import { readFaults } from '../../../simulator/bmc/faults';
import { useDatabase } from '../../support/database';
import { nodeEvents } from '../../support/node-events';
import { requestText } from '../../support/request';
import { until } from '../../support/until';
import { timeoutSignal } from '../../../wire/timeout-signal';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

const database = useDatabase();
let whole: WholeServer;
/** The node of each boot retry that began. */
const retried: string[] = [];
const log: Log = {
  debug: () => {},
  info: () => {},
  warn: (message, fields: Readonly<Record<string, unknown>> = {}) => {
    if (message.includes('booted once more')) retried.push(String(fields['node']));
  },
  error: () => {},
  child: () => log,
};
beforeAll(async () => {
  whole = await startWholeServer(database.connection(), {
    machines: 4,
    log,
    options: {
      'pxe.boot_retry_timeout': 2,
      'pxe.boot_retry_check_interval': 1,
      'pxe.enable_netboot_fallback': true,
      'pxe.ipxe_fallback_script': 'inspector.ipxe',
    },
  });
});
afterAll(() => whole.close(), 30_000);

const { entriesOf, powerOns } = nodeEvents(database, () => whole);
const set = (uuid: string, path: string, value: unknown) => whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path, value }]);
/** A node whose machine starts its ramdisk, but no agent calls from it. */
async function deploying(at: number): Promise<{ readonly uuid: string; readonly machine: WholeServer['fleet']['machines'][number] }> {
  const machine = whole.fleet.machines[at]!;
  const uuid = await whole.enrol(machine, { automated_clean: false });
  await whole.provide(uuid);
  machine.control.behave({ neverCalls: true });
  expect(await set(uuid, '/instance_info', whole.deployable())).toMatchObject({ status: 200 });
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'wait call-back');
  return { uuid, machine };
}

it('a machine whose first boot fails is booted again and deploys, and then boots its disk also over the network', async () => {
  const { uuid, machine } = await deploying(0);
  const first = await powerOns(uuid);
  await until('the second boot', async () => (await powerOns(uuid)) > first);
  machine.control.behave({ neverCalls: false });
  await whole.reach(uuid, 'active');
  const scriptOf = async (): Promise<string> => {
    const { body } = await whole.call('GET', `/v1/nodes/${uuid}/ports`);
    const [{ address }] = body['ports'] as readonly [{ readonly address: string }];
    const { text } = await requestText(`${whole.server.bootUrl!}/ipxe/${address.replaceAll(':', '-')}`, 'GET', {
      headers: {},
      signal: timeoutSignal(60_000),
    });
    return text;
  };
  expect(await scriptOf()).toContain('sanboot --no-describe --drive 0x80');
  await whole.order(uuid, 'deleted');
  await whole.reach(uuid, 'available');
  expect(await scriptOf()).toContain('/inspector.ipxe');
}, 60_000);

it('a machine in maintenance is not booted again, while another is', async () => {
  const { uuid } = await deploying(1);
  await whole.call('PUT', `/v1/nodes/${uuid}/maintenance`, { reason: 'the operator looks' });
  const before = await powerOns(uuid);
  const other = await deploying(2);
  const first = await powerOns(other.uuid);
  // The node without maintenance is booted again, so the checks have run.
  await until('the second boot of the other', async () => (await powerOns(other.uuid)) > first);
  expect(await powerOns(uuid)).toBe(before);
}, 60_000);

it('retries at a BMC that refuses them have one entry in the history, until they fail otherwise', async () => {
  const { uuid, machine } = await deploying(3);
  const failures = (): Promise<readonly string[]> => entriesOf(uuid, 'UNKNOWN');
  const retries = async (more: number): Promise<void> => {
    const wanted = retried.filter((node) => node === uuid).length + more;
    await until('the retries', () => retried.filter((node) => node === uuid).length >= wanted);
  };
  machine.faults.now = readFaults({ wrong_password: true });
  await until('a failure', async () => (await failures()).length === 1);
  await retries(4);
  expect(await failures()).toHaveLength(1);
  expect((await whole.call('GET', `/v1/nodes/${uuid}`)).body['last_error']).toMatch(/^Failed to change power state to 'power off'/);
  machine.faults.now = readFaults({ redfish_missing: ['Systems'] });
  await until('another failure', async () => (await failures()).length === 2);
  await retries(3);
  expect(await failures()).toHaveLength(2);
  machine.faults.now = {};
  machine.control.behave({ neverCalls: false });
  await whole.reach(uuid, 'active');
}, 60_000);
