/** What an agent says after a failure: its last command, and its logs. */
import { reasonOf } from '../../model/errors';
import { isObject } from '../../model/json';
import { oneLine } from '../../model/log';
import { MAX_SUBJECT } from '../../model/agent/subject';
import { shortened } from '../../model/text';
import type { AgentReport, Task } from '../interfaces';
import { type AgentClient, type AgentCommand, type CommandOptions, withAgent } from './client';

/** Seconds for each of the two requests. The node stays reserved meanwhile, and a machine that is off answers nothing. */
const PATIENCE = 20;
const COLLECT = 'log.collect_system_logs';
const MAX_NAME = 100;
/** Logs may have megabytes: few of them arrive at once, each lane one after the other. Agents that answer nothing wait in no lane. */
const lanes: Promise<unknown>[] = Array.from({ length: 8 }, () => Promise.resolve());
let turn = 0;
function inLane<T>(work: () => Promise<T>): Promise<T> {
  const lane = turn++ % lanes.length;
  const done = lanes[lane]!.then(work);
  lanes[lane] = done.catch(() => {});
  return done;
}

/** A silent agent, or one that gives no logs, is no error. */
export async function agentReport(task: Task): Promise<AgentReport> {
  const once: CommandOptions = { attempts: 1, timeout: Math.min(PATIENCE, task.options['agent.command_timeout']) };
  const reasonIn = (error: unknown): string => {
    task.signal.throwIfAborted();
    return reasonOf(error);
  };
  const ask = async (agent: AgentClient): Promise<AgentReport> => {
    // Agents list the collection of logs too.
    const last = (await agent.commands(once)).findLast(({ command_name: name }) => !COLLECT.endsWith(`.${name}`));
    return last ? { command: described(last) } : {};
  };
  const collect = async (agent: AgentClient): Promise<AgentReport> => {
    const { system_logs: logs } = (await agent.command(COLLECT, {}, { ...once, wait: true })).command_result ?? {};
    return typeof logs === 'string' ? { logs: Buffer.from(logs, 'base64') } : { noLogs: 'the agent sent none' };
  };
  try {
    return await withAgent(task, async (agent) => {
      const answer = await ask(agent);
      return { ...answer, ...(await inLane(() => collect(agent)).catch((error: unknown) => ({ noLogs: reasonIn(error) }))) };
    });
  } catch (error) {
    return { silence: reasonIn(error) };
  }
}

const short = (text: string, most: number): string => shortened(oneLine(text), most);
function described({
  command_name: name,
  command_status: status,
  command_error: error,
  command_result: result,
}: AgentCommand): NonNullable<AgentReport['command']> {
  const subject = isObject(error) ? error['subject'] : undefined;
  const percent = result?.['progress'];
  return {
    name: short(name, MAX_NAME),
    status: short(status, MAX_NAME),
    ...(typeof subject === 'string' ? { subject: short(subject, MAX_SUBJECT) } : {}),
    ...(typeof percent === 'number' && percent >= 0 && percent <= 100 ? { percent } : {}),
  };
}
