import type { IncomingHttpHeaders } from 'node:http';
import { createLeast } from '../../../api/http/event-loop';
import { createHealthcheck } from '../../../api/http/healthcheck';
import { loadOptions } from '../../../config/load';
import { HEALTH_CASES, type HealthCase } from '../../support/health-cases';

type HealthChecks = Parameters<typeof createHealthcheck>[1];
type HealthAnswer = Awaited<ReturnType<ReturnType<typeof createHealthcheck>>>;
const { options: DEFAULTS } = loadOptions([], {});
const CALM: HealthChecks = { isDatabaseUp: async () => true, lastingDelay: () => 0, loginRefusal: () => undefined };
const make = (changed: HealthCase['options'] = {}, checks: Partial<HealthChecks> = {}) =>
  createHealthcheck(
    {
      ...DEFAULTS,
      ...Object.fromEntries(Object.entries(changed).map(([name, value]) => [`healthcheck.${name}`, value])),
    },
    { ...CALM, ...checks },
    () => 0,
  );
const ask = (
  { options, method = 'GET', headers = {}, remote = '127.0.0.1' }: Omit<HealthCase, 'expected'>,
  checks?: Partial<HealthChecks>,
): Promise<HealthAnswer | undefined> => {
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])) as IncomingHttpHeaders;
  return make(options, checks)({ method, headers: lower, from: remote, port: 6385 });
};

it.each(HEALTH_CASES)('answers $method with $headers from $remote with $options', async ({ expected, ...request }) => {
  const answer = await ask(request);
  if (expected === 'passed on') expect(answer).toBeUndefined();
  else expect([answer?.status, answer?.type ?? null, answer?.text]).toEqual(expected);
});

it('matches IPv4-mapped IPv6 addresses against IPv4 ranges', async () => {
  expect(await ask({ options: { allowed_source_ranges: ['10.0.0.0/8'] }, remote: '::ffff:10.0.0.1' })).toMatchObject({ status: 200 });
});

it('fails when the database is unavailable, if the backend database is enabled', async () => {
  const options = { backends: ['database'] };
  expect(await ask({ options })).toMatchObject({ status: 200, text: 'OK' });
  const away = { isDatabaseUp: async () => false };
  expect(await ask({ options }, away)).toMatchObject({ status: 503, text: 'DATABASE UNREACHABLE' });
  expect(await ask({}, away)).toMatchObject({ status: 200 });
});

it('fails while Keystone refuses this server, if the backend keystone is enabled', async () => {
  const options = { backends: ['keystone'], detailed: true };
  expect(await ask({ options: { backends: ['keystone'] } })).toMatchObject({ status: 200, text: 'OK' });
  const refused = { loginRefusal: () => 'HTTP status 401; check [keystone_authtoken]username' };
  const answer = await ask({ options, headers: { Accept: 'application/json' } }, refused);
  expect(answer!.status).toBe(503);
  expect(JSON.parse(answer!.text)).toMatchObject({
    reasons: [{ reason: 'KEYSTONE REFUSES THIS SERVER', details: 'HTTP status 401; check [keystone_authtoken]username' }],
  });
  expect(await ask({}, refused)).toMatchObject({ status: 200 });
});

it('fails while the event loop stays delayed, if the backend event_loop is enabled', async () => {
  const options = { backends: ['event_loop'] };
  const delayed = { lastingDelay: () => 251 };
  expect(await ask({ options })).toMatchObject({ status: 200, text: 'OK' });
  expect(await ask({ options }, delayed)).toMatchObject({ status: 503, text: 'EVENT LOOP DELAYED' });
  expect(await ask({}, delayed)).toMatchObject({ status: 200 });
});
it('createLeast() finds the least delay of the last three periods', () => {
  const last = createLeast(3);
  const after = (value: number): number => {
    last.add(value);
    return last.least();
  };
  expect([300, 400, 350, 10, 500, 500, 500].map(after)).toEqual([0, 0, 300, 10, 10, 10, 500]);
});

it('shows details with detailed = true', async () => {
  const options = { detailed: true, backends: ['enable_by_files'], enable_by_file_paths: ['/<none>'] };
  const details = 'File path /<none> is missing';
  const json = await ask({ options, headers: { Accept: 'application/json' } });
  expect(JSON.parse(json!.text)).toEqual({
    detailed: true,
    node_version: process.version,
    now: '1970-01-01T00:00:00.000Z',
    platform: expect.any(String) as unknown,
    reasons: [{ class: 'HealthcheckResult', reason: 'FILE PATH MISSING', details }],
  });
  const html = await ask({ options, headers: { Accept: 'text/html' } });
  expect(html!.text).toContain(
    '<TD>HealthcheckResult</TD>\n    <TD>FILE PATH MISSING</TD>\n<TD>File path /&lt;none&gt; is missing</TD>\n</TR>',
  );
  expect((await ask({ options }))!.text).toBe('FILE PATH MISSING');
});

it.each([
  [{ backends: ['disable_by_fire'] }, '[healthcheck]backends: "disable_by_fire" is not one of disable_by_file'],
  [{ backends: ['disable_by_file', 'enable_by_files'] }, 'exclude each other'],
  [{ allowed_source_ranges: ['10.0.0.0/33'] }, '[healthcheck]allowed_source_ranges: "10.0.0.0/33" is not a network'],
  [{ allowed_source_ranges: ['here'] }, '"here" is not a network'],
])('refuses %j', (options, message) => expect(() => make(options)).toThrow(message));
