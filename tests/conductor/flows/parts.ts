/** What tests of flows give a node: steps, interfaces that refuse, and a record of what is done. */
import { fakeDeploy } from '../../../drivers/fake/fake';
import { done, type DeployInterface, type Driver, type Step } from '../../../drivers/interfaces';
import { Fault } from '../../../model/errors';
import type { JsonObject } from '../../../model/records';
import type { flowTask, FlowTask } from '../../support/flow-task';

export type Given = NonNullable<Parameters<typeof flowTask>[0]>;
export const no = (reason: string) => async (): Promise<never> => {
  throw new Fault('InvalidParameterValue', { message: reason });
};
export const step = (name: string, changes: Partial<Step> = {}): Step => ({
  step: name,
  priority: { clean: 0, deploy: 0, service: 0 },
  args: {},
  abortable: true,
  requiresRamdisk: false,
  resumable: true,
  run: async () => done,
  ...changes,
});
export const withDeploy = (changes: Partial<DeployInterface>): Partial<Driver> => ({ deploy: { ...fakeDeploy, steps: [], ...changes } });
/** A function that adds `what` to the events that a test compares. */
export const said = (given: FlowTask, what: string) => async (): Promise<void> => void given.events.push(what);
export const running = (name: string, changes: JsonObject = {}): JsonObject => ({
  interface: 'deploy',
  step: name,
  priority: 0,
  argsinfo: {},
  ...changes,
});
