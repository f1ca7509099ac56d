/** What is checked of the agent's steps before the machine is touched: the settings and files that the node has for them. */
import type { JsonObject } from '../records';
import {
  ANY_LIMITS,
  OUR_LIMITS,
  readCpuBurnIn,
  readDiskBurnIn,
  readGpuBurnIn,
  readMemoryBurnIn,
  readNetworkBurnIn,
  type BurnInLimits,
} from './burnin';
import { AgentError } from './errors';
import { readInjectedFiles } from './inject-files';

interface StepSettings {
  /** driver_info with the values of the step. */
  readonly info: JsonObject;
  readonly properties: JsonObject;
  readonly args: JsonObject;
}
/** Throws AgentError. */
type Check = (settings: StepSettings, limits: BurnInLimits) => unknown;
const burnIn =
  (read: (info: JsonObject, limits: BurnInLimits) => unknown): Check =>
  ({ info }, limits) =>
    read(info, limits);
/** `interface.step` → check. */
const CHECKS: Readonly<Record<string, Check>> = {
  'deploy.burnin_cpu': burnIn(readCpuBurnIn),
  'deploy.burnin_memory': burnIn(readMemoryBurnIn),
  'deploy.burnin_disk': burnIn(readDiskBurnIn),
  'deploy.burnin_network': burnIn(readNetworkBurnIn),
  'deploy.burnin_gpu': burnIn(readGpuBurnIn),
  'deploy.inject_files': ({ properties, args }) => readInjectedFiles(properties['inject_files'], args['files']),
};

/** @param isOurs whether our agent runs the step; otherwise what another agent could do is let through */
export function settingsProblem(id: string, settings: StepSettings, isOurs: boolean): string | undefined {
  try {
    CHECKS[id]?.(settings, isOurs ? OUR_LIMITS : ANY_LIMITS);
    return undefined;
  } catch (error) {
    if (!(error instanceof AgentError)) throw error;
    return error.details;
  }
}
