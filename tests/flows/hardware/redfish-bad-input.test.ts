/**
 * Each reason why a node's Redfish service cannot be used has its own sentence, in validate or in last_error; the power state stays
 * unknown.
 */
import { randomBytes } from 'node:crypto';
import { ownCertificate } from '../../../wire/http/certificate';
import { startWholeServer, type WholeServer } from '../../support/whole-server';
import { useDatabase } from '../../support/database';
import { redfishService, type RedfishService } from '../../wire/redfish/service';

const database = useDatabase();
let whole: WholeServer;
let secure: RedfishService;
let silent: RedfishService;
beforeAll(async () => {
  const { certificate, privateKey } = ownCertificate('127.0.0.1', 'bmc', Date.now(), randomBytes);
  secure = await redfishService({ cert: certificate, key: privateKey });
  silent = await redfishService();
  silent.reply = () => 'hang';
  whole = await startWholeServer(database.connection(), {
    machines: 1,
    options: { 'redfish.connection_attempts': 1, 'redfish.connection_retry_interval': 0, 'redfish.read_timeout': 0.3 },
  });
});
afterAll(async () => {
  await whole?.close();
  await secure?.close();
  await silent?.close();
});

type Info = Readonly<Record<string, unknown>>;
const right = (): Info => {
  const { address, systemId, username, password } = whole.fleet.machines[0]!.redfish;
  return { redfish_address: address, redfish_system_id: systemId, redfish_username: username, redfish_password: password };
};
async function enrolled(change: () => Info): Promise<string> {
  const { status, body } = await whole.call('POST', '/v1/nodes', { driver: 'redfish', driver_info: { ...right(), ...change() } });
  expect(status).toBe(201);
  return body['uuid'] as string;
}

it.each<[string, () => Info, RegExp]>([
  [
    'no address',
    () => ({ redfish_address: '' }),
    /Missing the following Redfish properties in node \S+ driver_info: \['redfish_address'\]/,
  ],
  ['an invalid address', () => ({ redfish_address: 5 }), /Invalid Redfish address 5 set in driver_info\/redfish_address/],
  ['an ill-typed system', () => ({ redfish_system_id: 7 }), /Invalid value "7" set in driver_info\/redfish_system_id/],
  ['an ill-typed user', () => ({ redfish_username: { name: 'smith' } }), /^(.*: )?redfish_username is not a text\.$/],
  ['an ill-typed password', () => ({ redfish_password: ['hunter2'] }), /^(.*: )?redfish_password is not a text\.$/],
  ['ill-typed authorities', () => ({ redfish_verify_ca: 7 }), /Invalid value type set in driver_info\/redfish_verify_ca/],
  ['authorities that do not exist', () => ({ redfish_verify_ca: '/no/such' }), /Invalid value type set in driver_info\/redfish_verify_ca/],
  ['an unknown kind of login', () => ({ redfish_auth_type: 'x' }), /Invalid value "x" set in driver_info\/redfish_auth_type/],
  [
    'an unknown TLS version',
    () => ({ redfish_tls_minimum_version: '9' }),
    /Invalid value "9" set in driver_info\/redfish_tls_minimum_version/,
  ],
])('%s: validate and manage report it', async (_, change, message) => {
  const uuid = await enrolled(change);
  const { body } = await whole.call('GET', `/v1/nodes/${uuid}/validate`);
  for (const kind of ['power', 'management'])
    expect(body[kind]).toEqual({ result: false, reason: expect.stringMatching(message) as unknown });
  await whole.order(uuid, 'manage');
  const node = await whole.reach(uuid, 'enroll');
  expect(node).toMatchObject({ last_error: expect.stringMatching(message) as unknown, power_state: null });
});

const HIDDEN = 'quite-another-password';
it.each<[string, () => Info, RegExp]>([
  [
    'an address where nobody listens',
    () => ({ redfish_address: 'http://127.0.0.1:1' }),
    /Redfish connection failed for node \S+: .*ECONNREFUSED/,
  ],
  [
    'TLS with a service that has none',
    () => ({ redfish_address: silent.url.replace('http:', 'https:') }),
    /Redfish connection failed for node \S+: .*speaks no TLS$/,
  ],
  ['an unknown name', () => ({ redfish_address: 'http://bmc.invalid' }), /Redfish connection failed for node \S+: .*(ENOTFOUND|EAI_AGAIN)/],
  [
    'a service that does not answer',
    () => ({ redfish_address: silent.url }),
    /Redfish connection failed for node \S+: .*no answer within 0\.3 s/,
  ],
  ['a wrong password', () => ({ redfish_password: HIDDEN }), /returned code 401.*does not take redfish_username and redfish_password/],
  [
    'a wrong password, for a session',
    () => ({ redfish_password: HIDDEN, redfish_auth_type: 'session' }),
    /returned code 401.*does not take redfish_username and redfish_password/,
  ],
  ['a wrong system', () => ({ redfish_system_id: '/redfish/v1/Systems/none' }), /Resource \S+\/redfish\/v1\/Systems\/none not found/],
  [
    'an untrusted certificate',
    () => ({ redfish_address: secure.url }),
    /certificate verify failed: self-signed certificate.*redfish_verify_ca/,
  ],
])('%s: manage leaves the node in enroll with the reason', async (_, change, message) => {
  const uuid = await enrolled(change);
  await whole.order(uuid, 'manage');
  const node = await whole.reach(uuid, 'enroll');
  expect(node).toMatchObject({ last_error: expect.stringMatching(message) as unknown, power_state: null, reservation: null });
  expect(node['last_error']).not.toContain(HIDDEN);
});
