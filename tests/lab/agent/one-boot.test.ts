/**
 * Steps of the ramdisk's agent in one boot of a machine with 512 MB and a SATA disk: files for an instance, a burn-in with the disk's own self
 * test, and refusals of what the ramdisk does not have.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JsonObject } from '../../../model/records';
import { diskFile, GiB, PATIENCE, startDiskMachine, startImageApi, type DiskMachine } from '../disks/disk-machine';
import { buildRamdisk } from '../support/ramdisk';

jest.setTimeout((PATIENCE + 60) * 1000);
const MiB = 2 ** 20;
const SIZE = 5 * GiB;
let folder: string;
let machine: DiskMachine;
beforeAll(async () => {
  const ramdisk = await buildRamdisk();
  folder = mkdtempSync(join(tmpdir(), 'one-boot-'));
  const api = await startImageApi({});
  machine = await startDiskMachine(api, {
    folder,
    initrd: join(ramdisk, 'initrd'),
    memoryMiB: 512,
    words: [],
    more: [],
    disks: { sata: ['ich9-ahci,id=ahci', 'ide-hd,bus=ahci.0,drive=sata,serial=SATA1'] },
    prepare: (name) => {
      const file = diskFile(folder, name);
      execFileSync('sfdisk', ['-q', file], { input: `label: gpt\nstart=2048, size=${SIZE / 512 - 4096}, type=L\n` });
      mkdirSync(join(folder, 'root/etc'), { recursive: true });
      writeFileSync(join(folder, 'root/etc/motd'), 'old');
      execFileSync('mkfs.ext4', ['-q', '-F', '-E', `offset=${MiB},root_owner=0:0`, '-d', join(folder, 'root'), file, '64M']);
    },
    inspects: false,
  });
  await machine.waitFor('/v1/heartbeat/u');
}, 1_900_000);
afterAll(async () => {
  await machine?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const run = (step: string, info: JsonObject = {}, args: JsonObject = {}): Promise<JsonObject> =>
  machine.command('clean.execute_clean_step', {
    step: { step, interface: 'deploy', args },
    node: { uuid: 'u', properties: {}, driver_internal_info: {}, driver_info: info },
    ports: [],
  });
const resultOf = (answer: JsonObject): JsonObject => {
  expect(answer).toMatchObject({ command_status: 'SUCCEEDED' });
  return (answer['command_result'] as { readonly clean_result: JsonObject }).clean_result;
};

it('inject_files writes into the file system of the disk', async () => {
  const content = Buffer.from('new').toString('base64');
  const answer = await machine.command('deploy.execute_deploy_step', {
    step: { step: 'inject_files', interface: 'deploy', args: { files: [{ path: '/etc/motd', content, mode: 0o600 }] } },
    node: { uuid: 'u', properties: {}, driver_internal_info: {} },
    ports: [],
  });
  expect(answer).toMatchObject({ command_status: 'SUCCEEDED', command_result: { deploy_result: { injected: 1 } } });
  const debugfs = (command: string): string =>
    execFileSync('debugfs', ['-R', command, `${diskFile(folder, 'sata')}?offset=${MiB}`], {
      stdio: ['ignore', 'pipe', 'ignore'],
    }).toString();
  expect(debugfs('cat /etc/motd')).toBe('new');
  expect(debugfs('stat /etc/motd')).toMatch(/Mode: {2}0600/);
});
it('burnin_disk writes and compares, and the disk tests itself', async () => {
  const result = resultOf(await run('burnin_disk', { agent_burnin_fio_disk_runtime: 5, agent_burnin_fio_disk_smart_test: true }));
  expect(result).toMatchObject({
    disks: [{ disk: '/dev/sda', serial: 'SATA1', wrong: 0 }],
    untouched: [],
    smart: { '/dev/sda': 'completed without error' },
  });
});
it('erase_pstore has nothing to erase where the firmware keeps nothing', async () => {
  expect(resultOf(await run('erase_pstore'))).toEqual({ erased: [] });
});
it.each<[string, JsonObject, JsonObject, string]>([
  ['burnin_gpu', {}, {}, 'gpu-burn failed with error'],
  ['generic_container_step', {}, { container_url: 'docker://r.example/a:1' }, 'generic_container_step'],
])('%s is refused: the ramdisk does not have its program', async (step, info, args, text) => {
  const answer = await run(step, info, args);
  expect(answer).toMatchObject({ command_status: 'FAILED' });
  expect(JSON.stringify(answer['command_error'])).toContain(text);
});
