/** The commands of the agent in a deployed system. The conductor asks for them; the agent asks for no work. */
import { AgentError } from '../../model/agent/errors';
import { reasonOf } from '../../model/errors';
import { isObject } from '../../model/json';
import type { JsonObject } from '../../model/records';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import { isKernelLoaded } from '../kexec/kexec';
import type { Leave } from './leave';
import { type Fetch, loadRamdisk, type LoadHost, type RamdiskFile } from './load-ramdisk';

export interface ResidentHost extends LoadHost {
  /** The node's UUID. */
  readonly node: string;
  readonly bootId: string;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly fetch: Fetch;
  readonly leave: Leave;
}
interface Command {
  readonly inBackground?: true;
  run(params: JsonObject): Promise<JsonObject>;
}

/** Milliseconds before the services stop, in which the agent sends the response to the command. */
const FAREWELL_MS = 300;
const MAX_URL = 2048;

const wrong = (what: string): AgentError => new AgentError('InvalidCommandParamsError', `${what} is missing or wrong`);
function fileOf(params: JsonObject, name: 'kernel' | 'initrd'): RamdiskFile {
  const file = params[name];
  const { url, size, sha256 } = isObject(file) ? file : {};
  if (typeof url !== 'string' || url.length > MAX_URL || !/^https?:\/\/[^/]/.test(url)) throw wrong(`${name}.url`);
  if (!Number.isSafeInteger(size) || (size as number) < 1) throw wrong(`${name}.size`);
  if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256)) throw wrong(`${name}.sha256`);
  return { url, size: size as number, sha256 };
}
/** A conductor that means another machine must not restart this one. */
function checkNode(host: ResidentHost, params: JsonObject): void {
  if (params['node'] !== host.node) throw new AgentError('InvalidCommandParamsError', 'this is the agent of another node');
}

export function residentCommands(host: ResidentHost): Readonly<Record<string, Command>> {
  let isGoing = false;
  return {
    'resident.identify': {
      run: async () => ({ node: host.node, boot_id: host.bootId, version: host.version, machine: host.machine, going: isGoing }),
    },
    'resident.load': {
      inBackground: true,
      run: async (params) => {
        checkNode(host, params);
        const line = params['command_line'];
        if (typeof line !== 'string') throw wrong('command_line');
        if (isGoing) throw new AgentError('CommandExecutionError', 'the services stop already');
        const files = { kernel: fileOf(params, 'kernel'), initrd: fileOf(params, 'initrd') };
        try {
          await host.leave.check();
          await loadRamdisk(host, host.fetch, files, line);
        } catch (error) {
          throw new AgentError('CommandExecutionError', reasonOf(error), { cause: error });
        }
        host.log.info('Loaded the ramdisk');
        return { loaded: true };
      },
    },
    'resident.start': {
      run: async (params) => {
        checkNode(host, params);
        if (!isKernelLoaded(host.tree)) throw new AgentError('CommandExecutionError', 'No ramdisk is loaded');
        isGoing = true;
        const go = async (): Promise<void> => {
          await host.clock.sleep(FAREWELL_MS);
          host.log.info('The services stop, and the ramdisk starts');
          await host.leave.go();
        };
        void go().catch((error: unknown) => {
          isGoing = false;
          host.log.error(`The ramdisk was not started: ${reasonOf(error)}`);
        });
        return { going: true };
      },
    },
  };
}
