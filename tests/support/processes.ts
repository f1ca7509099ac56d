/** The built program (npm test builds it) as processes of a test's own, by the name of their host. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Ended {
  readonly code: number | null;
  readonly errors: string;
}
export interface Processes {
  /** @param settings its configuration file @returns its URL once it is ready; how it ended, if it does not start */
  start(host: string, roles: string, settings: string): Promise<string | Ended>;
  /** The process ID of a running process. */
  pid(host: string): number;
  end(host: string, signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
  /** Ends the running processes, and removes their files. */
  close(): Promise<void>;
}

/**
 * A configuration file with fake hardware, and ports that are free.
 * @param defaults lines of [DEFAULT]
 * @param sections further sections
 */
export const fakeSettings = (defaults: string, sections = ''): string => `[DEFAULT]
${defaults}
enabled_hardware_types = fake-hardware
enabled_boot_interfaces = fake
enabled_deploy_interfaces = fake
enabled_management_interfaces = fake
enabled_power_interfaces = fake
enabled_network_interfaces = noop
enabled_storage_interfaces = noop
[api]
host_ip = 127.0.0.1
port = 0
log_requests = all
[boot]
http_host = 127.0.0.1
http_port = 0
tftp = false
${sections}`;

/**
 * @param connection of their database
 * @param environment variables besides those of the tests
 */
export function openProcesses(connection: () => string, environment: Readonly<Record<string, string>> = {}): Processes {
  const folder = mkdtempSync(join(tmpdir(), 'bloomery-several-'));
  const running = new Map<string, ChildProcess>();
  const end: Processes['end'] = async (host, signal) => {
    const child = running.get(host);
    running.delete(host);
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((done) => child.once('exit', done));
    child.kill(signal);
    await ended;
  };
  return {
    end,
    pid: (host) => running.get(host)!.pid!,
    start: (host, roles, settings) => {
      const file = join(folder, `${host}.conf`);
      writeFileSync(file, settings);
      const words = ['serve', '--config-file', file, '--state-dir', join(folder, host), '--roles', roles];
      const child = spawn(process.execPath, [join(__dirname, '../../bin/bloomery'), ...words], {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, ...environment, DATABASE_URL: connection() },
      });
      let output = '';
      let errors = '';
      child.stderr.on('data', (data: Buffer) => (errors += data.toString()));
      return new Promise((resolve) => {
        child.once('close', (code) => resolve({ code, errors }));
        child.stdout.on('data', (data: Buffer) => {
          output += data.toString();
          if (!output.includes('ready in')) return;
          running.set(host, child);
          resolve(/API (http:\S+?),/.exec(output)?.[1] ?? host);
        });
      });
    },
    close: async () => {
      await Promise.all([...running.keys()].map((host) => end(host, 'SIGTERM')));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
