import type { IncomingHttpHeaders } from 'node:http';
import { createHealthcheck, type HealthAnswer } from '../../../api/http/healthcheck';
import { loadOptions } from '../../../config/load';
import { HEALTH_CASES, type HealthCase } from '../../support/health-cases';

const { options: DEFAULTS } = loadOptions([], {});
const make = (changed: HealthCase['options'] = {}, isUp = async (): Promise<boolean> => true) =>
  createHealthcheck(
    {
      ...DEFAULTS,
      ...Object.fromEntries(Object.entries(changed).map(([name, value]) => [`healthcheck.${name}`, value])),
    },
    isUp,
    () => 0,
  );
const ask = (
  { options, method = 'GET', headers = {}, remote = '127.0.0.1' }: Omit<HealthCase, 'expected'>,
  isUp?: () => Promise<boolean>,
): Promise<HealthAnswer | undefined> => {
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])) as IncomingHttpHeaders;
  return make(options, isUp)({ method, headers: lower, from: remote, port: 6385 });
};

it.each(HEALTH_CASES)('$method $headers $remote with $options', async ({ expected, ...request }) => {
  const answer = await ask(request);
  if (expected === 'passed on') expect(answer).toBeUndefined();
  else expect([answer?.status, answer?.type ?? null, answer?.text]).toEqual(expected);
});

it('knows IPv4 callers of a socket that takes both kinds', async () => {
  expect(await ask({ options: { allowed_source_ranges: ['10.0.0.0/8'] }, remote: '::ffff:10.0.0.1' })).toMatchObject({ status: 200 });
});

it('fails when the database is away, if it is to look', async () => {
  const options = { backends: ['database'] };
  expect(await ask({ options })).toMatchObject({ status: 200, text: 'OK' });
  expect(await ask({ options }, async () => false)).toMatchObject({ status: 503, text: 'DATABASE UNREACHABLE' });
  expect(await ask({}, async () => false)).toMatchObject({ status: 200 });
});

it('tells details when it is to', async () => {
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
