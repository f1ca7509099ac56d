import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashSync } from 'bcryptjs';
import { createFairTurns } from '../../api/http/fair-turns';
import { until } from '../support/until';
import { expectBounded, useAttackedServer } from './watchdog';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-logins-'));
writeFileSync(join(folder, 'users'), `admin:${hashSync('right', 8)}\nother:${hashSync('right too', 8)}\n`);
afterAll(() => rmSync(folder, { recursive: true }));
const server = useAttackedServer(`auth_strategy = http_basic\nhttp_basic_auth_user_file = ${join(folder, 'users')}`);

const login = async (pair: string): Promise<number> => {
  const authorization = `Basic ${Buffer.from(pair).toString('base64')}`;
  return (await server.call('GET', '/v1/nodes', { headers: { authorization } })).status;
};

it('answers correct logins while a hundred connections guess passwords', async () => {
  expect(await login('admin:right')).toBe(200);
  let isOver = false;
  let wrong = 0;
  const guess = async (at: number): Promise<void> => {
    for (let turn = 0; !isOver; turn++) {
      expect([401, 503]).toContain(await login(`admin:guess ${at} ${turn}`));
      wrong++;
    }
  };
  const guessing = Promise.all(Array.from({ length: 100 }, (_, at) => guess(at)));
  await until('guesses are answered', () => wrong > 100);
  const cost = await server.attack(async () => {
    expect(await login('admin:right')).toBe(200);
    expect(await login('other:right too')).toBe(200);
  });
  isOver = true;
  await guessing;
  expectBounded({ ...cost, cpuSeconds: 0 });
});

it('createFairTurns() alternates between sources, and starts preferred work first', async () => {
  const refusal = new Error('full');
  const turn = createFairTurns({ running: { inAll: 1, ofSource: 1 }, waiting: { inAll: 5, ofSource: 3 }, refusal: () => refusal });
  const started: string[] = [];
  let release = (): void => {};
  const first = turn('a', () => new Promise<void>((done) => (release = done)));
  const add = (name: string, isPreferred = false): Promise<unknown> =>
    turn(name[0]!, async () => started.push(name), isPreferred).catch((error: unknown) => error);
  const others = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'b3'].map((name) => add(name));
  const preferred = add('a5', true);
  release();
  await first;
  await preferred;
  const refused = (await Promise.all(others)).map((result) => result === refusal);
  expect(refused).toEqual([false, false, false, true, false, false, true]);
  expect(started).toEqual(['a5', 'a1', 'b1', 'a2', 'b2', 'a3']);
});
