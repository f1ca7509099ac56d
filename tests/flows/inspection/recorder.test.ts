/**
 * A recorder beside the whole server: its token is its only login, a changed disk and silence become events, and recording ends with the
 * instance.
 */
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { configdriveOf } from '../../../drivers/agent/configdrive';
import { silentLog } from '../../../model/log';
import { silentMetrics } from '../../../model/metrics';
import { tree } from '../../../ramdisk-agent/system/tree';
import { settingsOnDrive } from '../../../ramdisk-agent/drive-settings';
import { readHardware } from '../../../ramdisk-agent/record-hardware';
import { pushOnce, type Recording } from '../../../ramdisk-agent/recorder';
import { diskHealthOf, type DiskHealth } from '../../../model/rules/health-smart';
import { systemClock, timestamp } from '../../../model/clock';
import { markStale, recorderData, recorderWatch } from '../../../conductor/core/recorders';
import type { Context } from '../../../conductor/core/context';
import { fileTree } from '../../ramdisk-agent/support';
import { useDatabase } from '../../support/database';
import { testTask } from '../../support/task';
import { startWholeServer, type WholeServer } from '../../support/whole-server';
import { until } from '../../support/until';

const database = useDatabase();
let whole: WholeServer;
let root: string;
let uuid: string;

beforeAll(async () => {
  whole = await startWholeServer(database.connection(), {
    machines: 1,
    options: { 'recorder.enabled': true, 'recorder.check_interval': 0, 'recorder.max_pushes_per_minute': 100 },
  });
  root = fileTree({
    'proc/cpuinfo': 'processor\t: 0\n',
    'sys/block/sda/size': '2048\n',
    'sys/block/sda/device/wwid': 'naa.5000c500a1b2c3d4\n',
  });
});
afterAll(async () => whole?.close());

const recording = (told: ReturnType<typeof settingsOnDrive>): Recording => ({
  pace: { intervalMs: 300_000, jitter: 0.3 },
  identity: async () => ({ url: whole.server.apiUrl!, node: told.node!, token: told.token! }),
  read: () =>
    readHardware({
      tree: tree(root),
      run: async () => '',
      addresses: () => ({}),
      machine: 'x86_64',
      hostname: () => 'host',
      bootInterface: null,
      bootedFromMedium: false,
    }),
  bootId: 'b',
  trust: { insecure: false },
  clock: systemClock,
  random: Math.random,
  log: silentLog,
  signal: new AbortController().signal,
});
const metric = async (line: string): Promise<number> => {
  const text = await (await fetch(`${whole.server.apiUrl!}/metrics`)).text();
  return Number(
    text
      .split('\n')
      .find((candidate) => candidate.startsWith(line))
      ?.slice(line.length) ?? 0,
  );
};

it('a deployed host pushes its hardware with the token of its config drive', async () => {
  const [machine] = whole.fleet.machines;
  uuid = await whole.enrol(machine!);
  for (const [target, state] of [
    ['manage', 'manageable'],
    ['provide', 'available'],
  ] as const) {
    await whole.order(uuid, target);
    await whole.reach(uuid, state);
  }
  await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/instance_info', value: whole.deployable() }]);
  await whole.order(uuid, 'active', { configdrive: { meta_data: { 'local-hostname': 'host' } } });
  await whole.reach(uuid, 'active');
  expect(await metric('bloomery_recorder_nodes{state="fresh"} ')).toBe(0);
  // The server keeps neither the drive nor the token (only its hash): the test makes the same drive again, with a new token.
  const context = {
    options: whole.server.options,
    random: randomBytes,
    connections: {},
    store: database.store(),
  } as unknown as Context;
  const node = await database.store().nodes.find(uuid);
  const before = await database.store().hardware.findToken(uuid);
  expect(before?.token_hash).toMatch(/^[0-9a-f]{64}$/);
  const recorder = (await recorderData(context, node))!;
  const packed = await configdriveOf(testTask({ node: { ...node, instance_info: { configdrive: {} } }, recorder }).task);
  const drive = join(root, 'drive');
  writeFileSync(drive, gunzipSync(Buffer.from(packed!, 'base64')));
  const told = settingsOnDrive(drive, 'bloomery-recorder');
  expect(told).toMatchObject({ node: uuid, interval: 300, url: whole.server.apiUrl });
  expect((await database.store().hardware.findToken(uuid))?.token_hash).toBe(createHash('sha256').update(told.token!).digest('hex'));
  expect(await pushOnce(recording(told))).toBe('recorded');
  expect(await pushOnce(recording(told))).toBe('unchanged');
  writeFileSync(join(root, 'token'), told.token!);
});

const again = (): Recording => recording({ node: uuid, token: readFileSync(join(root, 'token'), 'utf8') });

it('a changed disk is in the lists, the events, the history and the metrics after the next push', async () => {
  const { resume } = (await whole.call('GET', '/v1/events')).body as { resume: string };
  rmSync(join(root, 'sys/block/sda/device/wwid'));
  writeFileSync(join(root, 'sys/block/sda/device/wwid'), 'naa.5000c500ffffffff\n');
  expect(await pushOnce(again())).toBe('recorded');
  const { body } = await whole.call('GET', `/v1/nodes/${uuid}/hardware/changes`);
  expect(body['changes']).toMatchObject([
    { kind: 'vanished', component: 'disk', key: '0x5000c500a1b2c3d4' },
    { kind: 'appeared', component: 'disk', key: '0x5000c500ffffffff', after: { size: 1048576 } },
  ]);
  expect((await whole.call('GET', `/v1/hardware/changes?since=${new Date(Date.now() - 60_000).toISOString()}`)).body).toEqual(body);
  let events: readonly { readonly payload: object }[] = [];
  // Transactions of other tests on the same server hold events back for a moment.
  await until('its event', async () => {
    events = (await whole.call('GET', `/v1/events?kind=hardware&since=${resume}&node=${uuid}`)).body['events'] as typeof events;
    return events.length > 0;
  });
  expect(events).toMatchObject([{ payload: { count: 2 } }]);
  expect(await metric('bloomery_recorder_changes_total{component="disk",kind="appeared"} ')).toBe(1);
  const { history } = (await whole.call('GET', `/v1/nodes/${uuid}/history?detail=true`)).body as { history: { event_type: string }[] };
  expect(history.filter(({ event_type: type }) => type === 'hardware')).toHaveLength(1);
});

it('what the disks say of themselves is shown, and an alert until they are well or gone', async () => {
  const disk = { name: '/dev/sda', serial: 'S1', model: 'M', passed: true, temperature: 30, pending_sectors: 0 };
  const push = async (...smart: readonly DiskHealth[]): Promise<string> => pushOnce({ ...again(), smart: async () => smart });
  const alerts = async () => (await whole.call('GET', `/v1/nodes/${uuid}/health`)).body['alerts'] as readonly { readonly rule: string }[];
  const rules = async () => (await alerts()).filter((alert) => 'source' in alert && alert.source === 'smart').map(({ rule }) => rule);
  expect(await push(disk)).toBe('unchanged');
  await until('its values', async () => {
    const { body } = await whole.call('GET', `/v1/nodes/${uuid}/hardware`);
    return JSON.stringify(diskHealthOf(body['smart'])) === JSON.stringify(diskHealthOf([disk]));
  });
  expect(await rules()).toEqual([]);
  await push({ ...disk, passed: false });
  expect(await alerts()).toMatchObject([
    { source: 'hardware', rule: 'drive_lost' },
    { source: 'smart', rule: 'drive_failing', subject: 'disk S1', severity: 'warning', text: 'disk S1 may fail soon (predicted failure)' },
  ]);
  await push(disk);
  expect(await rules()).toEqual(['drive_failing']);
  await push(disk);
  expect(await rules()).toEqual([]);
  await push({ ...disk, critical_warning: 8 });
  expect(await rules()).toEqual(['drive_failed']);
  await push();
  await pushOnce({ ...again(), smart: async () => [], bootId: 'last' });
  expect(await rules()).toEqual([]);
  await until('the times of all pushes', async () => {
    const { body } = await whole.call('GET', `/v1/nodes/${uuid}/hardware`);
    return body['boot_id'] === 'last';
  });
  const { history } = (await whole.call('GET', `/v1/nodes/${uuid}/history?detail=true`)).body as { history: { event: string }[] };
  expect(history.map(({ event }) => event)).toContain('Health, cleared: disk S1 has failed (failed) (the part is not there any more)');
});

it('a recorder that does not push is reported as stale once, and its next push as fresh', async () => {
  const { hardware } = database.store();
  const told: string[] = [];
  const log = { ...silentLog, warn: (line: string) => void told.push(line) };
  let now = systemClock.now();
  const options = { 'recorder.stale_after': 900, 'recorder.check_interval': 30, 'conductor.node_history': true };
  const context = { options, clock: { now: () => now }, store: database.store(), log, metrics: silentMetrics } as unknown as Context;
  const watch = recorderWatch();
  const rounds = async (seconds: number): Promise<number> => {
    let stale = 0;
    for (const end = now + seconds * 1000; now < end; now += 30_000) stale += await markStale(context, watch);
    return stale;
  };
  // The watch has just begun, so the old time of the last push does not count as silence.
  await database.query(`UPDATE hardware SET received_at = '2020-01-01' WHERE node_uuid = $1`, [uuid]);
  expect(await rounds(870)).toBe(0);
  // After a pause of the rounds (the database was away), the time of silence begins anew.
  now += 600_000;
  expect(await rounds(870)).toBe(0);
  expect(await rounds(120)).toBe(1);
  expect(await rounds(120)).toBe(0);
  expect(told).toHaveLength(1);
  expect((await whole.call('GET', `/v1/nodes/${uuid}/hardware`)).body).toMatchObject({ stale: true });
  expect(await hardware.counts()).toEqual({ fresh: 0, stale: 1 });
  const { digest } = (await hardware.findToken(uuid))!;
  const sign = { nodeUuid: uuid, digest: digest!, bootId: 'c', at: timestamp(systemClock.now()) };
  expect(await hardware.recordUnchanged([sign], true)).toBe(1);
  expect(await hardware.recordUnchanged([sign, { ...sign, nodeUuid: 'other' }], true)).toBe(0);
  const { body } = await whole.call('GET', `/v1/nodes/${uuid}/hardware`);
  expect(body).toMatchObject({ stale: false, boot_id: 'c' });
  const told2 = await database.query<{ payload: { stale: boolean } }>(`SELECT payload FROM events WHERE kind = 'recorder' ORDER BY id`);
  expect(told2.map(({ payload }) => payload.stale)).toEqual([true, false]);
});

it('the end of the instance revokes the token and deletes the record', async () => {
  await whole.order(uuid, 'deleted');
  await whole.reach(uuid, 'available');
  await expect(pushOnce(again())).rejects.toThrow('the service answers 403');
  expect((await whole.call('GET', `/v1/nodes/${uuid}/hardware`)).status).toBe(404);
});
