/** Events that the BMC of a node has sent to the API, which knows that they are from this BMC. */
import type { BmcEvent } from '../../model/rules/bmc-events';
import type { Context } from '../core/context';

export const noteBmcEvents = async ({ options, eventReads }: Context, uuid: string, events: readonly BmcEvent[]): Promise<boolean> =>
  options['health.enabled'] && eventReads.note(uuid, events);
