/** A killed run of the lab does not disturb the next one. Root. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { until } from '../../../demo/lab/machines';
import { addNamespace, removeNamespace } from '../../../demo/lab/namespace';
import { needs } from './needs';

it('addNamespace removes the namespace of a killed run and ends its processes, but keeps that of a live process', async () => {
  needs({ ip: 'iproute2' });
  const killed = spawn('sleep', ['60']);
  const pid = killed.pid!;
  const [dead, living] = [`lab-killed-${pid}`, 'lab-killed-1'];
  for (const namespace of [dead, living]) execFileSync('ip', ['netns', 'add', namespace]);
  const inside = spawn('ip', ['netns', 'exec', dead, 'sleep', '60']);
  const ended = once(inside, 'exit');
  await until(
    240,
    () => 'the program runs in the namespace',
    () => execFileSync('ip', ['netns', 'pids', dead]).length > 0,
  );
  killed.kill('SIGKILL');
  await once(killed, 'exit');

  const own = await addNamespace('lab-killed');
  expect(own).toBe(`lab-killed-${process.pid}`);
  expect(await ended).toEqual([null, 'SIGKILL']);
  const listed = execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' });
  expect(listed).toContain(own);
  expect(listed).toContain(living);
  expect(listed).not.toContain(dead);
  for (const namespace of [own, living]) await removeNamespace(namespace);
});
