/** `bloomery simulate control`: shows a running fleet, sets faults of its BMCs, and controls the power of its machines. */
import type { Command } from 'commander';
import { parseFaults } from '../simulator/bmc/faults';
import { timeoutSignal } from '../wire/timeout-signal';
import { print, printJson } from './output';
import { printable } from '../model/log';

export const CONTROL_PORT = 6390;
const TIMEOUT_MS = 30_000;

interface MachineStatus {
  readonly name: string;
  readonly power: string;
  readonly phase: string;
  readonly faults: Readonly<Record<string, unknown>>;
}
const line = ({ name, power, phase, faults }: MachineStatus): string => {
  const faultTexts = Object.entries(faults).map(([fault, value]) =>
    value === true ? fault : `${fault}=${String(value).replaceAll(',', '+')}`,
  );
  return [name.padEnd(12), power.padEnd(4), phase.padEnd(9), faultTexts.join(',')].join(' ').trimEnd();
};

async function ask(base: string, method: string, path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(`${base}${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    signal: timeoutSignal(TIMEOUT_MS),
  }).catch(() => {
    throw new Error(`no fleet answers at ${base}: start one with bloomery simulate, or give --url`);
  });
  const answer = (await response.json()) as { readonly error?: string };
  if (!response.ok) throw new Error(answer.error ?? `the fleet answers ${response.status}`);
  return answer;
}

interface Arguments {
  readonly url: string;
  readonly power?: string;
  readonly json?: boolean;
}
async function control(machine: string | undefined, words: readonly string[], { url, power, json }: Arguments): Promise<void> {
  const path = `/machines/${encodeURIComponent(machine ?? 'all')}`;
  // "none" removes all faults; the words after it set new ones.
  const faults = parseFaults(words.join(' '));
  if (words.length > 0) await ask(url, words[0] === 'none' ? 'PUT' : 'PATCH', `${path}/faults`, faults);
  if (power !== undefined) await ask(url, 'POST', `${path}/power`, { action: power });
  const answer = (await ask(url, 'GET', machine === undefined || machine === 'all' ? '/machines' : path)) as MachineStatus & {
    readonly machines?: readonly MachineStatus[];
  };
  if (json) printJson(answer);
  else for (const item of answer.machines ?? [answer]) print(printable(line(item)));
}

export function addControlCommand(simulate: Command): void {
  simulate
    .command('control')
    .description('Show the machines of a running fleet, and set the faults of their BMCs.')
    .argument('[machine]', 'name of the machine, or all')
    .argument('[faults...]', 'faults to set: latency=300 hang …; latency=0 or hang=false removes one, none removes all')
    .option('--power <action>', 'power action at the machine itself, without its BMC: on, off, cycle, reset, soft or diagnostic')
    .option('--url <url>', 'control address of the fleet', `http://127.0.0.1:${CONTROL_PORT}`)
    .option('--json', 'print the response as JSON')
    .action(control);
}
