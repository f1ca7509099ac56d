/** Probes of services that mean harm, or that are broken: they end, within limits, and give nothing away. */
import { randomBytes } from 'node:crypto';
import { recordingOf } from '../../../commands/probe/record';
import { reportText } from '../../../commands/probe/report';
import { probeRedfish } from '../../../commands/probe/run-probe';
import { walkService } from '../../../commands/probe/walk';
import { bmcUrl } from '../../../commands/probe/probe';
import { silentLog } from '../../../model/log';
import { createRedfishPool, type RedfishPool, type RedfishTarget } from '../../../wire/redfish';
import { send, tableService, testService, type TestService } from './service';

const ROOT = '/redfish/v1';
const link = (path: string) => ({ '@odata.id': path });
const PASSWORD = 'hunter2-hunter2';
const target = (service: TestService, more: Partial<RedfishTarget> = {}): RedfishTarget => ({
  address: service.url,
  username: 'probe-user-7',
  password: PASSWORD,
  authType: 'auto',
  verifyCa: true,
  ...more,
});
let pool: RedfishPool;
beforeEach(() => {
  pool = createRedfishPool();
});
afterEach(() => pool.close());
const surroundings = (signal = new AbortController().signal) => ({ signal, now: () => Date.now(), log: silentLog, progress: () => {} });
const system = (more: Readonly<Record<string, unknown>> = {}) => ({
  [ROOT]: { Systems: link(`${ROOT}/Systems`) },
  [`${ROOT}/Systems`]: { Members: [link(`${ROOT}/Systems/1`)] },
  [`${ROOT}/Systems/1`]: { PowerState: 'On', Manufacturer: 'ACME', ...more },
});

it.each([401, 403, 400])('a login that is refused with %i is tried once', async (status) => {
  const service = await testService((request, response) => {
    if (request.url === `${ROOT}/` || request.url === ROOT)
      send(response, 200, { Systems: link(`${ROOT}/Systems`), Links: { Sessions: link(`${ROOT}/SessionService/Sessions`) } });
    else send(response, status, { error: { message: `bad login ${PASSWORD}` } });
  });
  const { report, service: opened } = await probeRedfish(pool, target(service), undefined, surroundings());
  await service.close();
  expect(opened).toBeUndefined();
  expect(report.findings).toMatchObject([{ check: 'login', result: 'wrong' }]);
  expect(JSON.stringify(report)).not.toContain(PASSWORD);
  expect(service.asked.filter((line) => line.startsWith('POST '))).toHaveLength(1);
  expect(service.asked.filter((line) => !line.endsWith(ROOT) && !line.endsWith(`${ROOT}/`))).toHaveLength(1);
});

it('a wrong password of basic authentication is sent once', async () => {
  let logins = 0;
  const service = await testService((request, response) => {
    if (request.url!.replace(/\/$/, '') === ROOT) {
      send(response, 200, { Systems: link(`${ROOT}/Systems`) });
      return;
    }
    if (request.headers.authorization !== undefined) logins++;
    send(response, 401, {});
  });
  const { report } = await probeRedfish(pool, target(service), undefined, surroundings());
  await service.close();
  expect(report.findings).toMatchObject([{ check: 'login', result: 'wrong' }]);
  expect(logins).toBe(1);
});

it.each([
  ['Base.1.8.PasswordChangeRequired', /wants a new password/],
  ['Base.1.8.InsufficientPrivilege', /role of an administrator/],
])('an account that may read nothing (%s) is said once', async (id, todo) => {
  const service = await testService((request, response) => {
    if (request.url!.replace(/\/$/, '') === ROOT) send(response, 200, { Systems: link(`${ROOT}/Systems`) });
    else send(response, 403, { error: { '@Message.ExtendedInfo': [{ MessageId: id, Message: 'No.' }] } });
  });
  const { report } = await probeRedfish(pool, target(service), undefined, surroundings());
  await service.close();
  expect(report.findings).toMatchObject([{ check: 'login', result: 'wrong', todo: expect.stringMatching(todo) as string }]);
});

it('a service that links on for ever ends at the limits', async () => {
  const service = await testService((request, response) => {
    const path = request.url!.replace(/\/$/, '');
    const more = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`L${index}`, link(`${path}/x${index}`)]));
    send(response, 200, { ...more, Systems: link(`${ROOT}/Systems`), Members: [link(`${path}/m`)], 'Members@odata.nextLink': `${path}/n` });
  });
  const { service: opened } = await probeRedfish(pool, target(service), undefined, surroundings(), 2600);
  const walked = await walkService(opened!, new AbortController().signal, () => {});
  await service.close();
  expect(walked.complete).toBe(false);
  expect(walked.resources.length).toBeLessThanOrEqual(2000);
  expect(service.asked.length).toBeLessThanOrEqual(2700);
}, 120_000);

it('gigantic bodies end the reading, not the probe', async () => {
  const large = JSON.stringify({ text: 'x'.repeat(9 << 20) });
  const service = await testService((request, response) => {
    const path = request.url!.replace(/\/$/, '');
    const body = (system() as Readonly<Record<string, unknown>>)[path];
    if (body) send(response, 200, { ...body, Bios: link(`${ROOT}/large`), SecureBoot: link(`${ROOT}/large`) });
    else response.writeHead(200).end(large);
  });
  const { report } = await probeRedfish(pool, target(service), undefined, surroundings());
  await service.close();
  expect(report.findings.find(({ check }) => check === 'BIOS')).toMatchObject({
    result: 'unknown',
    text: expect.stringContaining('bytes') as string,
  });
});

it('a slow drip ends with the time for the probe', async () => {
  const stop = new AbortController();
  const service = await testService((request, response) => {
    if (request.url!.replace(/\/$/, '') === ROOT) {
      send(response, 200, { Systems: link(`${ROOT}/Systems`) });
      return;
    }
    response.writeHead(200).write('{');
    setImmediate(() => stop.abort(new Error('late')));
  });
  const { report } = await probeRedfish(pool, target(service), undefined, surroundings(stop.signal));
  await service.close();
  expect(report.findings.map(({ result }) => result)).not.toContain('ok');
  expect(report.findings[0]!.todo).toContain('--timeout');
});

it('links and redirects to other hosts are not followed', async () => {
  const other = await testService((_request, response) => send(response, 200, {}));
  const service = await testService((request, response) => {
    const path = request.url!.replace(/\/$/, '');
    const table = system({
      Bios: link(`${other.url.replace('127.0.0.1', 'localhost')}/x`),
      SecureBoot: link(`//${new URL(other.url).host}/x`),
      Storage: link(`${ROOT}/away`),
    });
    const body = (table as Readonly<Record<string, unknown>>)[path];
    if (body) send(response, 200, body);
    else response.writeHead(302, { location: `${other.url}/redfish/v1/away` }).end();
  });
  const { service: opened } = await probeRedfish(pool, target(service), undefined, surroundings());
  await walkService(opened!, new AbortController().signal, () => {});
  await Promise.all([service.close(), other.close()]);
  expect(other.asked).toEqual([]);
});

it('what controls a terminal, and the password that comes back, are not in the output or the recording', async () => {
  const evil = `\u001b[2J${PASSWORD}\u202e\r\n`;
  const service = await tableService(
    system({ Manufacturer: evil, Model: evil, [PASSWORD]: evil, Boot: { 'BootSourceOverrideTarget@Redfish.AllowableValues': [evil] } }),
  );
  const { report, service: opened } = await probeRedfish(pool, target(service), undefined, surroundings());
  const walked = await walkService(opened!, new AbortController().signal, () => {});
  await service.close();
  const about = { target: target(service), program: '1', recorded: new Date().toISOString(), key: randomBytes(32) };
  const texts = [reportText(report), JSON.stringify(report), recordingOf(walked, about).text];
  for (const text of texts) expect(text).not.toContain(PASSWORD);
  for (const character of ['\u001b', '\u202e', '\r']) expect(texts[0]).not.toContain(character);
  expect(report.machine['model']).toContain('******');
});

it.each([
  ['10.0.0.1', 'https://10.0.0.1/'],
  ['fe80::1', 'https://[fe80::1]/'],
  ['http://bmc.example:8000/redfish/v1', 'http://bmc.example:8000/redfish/v1'],
  ['ipmi://10.0.0.1:6230', 'ipmi://10.0.0.1:6230'],
])('the BMC %s is %s', (given, url) => expect(bmcUrl(given).href).toBe(url));
it.each(['https://root:calvin@10.0.0.1', 'ftp://10.0.0.1', 'https://', 'ipmi://', 'a b'])('the BMC %s is refused', (given) =>
  expect(() => bmcUrl(given)).toThrow(Error),
);
