/** The storage interface `cinder` beside a real Cinder: the same cases as beside the one in memory. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { testCinder } from '../support/cinder-cases';
import { startCinder } from './services/cinder';
import { startKeystone, type RealKeystone } from './services/keystone';

jest.setTimeout(600_000);
const folder = mkdtempSync(join(tmpdir(), 'bloomery-cinder-'));
let keystone: RealKeystone;
let cinder: Awaited<ReturnType<typeof startCinder>>;

beforeAll(async () => {
  for (const name of ['keystone', 'cinder']) mkdirSync(join(folder, name));
  keystone = await startKeystone(join(folder, 'keystone'));
  cinder = await startCinder(join(folder, 'cinder'), keystone);
}, 1_500_000);
afterAll(async () => {
  await cinder.close();
  await keystone.close();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

testCinder(() => cinder);
