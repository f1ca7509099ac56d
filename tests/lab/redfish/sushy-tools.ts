/** sushy-tools' Redfish emulator on the loopback address, as a process of the test. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../support/free-port';
import { needs } from '../support/needs';
import { until } from '../../../demo/lab/machines';
import { programs } from '../support/venv';
import { timeoutSignal } from '../../../wire/timeout-signal';

export interface SushyTools {
  readonly url: string;
  readonly log: string;
  stop(): Promise<void>;
}

/**
 * @param folder of its own
 * @param configuration names without `SUSHY_EMULATOR_` → Python's notation of the value; `EXTERNAL_…` have no such prefix
 * @param words more of its command line, such as `--fake`
 */
export async function startSushyTools(
  folder: string,
  configuration: Readonly<Record<string, string>>,
  words: readonly string[] = [],
): Promise<SushyTools> {
  needs({ python3: 'python3-venv' });
  const emulator = join(await programs('sushy', ['sushy-tools==2.2.0'], true), 'sushy-emulator');
  mkdirSync(folder, { recursive: true });
  const port = await freePort();
  const scheme = 'SSL_CERT' in configuration ? 'https' : 'http';
  const values = { LISTEN_IP: '"127.0.0.1"', LISTEN_PORT: String(port), STATE_DIR: `"${folder}"`, ...configuration };
  const config = join(folder, 'emulator.conf');
  const lines = Object.entries(values).map(
    ([name, value]) => `${name.startsWith('EXTERNAL_') ? '' : 'SUSHY_EMULATOR_'}${name} = ${value}\n`,
  );
  writeFileSync(config, lines.join(''));
  const log = join(folder, 'emulator.log');
  const output = openSync(log, 'a');
  const child = spawn(emulator, ['--config', config, ...words], { stdio: ['ignore', output, output] });
  const ended = once(child, 'exit');
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await ended;
  };
  const url = `${scheme}://127.0.0.1:${port}`;
  const why = (): string => `sushy-emulator to answer\n${readFileSync(log, 'utf8').slice(-3000)}`;
  try {
    await until(240, why, async () => {
      if (child.exitCode !== null) throw new Error(`sushy-emulator ended\n${readFileSync(log, 'utf8').slice(-3000)}`);
      return fetch(`${url}/redfish/v1/`, { signal: timeoutSignal(2000) }).then(
        () => true,
        // An error about an unknown certificate also shows that it listens.
        (error: unknown) => /CERT|SIGNED/.test(String((error as { cause?: { code?: string } }).cause?.code)),
      );
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, log, stop };
}
