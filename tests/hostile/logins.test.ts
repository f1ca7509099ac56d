import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashSync } from 'bcryptjs';
import { createFairQueue } from '../../api/auth/fair-queue';
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

it('answers right logins while a hundred connections guess', async () => {
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

describe('the queue', () => {
  it('gives each source its turn, and preferred items the first', () => {
    const queue = createFairQueue<string>({ most: 10, mostOfSource: 3 });
    expect(['a1', 'a2', 'a3', 'a4'].map((item) => queue.add(item, 'a', false))).toEqual([true, true, true, false]);
    expect(['b1', 'b2', 'b3'].map((item) => queue.add(item, 'b', false))).toEqual([true, true, false]);
    expect(queue.add('p', 'a', true)).toBe(true);
    expect(Array.from({ length: 7 }, () => queue.take())).toEqual(['p', 'a1', 'b1', 'a2', 'b2', 'a3', undefined]);
    expect(queue.add('a5', 'a', false)).toBe(true);
  });
});
