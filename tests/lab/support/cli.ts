/** The real `openstack baremetal` command against a server, in a network namespace when one is given. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { openstackClient } from './venv';

interface CommandResult {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}
export interface Cli {
  /** Runs `openstack baremetal ARGUMENTS`; throws with its error text when it fails. */
  run(...args: readonly string[]): Promise<string>;
  /** The same with `-f json`, parsed. */
  json(...args: readonly string[]): Promise<Record<string, unknown>>;
  /** Runs it; answers the result, also of a failure. */
  attempt(...args: readonly string[]): Promise<CommandResult>;
}

export async function openCli(endpoint: string, namespace?: string): Promise<Cli> {
  const openstack = join(await openstackClient(), 'openstack');
  const attempt = (...args: readonly string[]): Promise<CommandResult> => {
    const words = [openstack, 'baremetal', ...args];
    const command = namespace === undefined ? words : ['ip', 'netns', 'exec', namespace, ...words];
    return new Promise((done) => {
      execFile(
        command[0]!,
        command.slice(1),
        { env: { ...process.env, OS_AUTH_TYPE: 'none', OS_ENDPOINT: endpoint }, timeout: 600_000, maxBuffer: 64 << 20 },
        (error, output, errors) => done({ code: error === null ? 0 : Number(error.code ?? 1), output, errors }),
      );
    });
  };
  const run = async (...args: readonly string[]): Promise<string> => {
    const result = await attempt(...args);
    if (result.code !== 0) throw new Error(`openstack baremetal ${args.join(' ')}: ${result.errors || result.output}`);
    return result.output;
  };
  return { attempt, run, json: async (...args) => JSON.parse(await run(...args, '-f', 'json')) as Record<string, unknown> };
}
