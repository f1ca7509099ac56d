import { createKeystoneLogin } from '../../../api/auth/keystone-login';
import { createLogIns } from '../../../api/ui/log-ins';
import { systemClock } from '../../../model/clock';
import type { Log } from '../../../model/log';
import { startFakeKeystone, type FakeKeystone } from '../../support/fakes/fake-keystone';
import { optionsOf } from '../../support/options';

let fake: FakeKeystone;
let logged: unknown[];
beforeEach(async () => {
  fake = await startFakeKeystone({});
  logged = [];
});
afterEach(() => fake.close());

const log: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: (...words) => void logged.push(words), child: () => log };
const parts = () => ({
  options: optionsOf({
    'DEFAULT.auth_strategy': 'keystone',
    'keystone_authtoken.auth_url': fake.url,
    'keystone_authtoken.auth_type': 'password',
    'keystone_authtoken.user_id': 'ironic',
    'keystone_authtoken.password': 'own secret',
  }),
  clock: systemClock,
  log,
  signal: new AbortController().signal,
});
const person = { user: 'ann', password: 'a password', domain: 'Default', project: null };
const logIn = () => createKeystoneLogin(parts())(person, '192.0.2.1');
const reply = (status: number, body: unknown): void => void (fake.reply = async () => ({ status, body }));

it.each<[string, object, object, object]>([
  ['a project', { project: 'tenant' }, { name: 'Default' }, { project: { name: 'tenant', domain: { name: 'Default' } } }],
  [
    'a project of another domain',
    { project: 'tenant', domain: 'lab' },
    { name: 'lab' },
    { project: { name: 'tenant', domain: { name: 'lab' } } },
  ],
  ['the system', { project: '' }, { name: 'Default' }, { system: { all: true } }],
])('requests a token for %s from Keystone', async (_, fields, domain, scope) => {
  const logIns = createLogIns(parts());
  expect(logIns.kinds).toEqual(['keystone', 'token']);
  expect(await logIns.open({ user: 'ann', password: 'a password', ...fields }, 'here')).toEqual({
    credentials: { 'x-auth-token': 'own-1' },
  });
  const identity = { methods: ['password'], password: { user: { name: 'ann', domain, password: 'a password' } } };
  expect(fake.logins).toEqual([{ auth: { identity, scope } }]);
});
it.each([401, 403])('names what may be wrong when Keystone answers %p', async (status) => {
  reply(status, { error: { message: 'The request you have made requires authentication.' } });
  await expect(logIn()).rejects.toMatchObject({ status: 401, sentence: 'Keystone refuses this user, password, domain or project.' });
  expect(logged).toEqual([]);
});
it.each<[string, () => void]>([
  ['fails', () => reply(500, { error: { message: 'no: a password' } })],
  ['answers something else', () => reply(201, 'a page')],
  ['does not answer', () => void (fake.reply = async () => Promise.reject(new Error('away')))],
])('answers that Keystone is unavailable when it %s, and logs no password', async (_, prepare) => {
  prepare();
  await expect(logIn()).rejects.toMatchObject({ status: 503, sentence: 'The Keystone service is temporarily unavailable.' });
  expect(logged).toHaveLength(1);
  expect(JSON.stringify(logged)).not.toContain('a password');
});
