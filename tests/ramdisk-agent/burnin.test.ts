/** Burn-in: the loads find what they must find, disks are files, the network is this host's. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import type { JsonObject } from '../../model/records';
import { burnInDisk } from '../../ramdisk-agent/burnin/disk';
import { allocate, burnIn, cpuRound, loadCpu, loadMemory } from '../../ramdisk-agent/burnin/load';
import { readStreams, writeStreams } from '../../ramdisk-agent/burnin/network';
import { burnInCpu, burnInGpu, burnInMemory } from '../../ramdisk-agent/burnin/processor';
import type { Machine } from '../../ramdisk-agent/machine';
import { parseParameters } from '../../ramdisk-agent/parameters';
import type { Run } from '../../ramdisk-agent/system/run';
import { tree } from '../../ramdisk-agent/system/tree';
import { freePort } from '../support/free-port';
import { fileTree } from './support';

const MiB = 2 ** 20;
/** A clock that is over after so many looks. */
const looks = (most: number) => {
  let count = 0;
  return () => (count++ < most ? 0 : 1e9);
};

describe('loads', () => {
  it('the processor of this machine computes what is expected', () => {
    expect(loadCpu({ now: looks(3), seconds: 1 }).rounds).toBeGreaterThan(1);
  });
  it('a processor that computes something else fails', () => {
    expect(() => loadCpu({ now: looks(3), seconds: 1 }, cpuRound(), () => 'wrong')).toThrow('the processor computed wrong in place of');
  });
  it('memory is filled and compared with each pattern', () => {
    const blocks = allocate(3 * MiB);
    expect(blocks).toHaveLength(3);
    const report = loadMemory({ now: looks(40), seconds: 1 }, blocks);
    expect(report.rounds).toBeGreaterThan(8);
    expect(report.bytes).toBeGreaterThan(8 * 3 * MiB);
  });
  it('a byte that changes is found, with its place', () => {
    const blocks = allocate(2 * MiB);
    let calls = 0;
    const now = (): number => {
      // After the first block of the first round is filled
      if (++calls === 2) blocks[0]![77] = 0x40;
      return calls < 9 ? 0 : 1e9;
    };
    expect(() => loadMemory({ now, seconds: 1 }, blocks)).toThrow('the memory kept 40 in place of 00 at byte 77 of the worker');
  });
  it('memory that appears at two addresses is found', () => {
    const [block] = allocate(MiB);
    expect(() => loadMemory({ now: looks(9), seconds: 1 }, [block!, block!])).toThrow('the memory kept');
  });
  it('the program writes its report', () => {
    const lines: string[] = [];
    burnIn(['cpu', '0'], looks(1), (line) => lines.push(line));
    burnIn(['memory', '0', String(MiB)], looks(2), (line) => lines.push(line));
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([{ bytes: 0 }, { bytes: MiB }]);
  });
});

interface Made {
  readonly machine: Machine;
  readonly ran: readonly string[];
  readonly disk: string;
}
function machineWith(info: JsonObject, run: Run = async () => '', files: Readonly<Record<string, string>> = {}): Made {
  const root = fileTree({ 'proc/meminfo': 'MemAvailable:    1048576 kB\n', 'proc/mounts': '', ...files });
  const disk = join(root, 'disk');
  writeFileSync(disk, '');
  truncateSync(disk, 24 * MiB);
  const block = join(root, 'sys/block', `..${disk}`.replaceAll('/', '!'));
  mkdirSync(join(block, 'queue'), { recursive: true });
  writeFileSync(join(block, 'size'), String((24 * MiB) / 512));
  writeFileSync(join(block, 'serial'), 'FILE1');
  symlinkSync('x', join(block, 'device'));
  const ran: string[] = [];
  const machine = {
    tree: tree(root),
    root,
    temporary: root,
    run: (async (program, args, options) => {
      ran.push([program, ...args].join(' '));
      return run(program, args, options);
    }) as Run,
    log: silentLog,
    clock: { ...systemClock, sleep: (_: number, signal?: AbortSignal) => systemClock.sleep(5, signal) },
    random: randomBytes,
    newUuid: () => 'u',
    parameters: parseParameters(''),
    fetching: { trust: { insecure: false }, timeoutMs: 1000, signal: new AbortController().signal },
    bootedFromMedium: false,
    state: { node: { driver_info: info }, config: {}, partitionUuids: null, api: null },
  } as unknown as Machine;
  return { machine, ran, disk };
}
const REPORT = JSON.stringify({ rounds: 7, bytes: 100 });

describe('steps', () => {
  it('burnin_cpu starts a program for each worker, writes the result, and keeps its place for the logs', async () => {
    const { machine, ran } = machineWith(
      { agent_burnin_cpu_cpu: 2, agent_burnin_cpu_timeout: '1m', agent_burnin_cpu_outputfile: '/var/log/cpu' },
      async () => REPORT,
    );
    const result = await burnInCpu(machine, () => {});
    expect(ran).toEqual(['agent burn-in cpu 60', 'agent burn-in cpu 60']);
    expect(result).toEqual({ workers: 2, seconds: 0, rounds: 14, bytes: 200, memory_errors: null });
    expect(JSON.parse(readFileSync(join(machine.root, 'var/log/cpu'), 'utf8'))).toEqual(result);
    expect(machine.state.outputFiles).toEqual(['/var/log/cpu']);
  });
  it('a load that fails ends the others and the step', async () => {
    const ends: string[] = [];
    let calls = 0;
    const run: Run = (_, __, options) =>
      new Promise((_resolve, reject) => {
        if (++calls === 2) reject(new Error('the processor computed x'));
        options!.signal!.addEventListener('abort', () => {
          ends.push('ended');
          reject(new Error('aborted'));
        });
      });
    const { machine } = machineWith({ agent_burnin_cpu_cpu: 3 }, run);
    await expect(burnInCpu(machine, () => {})).rejects.toThrow('Burn-in (cpu) failed with error the processor computed x');
    expect(ends.length).toBeGreaterThanOrEqual(2);
  });
  it('errors that the memory corrected are told, and others fail the step', async () => {
    const files = { 'sys/devices/system/edac/mc/mc0/ce_count': '3', 'sys/devices/system/edac/mc/mc0/ue_count': '0' };
    const { machine } = machineWith(
      { agent_burnin_cpu_cpu: 1 },
      async () => {
        writeFileSync(join(machine.root, 'sys/devices/system/edac/mc/mc0/ce_count'), '5');
        return REPORT;
      },
      files,
    );
    expect(await burnInCpu(machine, () => {})).toMatchObject({ memory_errors: { corrected: 2, uncorrected: 0 } });
    const { machine: bad } = machineWith(
      { agent_burnin_cpu_cpu: 1 },
      async () => {
        writeFileSync(join(bad.root, 'sys/devices/system/edac/mc/mc0/ue_count'), '1');
        return REPORT;
      },
      files,
    );
    await expect(burnInCpu(bad, () => {})).rejects.toThrow('the memory had 1 errors that it could not correct');
  });
  it('burnin_memory begins again with less after the kernel ended a worker', async () => {
    const sizes: number[] = [];
    const run: Run = async (_, args) => {
      sizes.push(Number(args[3]));
      if (sizes.length === 1) throw new Error('killed', { cause: { signal: 'SIGKILL', killed: false } });
      return REPORT;
    };
    const { machine } = machineWith({ agent_burnin_vm_vm: 1, 'agent_burnin_vm_vm-bytes': '50%', agent_burnin_vm_timeout: 9 }, run);
    const result = await burnInMemory(machine, () => {});
    expect(sizes[0]).toBe(460 * MiB);
    expect(sizes[1]! < sizes[0]! && sizes[1]! > 0.8 * sizes[0]!).toBe(true);
    expect(result).toMatchObject({ bytes_of_worker: sizes[1] });
  });
  it.each([
    [2, 'ID 0: one\nID 1: two\n', undefined],
    [2, 'ID 0: one\n', 'gpu-burn failed to find the correct number of gpus. 1 found but 2 expected.'],
  ])('burnin_gpu counts %i GPUs', async (count, listed, refusal) => {
    const { machine, ran } = machineWith({ agent_burnin_gpu_count: count, agent_burnin_gpu_timeout: 3 }, async (_, args) =>
      args[0] === '-l' ? listed : '',
    );
    const running = burnInGpu(machine, () => {});
    if (refusal !== undefined) {
      await expect(running).rejects.toThrow(refusal);
      return;
    }
    await running;
    expect(ran).toEqual(['./gpu_burn -l', './gpu_burn -m 95% 3']);
  });
  it('burnin_disk writes and compares the whole disk in each loop', async () => {
    const percents: number[] = [];
    const { machine, disk } = machineWith({ agent_burnin_fio_disk_loops: 2 });
    const result = await burnInDisk(machine, (percent) => percents.push(percent));
    expect(result).toMatchObject({
      disks: [{ serial: 'FILE1', loops: 2, written: 48 * MiB, read: 48 * MiB, wrong: 0, wrong_at: [] }],
      untouched: [],
    });
    expect(percents.at(-1)).toBe(99);
    expect(readFileSync(disk).subarray(0, 4096).equals(readFileSync(disk).subarray(4096, 8192))).toBe(false);
  });
  it('a disk that changes what it got fails, and the place is named', async () => {
    const { machine, disk } = machineWith({ agent_burnin_fio_disk_loops: 1 });
    let isBroken = false;
    const spoil = (percent: number): void => {
      if (percent < 50 || isBroken) return;
      isBroken = true;
      const bytes = readFileSync(disk);
      bytes[5 * MiB + 9]! ^= 1;
      writeFileSync(disk, bytes);
    };
    await expect(burnInDisk(machine, spoil)).rejects.toThrow(/1 blocks of 1 MiB are not as they were written, the first at byte 5242880/);
  });
  it('a self test of the disks follows, if it is asked for', async () => {
    const info = { agent_burnin_fio_disk_loops: 1, agent_burnin_fio_disk_smart_test: true };
    const said = ['in progress, 90% remaining', 'completed without error'];
    const run = (last: string): Run => {
      const all = [...said.slice(0, 1), last];
      return async (program, args) =>
        program === 'smartctl' && args[0] === '-ja'
          ? JSON.stringify({ ata_smart_data: { self_test: { status: { string: all.shift() } } } })
          : '';
    };
    const good = machineWith(info, run(said[1]!));
    expect(Object.values((await burnInDisk(good.machine, () => {}))['smart'] as object)).toEqual(['completed without error']);
    expect(good.ran.filter((line) => line.startsWith('smartctl -t'))).toHaveLength(1);
    await expect(burnInDisk(machineWith(info, run('completed: read failure')).machine, () => {})).rejects.toThrow(
      /fio \(disk\) SMART test failed for /,
    );
  });
});

describe('network', () => {
  const streams = (ports: readonly number[], more: object = {}) => ({
    host: '127.0.0.1',
    seconds: 1,
    patience: 20,
    clock: { ...systemClock, sleep: (_: number, signal?: AbortSignal) => systemClock.sleep(20, signal) },
    random: randomBytes,
    signal: new AbortController().signal,
    ports,
    ...more,
  });
  const ports = (): Promise<readonly number[]> => Promise.all(Array.from({ length: 16 }, () => freePort()));
  it('one writes and one reads', async () => {
    const first = await ports();
    const [written, read] = await Promise.all([writeStreams(streams(first)), readStreams(streams(first))]);
    expect(read.bytes).toBe(written.bytes);
    expect(written.bytes).toBeGreaterThan(MiB);
  });
  it('a reader without a writer, and a writer without a reader, give up', async () => {
    const first = await ports();
    await expect(writeStreams(streams(first, { patience: 0.2 }))).rejects.toThrow('no partner came to port');
    await expect(readStreams(streams(first, { patience: 0.2 }))).rejects.toThrow('ECONNREFUSED');
  });
  it('a partner that breaks off fails the step', async () => {
    const first = await ports();
    const peer = spawn(process.execPath, [
      '-e',
      `for (const port of [${first.join()}]) { const go = () => require('net').connect(port, '127.0.0.1').on('error', () => setTimeout(go, 20)).on('data', () => setTimeout(() => process.exit(), 200)); go(); }`,
    ]);
    await expect(writeStreams(streams(first, { seconds: 30 }))).rejects.toThrow();
    if (peer.exitCode === null) await once(peer, 'exit');
  });
});
