/** Habits with subscriptions to events. */
import type { Habit } from '../protocol/habits';
import { refuse } from '../protocol/messages';
import type { ResourceBody } from '../protocol/routes';
import { forgetSubscriptions } from '../resources/events';
import { instead, problem, shows, together, without } from './change';

const SUBSCRIPTIONS = /^\/redfish\/v1\/EventService\/Subscriptions$/;

export const EVENT_HABITS = {
  'subscription-exists': {
    about: 'A second subscription for the same destination gets 400 ResourceAlreadyExists.',
    source: 'ironcore-dev/metal-operator bmc/redfish_hpe.go',
    around: async (asked, next, context) => {
      if (asked.method !== 'POST' || !SUBSCRIPTIONS.test(asked.path)) return next(asked);
      const { Destination: destination } = ((await asked.body().catch(() => undefined)) ?? {}) as ResourceBody;
      const key = `subscribed ${String(destination)}`;
      if (context.memory.has(key)) return refuse('ResourceAlreadyExists', 'EventDestination', 'Destination', String(destination));
      const answer = await next(asked);
      if (answer.status < 300) context.memory.set(key, true);
      return answer;
    },
  },
  'subscriptions-vanish': {
    about: 'After ten requests, all subscriptions are gone.',
    source: 'Cray-HPE/docs-csm known issue hpe_systems_not_transitioning_power_state',
    around: async (asked, next, { service, count }) => {
      if (count('requests before a loss') % 10 === 0) forgetSubscriptions(service);
      return next(asked);
    },
  },
  'subscriptions-without-types': {
    about: 'A subscription with EventTypes gets 400: it takes registry prefixes only.',
    source: 'ironcore-dev/metal-operator bmc/redfish.go',
    around: together(
      shows('EventService', (body) => without(body, 'EventTypesForSubscription')),
      instead(
        'POST',
        SUBSCRIPTIONS,
        problem(400, 'Base.1.8.PropertyUnknown', 'The property EventTypes is not in the list of valid properties for the resource.'),
        (sent) => sent['EventTypes'] !== undefined,
      ),
    ),
  },
  'subscriptions-without-retry-policy': {
    about: 'A subscription with DeliveryRetryPolicy gets 400.',
    source: 'ironcore-dev/metal-operator bmc/redfish_hpe.go',
    around: instead(
      'POST',
      SUBSCRIPTIONS,
      problem(400, 'Base.1.8.PropertyUnknown', 'The property DeliveryRetryPolicy is not in the list of valid properties for the resource.'),
      (sent) => sent['DeliveryRetryPolicy'] !== undefined,
    ),
  },
} as const satisfies Readonly<Record<string, Habit>>;
