import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createKept } from '../../ramdisk-agent/kept';
import { folder } from './support';

const identity = { node: 'n', address: 'a', token: 't', certificate: 'c', privateKey: 'k' };

it('keeps the identity and the log of an agent for the next one, for root only', () => {
  const path = folder();
  const first = createKept(path);
  expect([first.identity(), first.earlierLines()]).toEqual([null, []]);
  first.setIdentity(identity);
  first.addLine('one');
  first.addLine('two');
  const next = createKept(path);
  expect([next.identity(), next.earlierLines()]).toEqual([identity, ['one', 'two']]);
  for (const name of readdirSync(path)) expect(statSync(join(path, name)).mode & 0o077).toBe(0);
  next.forget();
  expect(readdirSync(path)).toEqual([]);
});
it('bounds the log', () => {
  const path = folder();
  const kept = createKept(path);
  for (let line = 0; line < 200; line++) kept.addLine('x'.repeat(10_000));
  expect(readFileSync(join(path, 'agent.log')).length).toBeLessThan(300_000);
});
it('takes no identity that is damaged, and fails for no folder', () => {
  const path = folder();
  writeFileSync(join(path, 'agent-identity.json'), '{"node":1}');
  expect(createKept(path).identity()).toBeNull();
  const nowhere = createKept(join(path, 'none'));
  nowhere.addLine('x');
  nowhere.setIdentity(identity);
  expect(nowhere.identity()).toBeNull();
});
it("tells how the last agent ended, with the kernel's words if it was out of memory", async () => {
  const path = folder();
  const kept = createKept(path);
  expect(await kept.howTheLastEnded(async () => '', 70)).toBeNull();
  writeFileSync(join(path, 'agent-ended'), '137\n');
  expect(await kept.howTheLastEnded(async () => Promise.reject(new Error('no dmesg')), 70)).toBe(
    'The agent before ended with status 137 (killed by signal 9)',
  );
  const dmesg = async () => 'a\n[1.0] Out of memory: Killed process 70 (agent)\nb';
  expect(await kept.howTheLastEnded(dmesg, 71)).toMatch(/signal 9\); the kernel: \[1\.0\] Out of memory: Killed process 70 \(agent\)$/);
  // The one after it ended for another reason.
  expect(await kept.howTheLastEnded(dmesg, 72)).toMatch(/\(killed by signal 9\)$/);
});
