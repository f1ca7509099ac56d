/**
 * The steps of agents over HTTP, each under the other server: ironic-python-agent under our driver, and our agent under the real Ironic's
 * client. Programs that would load the machine are stand-ins that write their arguments.
 */
import { randomBytes } from 'node:crypto';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { agentSteps, onHeartbeat, runAgentStep } from '../../../drivers/agent/steps';
import type { Outcome, PlannedStep } from '../../../drivers/interfaces';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import type { JsonObject } from '../../../model/records';
import { runner } from '../../../ramdisk-agent/commands';
import { commandsOf } from '../../../ramdisk-agent/extensions';
import type { Machine } from '../../../ramdisk-agent/machine';
import { parseParameters } from '../../../ramdisk-agent/parameters';
import { serve } from '../../../ramdisk-agent/server';
import { run as runProgram, type Run } from '../../../ramdisk-agent/system/run';
import { tree } from '../../../ramdisk-agent/system/tree';
import { ownCertificate } from '../../../wire/http/certificate';
import { programs } from '../../lab/support/venv';
import { fileTree, folder } from '../../ramdisk-agent/support';
import { freePort } from '../../support/free-port';
import { NODE_UUID, testTask, type TestTask } from '../../support/task';
import { inPython } from '../random-cases';

jest.setTimeout(120_000);
const TOKEN = 'the-token-of-this-machine';
const place = folder();
const standIn = (name: string, lines: string): void => {
  writeFileSync(join(place, name), `#!/bin/sh\necho "${name} $*" >> '${place}/ran'\n${lines}\n`);
  chmodSync(join(place, name), 0o755);
};
const ran = (): readonly string[] => (existsSync(join(place, 'ran')) ? readFileSync(join(place, 'ran'), 'utf8').trim().split('\n') : []);
/** Self tests end at the first look. */
const SMART = JSON.stringify({ ata_smart_data: { self_test: { status: { string: 'completed without error' } } } });
beforeEach(() => {
  rmSync(join(place, 'ran'), { force: true });
  standIn('stress-ng', 'case $* in *--timeout\\ 13s*) echo "no memory" >&2; exit 2 ;; esac');
  standIn('fio', '');
  standIn('gpu_burn', 'echo "ID 0: one"');
  standIn('smartctl', `[ "$1" = -ja ] && echo '${SMART}'; exit 0`);
});

describe('ironic-python-agent under our driver', () => {
  let agent: ChildProcess;
  let url: string;
  beforeAll(async () => {
    const python = join(await programs('agent-functions', ['ironic-python-agent==13.0.0']), 'python');
    const port = await freePort();
    agent = spawn(python, [join(__dirname, 'real-agent.py'), String(port), TOKEN], {
      env: { ...process.env, PATH: `${place}${delimiter}${process.env['PATH']}` },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    let said = '';
    agent.stderr!.on('data', (part: Buffer) => (said = (said + part.toString()).slice(-4000)));
    const ended = once(agent, 'exit').then(() => Promise.reject(new Error(`the agent ended: ${said}`)));
    await Promise.race([once(agent.stdout!, 'data'), ended]);
    ended.catch(() => {});
    url = `http://127.0.0.1:${port}`;
  }, 900_000);
  afterAll(async () => {
    if (agent.exitCode !== null) return;
    const ended = once(agent, 'exit');
    agent.stdin!.end();
    await ended;
  });

  async function ranUnder(info: JsonObject, step: PlannedStep): Promise<{ readonly outcome: Outcome; readonly made: TestTask }> {
    const made = testTask({
      node: { driver_info: info, driver_internal_info: { agent_url: url, agent_secret_token: TOKEN, agent_version: '13.0.0' } },
      options: { 'agent.require_tls': false },
    });
    const offered = await agentSteps(made.task, 'clean');
    expect(offered).toContainEqual(expect.objectContaining({ step: step.step, interface: step.interface }));
    expect(await runAgentStep(made.task, 'clean', step)).toEqual({ kind: 'wait' });
    for (;;) {
      const outcome = await onHeartbeat(made.task, 'clean', step);
      if (outcome.kind !== 'wait') return { outcome, made };
      await delay(50);
    }
  }
  const of = (step: string, args?: JsonObject): PlannedStep => ({ interface: 'deploy', step, priority: 0, ...(args ? { args } : {}) });

  it.each<[string, JsonObject, JsonObject | undefined, readonly string[]]>([
    ['burnin_cpu', { agent_burnin_cpu_timeout: '10m' }, undefined, ['stress-ng --cpu 0 --timeout 10m --metrics-brief']],
    ['burnin_cpu', { agent_burnin_cpu_timeout: '10m' }, { timeout: 60, cpu: 2 }, ['stress-ng --cpu 2 --timeout 60 --metrics-brief']],
    [
      'burnin_memory',
      { 'agent_burnin_vm_vm-bytes': '50%', agent_burnin_vm_outputfile: '/var/log/vm' },
      undefined,
      ['stress-ng --vm 0 --timeout 86400 --vm-bytes 50% --metrics-brief --log-file /var/log/vm'],
    ],
    [
      'burnin_disk',
      { agent_burnin_fio_disk_loops: 2, agent_burnin_fio_disk_smart_test: true },
      undefined,
      [
        'fio --rw readwrite --bs 4k --direct 1 --ioengine libaio --iodepth 32 --verify crc32c --verify_dump 1 --continue_on_error verify ' +
          '--loops 2 --runtime 0 --time_based --name /dev/standin',
        'smartctl -t long /dev/standin',
        'smartctl -ja /dev/standin',
      ],
    ],
    [
      'burnin_network',
      { agent_burnin_fio_network_runtime: 5, agent_burnin_fio_network_config: { role: 'writer', partner: '192.0.2.7' } },
      undefined,
      [
        'fio --ioengine net --port 9000 --fill_device 1 --group_reporting --gtod_reduce 1 --numjobs 16 --name writer --rw write --runtime 5 --time_based --listen',
        'fio --ioengine net --port 9000 --fill_device 1 --group_reporting --gtod_reduce 1 --numjobs 16 --name reader --rw read --hostname 192.0.2.7',
      ],
    ],
    [
      'burnin_gpu',
      { agent_burnin_gpu_install_dir: place, agent_burnin_gpu_count: 1, agent_burnin_gpu_timeout: 3 },
      undefined,
      ['gpu_burn -l', 'gpu_burn -m 95% 3'],
    ],
  ])('%s with %j and %j', async (step, info, args, expected) => {
    expect((await ranUnder(info, of(step, args))).outcome).toEqual({ kind: 'done' });
    expect(ran()).toEqual(expected);
  });
  it.each<[string, JsonObject, JsonObject | undefined, string]>([
    ['burnin_cpu', { agent_burnin_cpu_timeout: '13s' }, undefined, 'stress-ng (cpu) failed with error'],
    ['burnin_network', {}, undefined, 'dynamic pairing config is missing agent_burnin_fio_network_pairing_backend_url'],
    [
      'generic_container_step',
      {},
      { container_url: 'docker://r.example/a:1' },
      'docker://r.example/a:1 is not in [container]allowed_containers',
    ],
  ])('the failure of %s with %j is told', async (step, info, args, text) => {
    const { outcome } = await ranUnder(info, of(step, args));
    expect(outcome).toMatchObject({ kind: 'failed', reason: expect.stringContaining(text) as string });
  });
});

describe("our agent under the real Ironic's client", () => {
  let server: Server;
  let cafile: string;
  beforeAll(async () => {
    const root = fileTree({ 'proc/meminfo': 'MemAvailable:    1048576 kB\n', 'proc/mounts': '', 'bin/podman': '' });
    const run: Run = async (program, args, options) => {
      if (program === 'agent') return JSON.stringify({ rounds: 7, bytes: 100 });
      return runProgram(program, args, options);
    };
    const machine = {
      tree: tree(root),
      root,
      temporary: root,
      run,
      log: silentLog,
      clock: systemClock,
      random: randomBytes,
      newUuid: () => 'u',
      parameters: parseParameters(''),
      fetching: { trust: { insecure: false }, timeoutMs: 1000, signal: new AbortController().signal },
      bootedFromMedium: false,
      state: { node: {}, config: {}, partitionUuids: null, api: null },
    } as unknown as Machine;
    const certificate = ownCertificate('127.0.0.1', 'machine', Date.now(), randomBytes);
    let count = 0;
    server = await serve({
      host: '127.0.0.1',
      port: 0,
      certificate,
      minVersion: 'TLSv1.3',
      token: () => TOKEN,
      startedAt: Date.now(),
      version: 'test 1',
      runner: runner(
        commandsOf(machine),
        () => `id-${count++}`,
        () => {},
        silentLog,
      ),
      authenticated: () => {},
      log: silentLog,
    });
    cafile = join(place, 'agent.pem');
    writeFileSync(cafile, certificate.certificate);
  });
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  interface Read {
    readonly refused?: string;
    readonly steps: readonly string[];
    readonly status: string;
    readonly result: JsonObject | null;
    readonly error: string | null;
  }
  it('it lists the steps, runs them, and reads results and refusals', async () => {
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const internal = { agent_url: url, agent_secret_token: TOKEN, agent_verify_ca: cafile };
    const cases: readonly [step: string, info: JsonObject, args?: JsonObject][] = [
      ['burnin_cpu', { agent_burnin_cpu_timeout: '1s', agent_burnin_cpu_cpu: 2 }],
      ['burnin_memory', { agent_burnin_vm_timeout: 1, agent_burnin_vm_vm: 1 }],
      ['burnin_cpu', { agent_burnin_cpu_timeout: 'soon' }],
      ['burnin_gpu', { agent_burnin_gpu_install_dir: join(place, 'missing') }],
      ['burnin_network', {}],
      ['erase_pstore', {}],
      ['generic_container_step', {}, { container_url: 'docker://r.example/a:1' }],
    ];
    const bin = await programs('ironic', ['ironic==39.0.0']);
    const rows = cases.map(([step, info, args]) => ({
      node: { uuid: NODE_UUID, driver_info: info, driver_internal_info: internal },
      step: { interface: 'deploy', step, priority: 0, ...(args ? { args } : {}) },
    }));
    const read = await inPython<Read>(bin, join(__dirname, 'agent-client.py'), rows, 100_000);
    expect(read.filter(({ refused }) => refused !== undefined)).toEqual([]);
    for (const { steps } of read) expect(steps).toEqual(expect.arrayContaining(cases.map(([step]) => step)));
    expect(read.map(({ status, result, error }) => [status, (result?.['clean_result'] ?? error) as unknown])).toEqual([
      ['SUCCEEDED', expect.objectContaining({ workers: 2, rounds: 14 })],
      ['SUCCEEDED', expect.objectContaining({ workers: 1 })],
      ['FAILED', expect.stringContaining('driver_info/agent_burnin_cpu_timeout must be a time')],
      ['FAILED', expect.stringContaining('gpu-burn failed with error')],
      ['FAILED', expect.stringContaining('dynamic pairing config is missing')],
      ['SUCCEEDED', expect.objectContaining({ erased: [] })],
      ['FAILED', expect.stringContaining('docker://r.example/a:1 is not in [container]allowed_containers')],
    ]);
  });
});
