/** BMCs, ramdisks, agents and users whose texts have U+0000 and lone surrogates: every flow ends, and says why. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { until } from '../support/until';
import { expectBounded, useAttackedServer } from './watchdog';

const server = useAttackedServer(
  undefined,
  `[DEFAULT]
enabled_hardware_types = fake-hardware,redfish
enabled_power_interfaces = fake,redfish
enabled_management_interfaces = fake,redfish
enabled_inspect_interfaces = fake,agent
enabled_deploy_interfaces = direct,fake
[inspector]
require_managed_boot = false
power_off = false
[conductor]
file_url_allowed_paths = /var/lib/images
[redfish]
connection_attempts = 1`,
);
const headers = { 'content-type': 'application/json', 'x-openstack-ironic-api-version': '1.95', 'x-forwarded-for': '192.0.2.7' };
const call = async (method: string, path: string, body?: unknown) => {
  const { status, text } = await server.call(method, path, { headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  return { status, body: (text.startsWith('{') ? JSON.parse(text) : {}) as Readonly<Record<string, unknown>> };
};
const NODES = 10;
/** A text in JSON has the characters as escapes. */
const REFUSED = 'no \0 \ud800 such \udfff thing\0';

let bmc: Server;
beforeAll(async () => {
  bmc = createServer((request, response) => {
    request.resume();
    response.writeHead(400, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({ error: { code: REFUSED, message: REFUSED, '@Message.ExtendedInfo': [{ MessageId: REFUSED, Message: REFUSED }] } }),
    );
  });
  await new Promise<void>((resolve) => bmc.listen(0, '127.0.0.1', resolve));
});
afterAll(() => new Promise((resolve) => bmc.close(resolve)));

const reaches = async (uuid: string, state: string) => {
  let node: Readonly<Record<string, unknown>> = {};
  await until(`the node is in ${state}`, async () => {
    node = (await call('GET', `/v1/nodes/${uuid}`)).body;
    return node['provision_state'] === state && node['last_error'] !== null && node['reservation'] === null;
  });
  return node;
};
const verb = async (uuid: string, target: string) =>
  expect(await call('PUT', `/v1/nodes/${uuid}/states/provision`, { target })).toMatchObject({ status: 202 });
const made = async (body: object): Promise<string> => {
  const { status, body: node } = await call('POST', '/v1/nodes', body);
  expect([status, node]).toMatchObject([201, {}]);
  return node['uuid'] as string;
};
const manageable = async (more: object = {}): Promise<string> => {
  const uuid = await made({ driver: 'fake-hardware', deploy_interface: 'fake', inspect_interface: 'agent', ...more });
  await verb(uuid, 'manage');
  await until('the node is manageable', async () => (await call('GET', `/v1/nodes/${uuid}`)).body['provision_state'] === 'manageable');
  return uuid;
};
const many = <T>(work: (index: number) => Promise<T>): Promise<readonly T[]> =>
  Promise.all(Array.from({ length: NODES }, (_, at) => work(at)));

it('a BMC whose error has such characters: the verification fails', async () => {
  const { port } = bmc.address() as AddressInfo;
  const driver_info = {
    redfish_address: `http://127.0.0.1:${port}`,
    redfish_system_id: '/redfish/v1/Systems/1',
    redfish_username: 'u',
    redfish_password: 'p',
  };
  const cost = await server.attack(() =>
    many(async () => {
      const uuid = await made({ driver: 'redfish', driver_info });
      await verb(uuid, 'manage');
      expect((await reaches(uuid, 'enroll'))['last_error']).toMatch(/no \ufffd \ufffd such \ufffd thing/);
    }),
  );
  expectBounded(cost);
});

it('an inventory whose error has such characters, without authentication: the inspection fails', async () => {
  const cost = await server.attack(() =>
    many(async (at) => {
      const uuid = await manageable();
      const mac_address = `52:54:00:0d:00:${at.toString(16).padStart(2, '0')}`;
      expect((await call('POST', '/v1/ports', { node_uuid: uuid, address: mac_address })).status).toBe(201);
      await verb(uuid, 'inspect');
      await until('the node waits', async () => (await call('GET', `/v1/nodes/${uuid}`)).body['provision_state'] === 'inspect wait');
      const inventory = {
        interfaces: [{ name: 'eth0\0', mac_address }],
        memory: { physical_mb: 1 },
        cpu: { count: 1, architecture: 'x\0' },
      };
      expect((await call('POST', '/v1/continue_inspection', { inventory, error: REFUSED })).status).toBeLessThan(500);
      expect((await reaches(uuid, 'inspect failed'))['last_error']).toMatch(/no \ufffd \ufffd such \ufffd thing/);
    }),
  );
  expectBounded(cost);
});

it.each(['file:///var/lib/images/disk.img%00', 'file:///var/lib/images/\0', 'http://127.0.0.1:1/%00\0'])(
  'an image at %j: the deployment is refused or fails',
  async (image_source) => {
    const cost = await server.attack(() =>
      many(async () => {
        const uuid = await manageable({
          deploy_interface: 'direct',
          instance_info: { image_source, image_checksum: 'a'.repeat(64), image_disk_format: 'raw' },
        });
        await call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/automated_clean', value: false }]);
        await verb(uuid, 'provide');
        await until('the node is available', async () => (await call('GET', `/v1/nodes/${uuid}`)).body['provision_state'] === 'available');
        const { status } = await call('PUT', `/v1/nodes/${uuid}/states/provision`, { target: 'active' });
        expect([202, 400]).toContain(status);
        if (status === 202) await reaches(uuid, 'deploy failed');
      }),
    );
    expectBounded(cost);
  },
);

it('texts of users with such characters are never an error of the server', async () => {
  const uuid = await made({ driver: 'fake-hardware', deploy_interface: 'fake' });
  const long = `${REFUSED}${'\0'.repeat(100_000)}`;
  const cost = await server.attack(async () => {
    for (const text of [REFUSED, long])
      for (const field of [
        'name',
        'description',
        'owner',
        'lessee',
        'resource_class',
        'shard',
        'conductor_group',
        'driver',
        'extra/a',
        'driver_info/a',
        'instance_info/a',
        'properties/a',
      ]) {
        const { status } = await call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: `/${field}`, value: text }]);
        expect([field, status]).toEqual([field, field.endsWith('/a') ? 200 : 400]);
      }
    for (const name of ['owner', 'lessee', 'resource_class', 'shard', 'instance_uuid', 'marker', 'sort_key', 'description_contains'])
      expect([name, (await call('GET', `/v1/nodes?${name}=a%00%ED%A0%80`)).status < 500]).toEqual([name, true]);
  });
  expectBounded(cost);
});
