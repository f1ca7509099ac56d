/** Firmware files that are sent to a service: against simulated machines, and the bytes on the wire. */
import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { simpleUpdate } from '../../../drivers/redfish/steps/update';
import { redfishManagement } from '../../../drivers/redfish/steps/management';
import { redfishPower } from '../../../drivers/redfish/power';
import type { Power } from '../../../drivers/interfaces';
import { describeMachine } from '../../../simulator/hardware/description';
import type { HabitName } from '../../../simulator/redfish/makers/habits';
import { createRedfishPool, type RedfishPool } from '../../../wire/redfish';
import { testBmc } from '../../simulator/redfish-bmc';
import { OPERATIONS } from '../../support/odd-bmc/operations';
import { setPower } from '../../support/power';
import { bmcTask } from '../bmc-task';

let pool: RedfishPool;
beforeEach(() => (pool = createRedfishPool()));
afterEach(() => pool.close());
const benchAt = (address: string): ReturnType<typeof bmcTask> =>
  bmcTask({
    node: {
      driver: 'redfish',
      driver_info: { redfish_address: address, redfish_username: 'admin', redfish_password: 'password', redfish_auth_type: 'basic' },
    },
    driver: { power: redfishPower, management: redfishManagement },
    options: { 'redfish.connection_attempts': 1, 'deploy.http_url': 'http://192.0.2.9:8080' },
    connections: { redfish: pool },
  });

it.each(['update-by-multipart', 'update-by-multipart-ami', 'update-by-push'] as const satisfies readonly HabitName[])(
  '%s: the step updates the firmware',
  async (habit) => {
    const bmc = await testBmc(describeMachine(0, '127.0.0.1'), { habits: [habit] });
    try {
      Object.assign(bmc.system, {
        act: async (action: string) => {
          bmc.on = action !== 'off';
          if (bmc.on) bmc.start();
        },
      });
      const { task } = benchAt(bmc.url);
      Object.defineProperty(task, 'power', { value: (target: Power) => setPower(redfishPower, task, target) });
      expect(await OPERATIONS['firmware']!(task, bmc)).toMatchObject({ outcome: { kind: 'done' }, version: '9.9' });
      expect((await bmc.get('/UpdateService'))['HttpPushUriTargetsBusy'] ?? false).toBe(false);
    } finally {
      await bmc.close();
    }
  },
);

describe('the request', () => {
  const FILE = 20 << 20;
  let source: Server;
  let service: Server;
  let update: Record<string, unknown>;
  let refusals: number;
  const got: { path: string; method: string; type: string; length: string; head: string; size: number; digest: string }[] = [];
  const listen = async (server: Server): Promise<string> => {
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  let at: { readonly source: string; readonly service: string };
  const chunk = Buffer.alloc(1 << 20, 'firmware');
  beforeEach(async () => {
    got.length = 0;
    refusals = 0;
    update = {};
    source = createServer((_, response) => {
      response.writeHead(200, { 'content-length': FILE });
      for (let sent = 0; sent < FILE; sent += chunk.length) response.write(chunk);
      response.end();
    });
    service = createServer((request, response) => {
      const say = (status: number, body: unknown): void => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      };
      const path = request.url!;
      if (request.method === 'GET') {
        if (path === '/redfish/v1/') say(200, { Systems: { '@odata.id': '/S' }, UpdateService: { '@odata.id': '/U' } });
        else if (path === '/S') say(200, { Members: [{ '@odata.id': '/S/1' }] });
        else if (path === '/S/1') say(200, { '@odata.id': '/S/1' });
        else say(200, { '@odata.id': '/U', ...update });
        return;
      }
      const digest = createHash('sha256');
      let [size, head] = [0, ''];
      request.on('data', (part: Buffer) => {
        if (head.length < 2000) head += part.toString('latin1', 0, 2000);
        size += part.length;
        digest.update(part);
      });
      request.on('end', () => {
        const { 'content-type': type = '', 'content-length': length = '' } = request.headers;
        got.push({ path, method: request.method!, type, length, head, size, digest: digest.digest('hex') });
        if (request.method === 'PATCH') say(200, {});
        else if (refusals-- > 0) say(400, { error: { message: 'ImageURI cannot be fetched', code: 'Base.1.0.GeneralError' } });
        else say(200, {});
      });
    });
    at = { source: await listen(source), service: await listen(service) };
  });
  afterEach(async () => {
    await pool.close();
    for (const server of [source, service]) {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    }
  });
  const act = { '#UpdateService.SimpleUpdate': { target: '/U/fetch' } };
  const start = (component?: string): Promise<unknown> => simpleUpdate(benchAt(at.service).task, `${at.source}/bios.bin`, component);

  it('has the parts of the form and the whole file, with its length', async () => {
    update = { MultipartHttpPushUri: '/U/form' };
    await start();
    const [{ path, type, length, head, size }] = got as [(typeof got)[number]];
    const boundary = /^multipart\/form-data; boundary=(bloomery-\S+)$/.exec(type)![1]!;
    expect([path, Number(length)]).toEqual(['/U/form', size]);
    expect(head.split('firmwarefirmware', 1)[0]).toBe(
      `--${boundary}\r\nContent-Disposition: form-data; name="UpdateParameters"\r\nContent-Type: application/json\r\n\r\n{"Targets":[]}\r\n` +
        `--${boundary}\r\nContent-Disposition: form-data; name="UpdateFile"; filename="bios.bin"\r\nContent-Type: application/octet-stream\r\n\r\n`,
    );
    expect(size).toBeGreaterThan(FILE);
  });
  it('is the file alone for HttpPushUri, between reserving the updates and freeing them', async () => {
    update = { HttpPushUri: '/U/push', HttpPushUriTargetsBusy: false };
    await start();
    const digest = createHash('sha256');
    for (let sent = 0; sent < FILE; sent += chunk.length) digest.update(chunk);
    expect(got.map(({ method, path }) => `${method} ${path}`)).toEqual(['PATCH /U', 'POST /U/push', 'PATCH /U']);
    expect(got.map(({ head }) => head.slice(0, 60))).toEqual([
      '{"HttpPushUriTargetsBusy":true}',
      'firmware'.repeat(8).slice(0, 60),
      '{"HttpPushUriTargetsBusy":false}',
    ]);
    expect(got[1]).toMatchObject({ type: 'application/octet-stream', length: String(FILE), size: FILE, digest: digest.digest('hex') });
  });
  it('follows a refusal to fetch the file, and the protocols that a service lists', async () => {
    update = { Actions: act, MultipartHttpPushUri: '/U/form' };
    refusals = 1;
    await start();
    expect(got.map(({ path }) => path)).toEqual(['/U/fetch', '/U/form']);
    got.length = 0;
    update['Actions'] = { '#UpdateService.SimpleUpdate': { target: '/U/fetch', 'TransferProtocol@Redfish.AllowableValues': ['TFTP'] } };
    await start();
    expect(got.map(({ path }) => path)).toEqual(['/U/form']);
  });
  it.each<[string, object, string]>([
    ['takes no files and fetches none', {}, 'The attribute #UpdateService.SimpleUpdate is missing from the resource /U'],
    [
      'another client has reserved',
      { HttpPushUri: '/U/push', HttpPushUriTargetsBusy: true },
      'another client has reserved the updates of /U',
    ],
    ['takes smaller files only', { HttpPushUri: '/U/push', MaxImageSizeBytes: 1000 }, '/U takes 1000 at most (MaxImageSizeBytes)'],
  ])('is not sent to a service that %s', async (_, shown, words) => {
    update = { ...shown };
    await expect(start()).rejects.toThrow(words);
    expect(got).toEqual([]);
  });
});
