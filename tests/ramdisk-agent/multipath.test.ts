import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import { joinPaths } from '../../ramdisk-agent/system/multipath';
import { tree } from '../../ramdisk-agent/system/tree';
import { fileTree } from './support';

const signal = new AbortController().signal;
const clock = { ...systemClock, sleep: async () => {} };
const disk = (name: string, id: string): Readonly<Record<string, string>> => ({ [`sys/block/${name}/device/wwid`]: `${id}\n` });

it('joinPaths starts multipathd for disks with the same name, and waits until each has its holder', async () => {
  const root = fileTree({ ...disk('sda', 'naa.6001'), ...disk('sdb', 'naa.6001'), ...disk('sdc', 'naa.6002'), ...disk('vda', 'naa.6001') });
  const ran: string[] = [];
  let sleeps = 0;
  const hold = async (): Promise<void> => {
    const name = ['sda', 'sdb'][sleeps++ - 1];
    if (name !== undefined) mkdirSync(join(root, 'sys/block', name, 'holders/dm-0'), { recursive: true });
  };
  const run = async (program: string): Promise<string> => (ran.push(program), '');
  await joinPaths({ tree: tree(root), run, clock: { ...clock, sleep: hold }, log: silentLog }, signal);
  expect(ran).toEqual(['modprobe', 'multipathd', 'udevadm']);
  expect(sleeps).toBe(3);
});

it('joinPaths starts nothing where each disk has one path', async () => {
  const files = { ...disk('sda', 'naa.6001'), ...disk('sdb', 'naa.6002') };
  const run = async (program: string): Promise<string> => Promise.reject(new Error(program));
  await joinPaths({ tree: tree(fileTree(files)), run, clock, log: silentLog }, signal);
});

it.each([
  [
    'multipathd is missing',
    async (program: string) => (program === 'multipathd' ? Promise.reject(new Error('not found')) : ''),
    'not found',
  ],
  ['the paths stay separate', async () => '', 'multipathd did not join sda, sdb'],
])('joinPaths gives up with a warning when %s', async (_, run, reason) => {
  const root = fileTree({ ...disk('sda', 'naa.6001'), ...disk('sdb', 'naa.6001') });
  const warnings: string[] = [];
  await joinPaths({ tree: tree(root), run, clock, log: { ...silentLog, warn: (text: string) => warnings.push(text) } }, signal);
  expect(warnings.join()).toContain(reason);
});
