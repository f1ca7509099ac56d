/** The logs of Redfish services, read from where the last reading ended: in both orders, in pages, with and without $skip. */
import type { LogReading } from '../../../drivers/interfaces';
import { redfishLogs } from '../../../drivers/redfish/logs';
import { createRedfishPool, type RedfishPool } from '../../../wire/redfish';
import { SYSTEM, redfishError, redfishService, type RedfishService } from '../../wire/redfish/service';
import { bmcTask } from '../bmc-task';

const LOG = `${SYSTEM}/LogServices/SEL`;
const ENTRIES = `${LOG}/Entries`;
let service: RedfishService;
let pool: RedfishPool;
let entries: { Id: string; Created: string }[];
let how: { newestFirst: boolean; page: number; skips: boolean; links: boolean };
beforeEach(async () => {
  service = await redfishService();
  pool = createRedfishPool();
  entries = [];
  how = { newestFirst: false, page: 10, skips: true, links: false };
  Object.assign(service.resources[SYSTEM] as object, { LogServices: { '@odata.id': `${SYSTEM}/LogServices` } });
  const services = ['SEL', 'PostCodes', 'Lclog'].map((name) => ({ '@odata.id': `${SYSTEM}/LogServices/${name}` }));
  service.resources[`${SYSTEM}/LogServices`] = { Members: services };
  for (const link of services) service.resources[link['@odata.id']] = { Entries: { '@odata.id': `${link['@odata.id']}/Entries` } };
  service.reply = ({ path }) => {
    const { pathname, searchParams } = new URL(path, 'http://x');
    const single = entries.find(({ Id }) => pathname === `${ENTRIES}/${Id}`);
    if (single) return { status: 200, body: single };
    if (pathname !== ENTRIES) return undefined;
    const asked = searchParams.get('$skip');
    if (asked !== null && !how.skips && !searchParams.has('page')) return { status: 501, body: redfishError('not supported') };
    const from = Number(asked ?? 0);
    const all = (how.newestFirst ? [...entries].reverse() : entries).map((entry) =>
      how.links ? { '@odata.id': `${ENTRIES}/${entry.Id}` } : { '@odata.id': `${ENTRIES}/${entry.Id}`, ...entry },
    );
    const end = from + how.page;
    const next = end < all.length ? { 'Members@odata.nextLink': `${ENTRIES}?$skip=${end}&page=1` } : {};
    return { status: 200, body: { 'Members@odata.count': all.length, Members: all.slice(from, end), ...next } };
  };
});
afterEach(async () => {
  await pool.close();
  await service.close();
});
let number = 0;
const add = (more: object = {}): void => {
  number++;
  const made = { Id: String(number), Created: new Date(number * 1000).toISOString(), MessageId: `E.1.0.M${number}`, Severity: 'Critical' };
  entries.push({ ...made, ...more });
};
beforeEach(() => (number = 0));
const read = (positions: LogReading['positions'] = {}): Promise<LogReading> =>
  redfishLogs(
    bmcTask({
      node: { driver: 'redfish', driver_info: { redfish_address: service.url, redfish_system_id: SYSTEM } },
      options: { 'redfish.connection_attempts': 1 },
      connections: { redfish: pool },
    }).task,
    positions,
  );
const subjects = ({ signals }: LogReading): readonly string[] => signals.map(({ subject }) => subject.replace('E.M', ''));

describe.each([
  ['the oldest first', {}],
  ['the oldest first, without $skip', { skips: false }],
  ['the newest first', { newestFirst: true }],
  ['links only', { links: true }],
  ['the newest first, links only', { newestFirst: true, links: true, page: 3 }],
])('a service that shows %s', (_, changes) => {
  beforeEach(() => Object.assign(how, changes));
  it('is read from the last position on', async () => {
    for (let n = 0; n < 25; n++) add();
    const first = await read();
    expect(subjects(first)).toEqual([]);
    expect(Object.keys(first.positions)).toEqual([ENTRIES]);
    expect(subjects(await read(first.positions))).toEqual([]);
    for (let n = 0; n < 12; n++) add();
    service.asked.length = 0;
    const second = await read(first.positions);
    expect(subjects(second)).toEqual(Array.from({ length: 12 }, (_value, n) => String(26 + n)));
    expect(subjects(await read(second.positions))).toEqual([]);
    // The oldest make room for the newest.
    entries.splice(0, 5);
    for (let n = 0; n < 5; n++) add();
    const third = await read(second.positions);
    expect(subjects(third)).toEqual(['38', '39', '40', '41', '42']);
    expect(third.wasCleared).toBe(false);
    entries.length = 0;
    const cleared = await read(third.positions);
    expect(cleared).toMatchObject({ signals: [], wasCleared: true });
    add();
    expect(subjects(await read(cleared.positions))).toEqual(['43']);
  });
});
it('reads little of a long log that has not changed', async () => {
  for (let n = 0; n < 900; n++) add();
  const { positions } = await read();
  service.asked.length = 0;
  await read(positions);
  expect(service.asked.filter(({ path }) => path.startsWith(ENTRIES))).toHaveLength(1);
});
it('is bounded, whatever the service says', async () => {
  how.page = 200;
  const { positions } = await read();
  for (let n = 0; n < 9000; n++) add();
  service.asked.length = 0;
  expect((await read(positions)).signals.length).toBeLessThanOrEqual(1000);
  expect(service.asked.length).toBeLessThan(60);
});
it('keeps the position of a log that fails for once, and searches logs that are gone anew', async () => {
  add();
  const { positions } = await read();
  const { reply } = service;
  service.reply = ({ path }) => (path.startsWith(ENTRIES) ? { status: 500, body: redfishError('busy') } : undefined);
  expect(await read(positions)).toMatchObject({ positions, signals: [] });
  service.reply = ({ path }) => (path.startsWith(ENTRIES) ? { status: 404, body: redfishError('gone') } : undefined);
  expect((await read(positions)).positions).toEqual({});
  service.reply = reply;
  expect((await read({})).positions).toEqual(positions);
});
it('reads what entries say of parts', async () => {
  const { positions } = await read();
  add({ SensorType: 'Fan', SensorNumber: 3, EntryCode: 'Assert' });
  add({ SensorType: 'Fan', SensorNumber: 3, EntryCode: 'Deassert' });
  add({ Severity: 'Warning', Links: { OriginOfCondition: { '@odata.id': `${SYSTEM}/Memory/A1` } } });
  add({ Severity: 'OK', Message: 'a\nb', MessageId: undefined });
  add({ Resolved: true, SensorType: 'Processor' });
  add({ Severity: undefined });
  add({ Severity: ['x'], MessageId: {} });
  expect((await read(positions)).signals).toEqual([
    { source: 'log', kind: 'fan', subject: 'Fan 3', states: ['critical'] },
    { source: 'log', kind: 'fan', subject: 'Fan 3', states: [] },
    { source: 'log', kind: 'memory', subject: 'Memory/A1', states: ['warning'] },
    { source: 'log', kind: 'other', subject: 'a b', states: [] },
    { source: 'log', kind: 'processor', subject: 'Processor', states: [] },
  ]);
});

it('what is no entry in a log of a BMC is left out', async () => {
  add();
  const { positions } = await read();
  add();
  const { reply } = service;
  service.reply = (...given) => {
    const answer = reply(...given);
    const { Members: members } = ((typeof answer === 'object' && answer.body) || {}) as { Members?: unknown[] };
    members?.push(null, 'x');
    return answer;
  };
  const first = await read(positions);
  expect(subjects(first)).toEqual(['2']);
});
