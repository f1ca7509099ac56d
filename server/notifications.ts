/** Sends notifications as configured: to the log, like oslo.messaging's driver `log`, and to a URL. */
import type { LoadedOptions } from '../config/options';
import type { Clock } from '../model/clock';
import { newUuid } from '../model/idents';
import type { Log } from '../model/log';
import { maskSecrets } from '../model/masks';
import type { Metrics } from '../model/metrics';
import { LEVELS, type Level, type Notification, type Notifier } from '../model/notifications';
import type { JsonObject } from '../model/records';
import { withoutUrlCredentials } from '../model/urls';
import { createWebhook, type Webhook } from '../wire/http/webhook';

interface OpenNotifier {
  readonly notifier: Notifier;
  /** Tries to send the queued notifications first. */
  stop(): Promise<void>;
}

/** Limit for sending queued notifications at a stop. */
const STOP_TIMEOUT_MS = 3000;
/** Interval of log lines about lost notifications; each loss is counted. */
const LOG_INTERVAL_MS = 60_000;
const MESSAGING = ['messaging', 'messagingv2', 'routing'];

/** oslo.messaging's time format: 2026-03-01 10:00:00.123000 */
const messagingTime = (milliseconds: number): string => new Date(milliseconds).toISOString().replace('T', ' ').replace('Z', '000');
const context = ({ cause }: Notification): JsonObject => ({
  _context_request_id: cause?.requestId ?? null,
  _context_global_request_id: cause?.globalRequestId ?? null,
  _context_user: cause?.user ?? null,
  _context_project_id: cause?.project ?? null,
});

interface NotifierSetup {
  readonly options: LoadedOptions;
  /** This host, for publisher_id. */
  readonly host: string;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly random: (bytes: number) => Buffer;
}

/** Throws an Error for the operator if the URL is invalid. */
export function createNotifier({ options, host, log, clock, metrics, random }: NotifierSetup): OpenNotifier {
  const lowest = options['DEFAULT.notification_level'];
  const url = options['notifications.webhook_url'];
  const drivers = options['oslo_messaging_notifications.driver'];
  const queues = drivers.filter((driver) => MESSAGING.includes(driver));
  if (queues.length > 0)
    log.warn(
      `[oslo_messaging_notifications]driver: message queues are not supported, so ${queues.join(', ')} sends nothing; use log, or webhook_url`,
    );
  const unknown = drivers.filter((driver) => ![...MESSAGING, 'log', 'noop', ''].includes(driver));
  if (unknown.length > 0)
    log.warn(
      `[oslo_messaging_notifications]driver: ${unknown.join(', ')} is not available and sends nothing: use log, or webhook_url; /metrics has the sensors`,
    );
  if (lowest === null && url !== null && !options['sensor_data.send_sensor_data'])
    log.warn('[notifications]webhook_url has no effect without [DEFAULT]notification_level or [sensor_data]send_sensor_data');
  const toLog = drivers.includes('log');

  let silentUntil = 0;
  const webhook: Webhook | undefined =
    url === null
      ? undefined
      : createWebhook({
          url: checkedUrl(url),
          secret: options['notifications.webhook_secret'],
          headers: options['notifications.webhook_headers'],
          timeoutMs: options['notifications.webhook_timeout'] * 1000,
          retries: options['notifications.webhook_retries'],
          queue: options['notifications.webhook_queue'],
          now: () => clock.now() / 1000,
          sleep: (milliseconds, signal) => clock.sleep(milliseconds, signal),
          told: (outcome, { event, id }, reason) => {
            metrics.count('bloomery_notifications_total', { driver: 'webhook', outcome });
            if (outcome === 'sent' || clock.now() < silentUntil) return;
            silentUntil = clock.now() + LOG_INTERVAL_MS;
            log.error('a notification was lost; further losses are counted, and logged after a minute', { event, message: id, reason });
          },
        });
  if (webhook) metrics.read('bloomery_notifications_waiting', () => [[{}, webhook.waiting()]]);

  const write = (level: Level, message: JsonObject): void => {
    const line = withoutUrlCredentials(JSON.stringify(maskSecrets(message, '***')));
    log[level === 'warning' ? 'warn' : level === 'critical' ? 'error' : level](line, {
      logger: `oslo.messaging.notification.${message['event_type'] as string}`,
    });
    metrics.count('bloomery_notifications_total', { driver: 'log', outcome: 'sent' });
  };
  const wants = (level: Level): boolean =>
    lowest !== null && (toLog || webhook !== undefined) && LEVELS.indexOf(level) >= LEVELS.indexOf(lowest);
  const send = (notification: Notification): void => {
    const { publisher, eventType, level, payload } = notification;
    const message = {
      message_id: newUuid(random),
      publisher_id: `${publisher}.${host}`,
      event_type: eventType,
      priority: level.toUpperCase(),
      payload,
      timestamp: messagingTime(clock.now()),
    };
    if (toLog) write(level, message);
    webhook?.send({
      id: message.message_id,
      event: eventType,
      body: withoutUrlCredentials(JSON.stringify({ ...message, ...context(notification) })),
    });
  };
  return {
    notifier: {
      wants,
      send: (notification) => {
        try {
          send(notification);
        } catch (error) {
          log.error('could not create a notification', { event: notification.eventType, error });
        }
      },
    },
    stop: async () => webhook?.stop(STOP_TIMEOUT_MS),
  };
}

function checkedUrl(url: string): string {
  if (!/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : ''))
    throw new Error('[notifications]webhook_url is not an HTTP(S) URL');
  return url;
}
