import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { certifyErasure, trimErasures } from '../../../conductor/core/erasures';
import type { Context } from '../../../conductor/core/context';
import type { NodeTask } from '../../../conductor/core/node-task';
import type { JsonObject } from '../../../model/json';
import type { NewErasure } from '../../../model/records';
import { flowTask } from '../../support/flow-task';
import { verifyingKey } from '../../../wire/signing/signing-key';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-certify-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const REQUEST = {
  user: 'alice',
  project: 'p',
  request_id: 'req-1',
  requested_at: '2026-01-02T03:04:05.000000',
  instance_uuid: 'i',
  instance_name: 'web',
  lessee: 'tenant',
};
const disk = (name: string, more: JsonObject): JsonObject => ({
  name,
  serial: `S-${name}`,
  wwn: null,
  model: 'M',
  size: 100,
  method: null,
  skipped: null,
  started_at: null,
  ended_at: null,
  seconds: null,
  overwrite_seconds: null,
  sample: null,
  ...more,
});
const TOOK = { started_at: '2026-01-02T03:04:05.000Z', ended_at: '2026-01-02T03:04:07.500Z', seconds: 2.5 };
const DISKS = [
  disk('/dev/nvme0n1', { method: 'nvme-sanitize-crypto', overwrite_seconds: 900, ...TOOK }),
  disk('/dev/sdb', { skipped: 'kept' }),
];
function releasing(
  keyName = 'key.pem',
  choice: object | null = { erase: 'full', keep: [{ name: '/dev/sdb' }] },
  node: object = {},
  request: typeof REQUEST & { readonly released?: Omit<typeof REQUEST, 'instance_uuid' | 'instance_name' | 'lessee'> } = REQUEST,
) {
  const issued: NewErasure[] = [];
  const events: string[] = [];
  const { task } = flowTask({
    node: {
      owner: 'owner',
      lessee: null,
      ...node,
      driver_internal_info: { erase_request: request, agent_version: 'bloomery-agent 1', ...(choice ? { erase_choice: choice } : {}) },
    },
    options: {
      'erasure.signing_key': join(folder, keyName),
      'conductor.node_history': true,
      'conductor.record_step_flows_in_history': false,
    },
    contents: {
      random: randomBytes,
      store: {
        erasures: {
          issue: async (record: NewErasure) => {
            if (issued.some(({ command }) => command === record.command)) return false;
            issued.push(record);
            return true;
          },
        },
      },
    } as unknown as Partial<Context>,
  });
  const noting = Object.create(task, {
    note: { value: (_: object, __: object, rows: readonly { readonly event: string }[]) => events.push(...rows.map(({ event }) => event)) },
  }) as NodeTask;
  return { task: noting, issued, events };
}
const report = (result: unknown, command = 'c1') => ({ step: 'deploy.erase_devices', command, result });

it('certifies what the agent reports of each disk, once for each command', async () => {
  const { task, issued, events } = releasing();
  for (let times = 0; times < 2; times++) await certifyErasure(task, report({ erased_disks: DISKS }));
  expect(issued).toHaveLength(1);
  const [{ document, signature, public_key: key, ...certificate }] = issued as [NewErasure];
  expect(certificate).toMatchObject({
    owner: 'owner',
    lessee: 'tenant',
    instance_uuid: 'i',
    erased: 1,
    skipped: 1,
    serials: ['S-/dev/nvme0n1'],
    command: 'c1',
  });
  expect(verifyingKey(key).signed(document, signature)).toBe(true);
  expect(JSON.parse(document)).toMatchObject({
    uuid: certificate.uuid,
    instance: { uuid: 'i', name: 'web', lessee: 'tenant' },
    requested: {
      by_user: 'alice',
      of_project: 'p',
      request_id: 'req-1',
      at: REQUEST.requested_at,
      erase: 'full',
      keep: [{ name: '/dev/sdb' }],
    },
    disks: [
      {
        name: '/dev/nvme0n1',
        erased: true,
        method: 'NVMe sanitize, crypto erase',
        proves: expect.stringContaining('keys of all user data') as string,
        seconds: 2.5,
        seconds_of_an_overwriting_pass: 900,
        sample: null,
      },
      { name: '/dev/sdb', erased: false, reason: 'The request names it among the disks to keep.' },
    ],
    reported_by: { agent: 'bloomery-agent 1', command: 'c1' },
    issued_by: { conductor: 'here', key: certificate.key_fingerprint },
  });
  expect(events).toEqual([`Certificate of erasure ${certificate.uuid}: 1 of 2 disks erased by deploy.erase_devices, 1 left as they were`]);
});

it.each<[string, unknown, string]>([
  ['ironic-python-agent', { '/dev/sda': null }, 'c1'],
  ['an agent that names no command', { erased_disks: DISKS }, ''],
  ['an agent that claims a method that does not exist', { erased_disks: [{ ...DISKS[0], method: 'magic' }] }, 'c1'],
])('certifies nothing of %s, and says so', async (_, result, command) => {
  const { task, issued, events } = releasing();
  await certifyErasure(task, report(result, command));
  expect(issued).toEqual([]);
  expect(events).toEqual(['The agent reported no result for each disk of step deploy.erase_devices: there is no certificate of erasure']);
});

it('counts no disk as erased whose metadata alone was wiped', async () => {
  const { task, issued } = releasing();
  await certifyErasure(task, report({ erased_disks: [disk('/dev/sda', { method: 'metadata', ...TOOK })] }));
  expect(issued).toMatchObject([{ erased: 0, skipped: 0, serials: [] }]);
  expect(JSON.parse(issued[0]!.document)).toMatchObject({
    disks: [{ name: '/dev/sda', erased: false, proves: expect.any(String) as string }],
  });
});

it('tells who released a machine from who cleaned it later, and a manual cleaning from the choice for the automated one', async () => {
  const later = { ...REQUEST, user: 'operator', released: { user: 'alice', project: 'p', request_id: 'req-0', requested_at: 'then' } };
  const { task, issued } = releasing('key.pem', undefined, { target_provision_state: 'manageable' }, later);
  await certifyErasure(task, report({ erased_disks: DISKS }));
  expect(JSON.parse(issued[0]!.document)).toMatchObject({
    instance: { uuid: 'i', lessee: 'tenant' },
    requested: { by_user: 'operator', erase: null, keep: [{ name: '/dev/sdb' }] },
    released: { by_user: 'alice', of_project: 'p', request_id: 'req-0', at: 'then' },
  });
});

it('adds nothing to the history of a cleaning that nobody chose, if steps are not recorded there', async () => {
  const { task, issued, events } = releasing('key.pem', null);
  await certifyErasure(task, report({ erased_disks: DISKS }));
  expect(issued).toHaveLength(1);
  expect(JSON.parse(issued[0]!.document)).toMatchObject({ requested: { erase: null, keep: [] } });
  expect(events).toEqual([]);
});

it('fails if it cannot be signed', async () => {
  writeFileSync(join(folder, 'broken.pem'), 'no key');
  const { task, issued } = releasing('broken.pem');
  await expect(certifyErasure(task, report({ erased_disks: DISKS }))).rejects.toThrow('it has no private key in PEM');
  expect(issued).toEqual([]);
});

it('removes certificates by their age, unless they are kept for ever', async () => {
  const asked: object[] = [];
  const contextWith = (days: number) =>
    ({
      options: { 'erasure.keep_days': days },
      clock: { now: () => Date.parse('2036-01-11T00:00:00Z') },
      log: { info: () => {} },
      store: {
        erasures: {
          trim: async (limits: object) => {
            asked.push(limits);
            return 2;
          },
        },
      },
    }) as unknown as Context;
  expect(await trimErasures(contextWith(0))).toBe(0);
  expect(asked).toEqual([]);
  expect(await trimErasures(contextWith(10))).toBe(2);
  expect(asked).toEqual([{ before: expect.stringMatching(/^2036-01-01T00:00:00/) as string, atMost: 1000 }]);
});
