/** Runs the conductor's commands one at a time, and stores their results. */
import type { JsonObject } from '../model/records';
import type { Log } from '../model/log';
import { AgentError, type ErrorBody, toBody } from '../model/agent/errors';
import { subjectOf } from '../model/agent/subject';
import { reasonOf } from '../model/errors';
import type { ReportProgress } from './system/progress';

export interface Command {
  /** The response comes at once, while the command runs in the background. Its end forces a heartbeat. */
  readonly inBackground?: true;
  /** Runs although another command runs, and is not listed: conductors take the last command of the list for the running step. */
  readonly beside?: true;
  /** The result shows what `progress` reports while the command runs. A returned string becomes {result: …}. Throws AgentError. */
  run(params: JsonObject, progress: ReportProgress): Promise<JsonObject | string | null>;
}
/** Full name (`clean.get_clean_steps`) → command. */
export type Commands = Readonly<Record<string, Command>>;

const shortOf = (name: string): string => name.slice(name.indexOf('.') + 1);

interface CommandResult {
  readonly id: string;
  /** Without the extension, as conductors expect. */
  readonly command_name: string;
  readonly command_status: 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'CLEAN_VERSION_MISMATCH';
  readonly command_error: ErrorBody | null;
  readonly command_result: JsonObject | null;
}
export interface Runner {
  /**
   * Starts a command. Resolves at once for a background command without `wait`, otherwise when the command ends. Throws AgentError:
   * unknown command (400, 404), busy (409).
   */
  execute(name: string, params: JsonObject, wait: boolean): Promise<CommandResult>;
  list(): readonly CommandResult[];
  /** Throws RequestedObjectNotFoundError. */
  get(id: string, wait: boolean): Promise<CommandResult>;
  /** Resolves when no command runs. */
  idle(): Promise<void>;
}

/** An agent serves one deployment, so only a faulty conductor causes more results than this. The oldest are dropped. */
const MAX_KEPT = 1000;

/** @param progressed called after each tenth (10 %) of a command's work */
export function runner(commands: Commands, newId: () => string, finished: () => void, log: Log, progressed: () => void = () => {}): Runner {
  const results = new Map<string, { now: CommandResult; readonly end: Promise<void> }>();
  const latest = (): CommandResult | undefined => [...results.values()].at(-1)?.now;

  async function runBeside(name: string, command: Command, params: JsonObject): Promise<CommandResult> {
    const base = { id: newId(), command_name: shortOf(name), command_error: null, command_result: null };
    try {
      const result = await command.run(params, () => {});
      return { ...base, command_status: 'SUCCEEDED', command_result: typeof result === 'string' ? { result } : result };
    } catch (error) {
      return { ...base, command_status: 'FAILED', command_error: toBody(error) };
    }
  }
  function start(name: string, command: Command, params: JsonObject): string {
    const id = newId();
    const shortName = shortOf(name);
    const base = { id, command_name: shortName, command_error: null, command_result: null };
    const set = (changes: Partial<CommandResult>): void => {
      entry.now = { ...entry.now, ...changes };
    };
    let tenths = 0;
    const report: ReportProgress = (percent, bytes) => {
      set({ command_result: { progress: Math.round(percent), ...(bytes ? { bytes } : {}) } });
      if (Math.floor(percent / 10) <= tenths) return;
      tenths = Math.floor(percent / 10);
      progressed();
    };
    const work = async (): Promise<void> => {
      try {
        const result = await command.run(params, report);
        const prefix = command.inBackground ? `${shortName}: ` : '';
        set({ command_status: 'SUCCEEDED', command_result: typeof result === 'string' ? { result: prefix + result } : result });
        log.info(`Command ${name} completed`);
      } catch (error) {
        const mismatch = error instanceof AgentError && error.type === 'VersionMismatch';
        set({ command_status: mismatch ? 'CLEAN_VERSION_MISMATCH' : 'FAILED', command_error: toBody(error), command_result: null });
        const subject = subjectOf(error);
        log.error(`Command ${name} failed: ${reasonOf(error)}${subject === undefined ? '' : ` [${subject}]`}`);
      }
      if (command.inBackground) finished();
    };
    const entry = { now: { ...base, command_status: 'RUNNING' } as CommandResult, end: Promise.resolve().then(() => work()) };
    results.set(id, entry);
    for (const oldest of results.keys()) {
      if (results.size <= MAX_KEPT) break;
      results.delete(oldest);
    }
    return id;
  }
  async function get(id: string, wait: boolean): Promise<CommandResult> {
    const entry = results.get(id);
    if (!entry) throw new AgentError('RequestedObjectNotFoundError', `Command Result with id ${id} not found.`);
    if (wait) await entry.end;
    return entry.now;
  }
  return {
    async execute(name, params, wait) {
      const [extension, shortName] = name.split('.', 2);
      if (shortName === undefined) throw new AgentError('InvalidCommandError', 'Command name must be of the form <extension>.<name>');
      const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
      if (command?.beside) return runBeside(name, command, params);
      const last = latest();
      if (last?.command_status === 'RUNNING') throw new AgentError('AgentIsBusy', `executing command ${last.command_name}`);
      if (!command && !Object.keys(commands).some((known) => known.startsWith(`${extension}.`))) {
        throw new AgentError('RequestedObjectNotFoundError', `Extension with id ${extension} not found.`);
      }
      if (!command) throw new AgentError('InvalidCommandError', `Unknown command: ${shortName}`);
      log.info(`Executing command ${name}`);
      return get(start(name, command, params), wait || !command.inBackground);
    },
    list: () => [...results.values()].map((entry) => entry.now),
    get,
    async idle() {
      await Promise.all([...results.values()].map((entry) => entry.end));
    },
  };
}
