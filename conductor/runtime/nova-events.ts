/**
 * Tells Nova the power states of its servers (`power-update`), so that Nova does not change them back. The flow that changed the power
 * does not wait for Nova, and does not fail if Nova is unreachable.
 */
import { retry } from '../../model/clock';
import type { Log } from '../../model/log';
import { reasonOf } from '../../model/errors';
import { isObject } from '../../model/json';
import type { ServiceClient } from '../../wire/keystone/services';

type ReportedPower = 'power on' | 'power off';
export interface NovaEvents {
  /** Sends the state in the background. It replaces an earlier state of the server that was not sent yet. */
  powerUpdate(serverUuid: string, power: ReportedPower, globalRequestId?: string): void;
}
interface NovaParts {
  readonly nova: ServiceClient;
  /** [nova]send_power_notifications */
  readonly enabled: boolean;
  readonly log: Log;
  readonly clock: { sleep(milliseconds: number, signal?: AbortSignal): Promise<void> };
  readonly signal: AbortSignal;
  readonly track: <T>(work: Promise<T>) => Promise<T>;
}

/** The first version of Nova's API with this event. */
const MICROVERSION = '2.76';
const TAGS: Readonly<Record<ReportedPower, string>> = { 'power on': 'POWER_ON', 'power off': 'POWER_OFF' };
/** Pauses before the second and the third attempt. */
const RETRY_PAUSES_MS = [1000, 5000];
/** Servers with an event that is not sent yet. More are dropped: Nova reads the power of all servers every ten minutes. */
const MAX_SERVERS = 20_000;
/** Requests at a time. */
const CONCURRENT = 8;

interface PowerEvent {
  readonly power: ReportedPower;
  readonly globalRequestId: string | undefined;
}

/** Returns the reason why Nova refused the event; undefined: Nova accepted it. */
async function send(
  nova: ServiceClient,
  serverUuid: string,
  { power, globalRequestId }: PowerEvent,
  signal: AbortSignal,
): Promise<string | undefined> {
  const event = { name: 'power-update', server_uuid: serverUuid, tag: TAGS[power] };
  const { body } = await nova.request('/os-server-external-events', {
    method: 'POST',
    headers: { 'openstack-api-version': `compute ${MICROVERSION}`, 'x-openstack-nova-api-version': MICROVERSION },
    body: { events: [event] },
    globalRequestId,
    signal,
  });
  const events = isObject(body) ? body['events'] : undefined;
  const code: unknown = Array.isArray(events) && isObject(events[0]) ? events[0]['code'] : undefined;
  if (typeof code !== 'number') return 'the response has no code';
  return code < 400 ? undefined : `code ${code}`;
}
/** Whether a later attempt may succeed: Nova is unreachable or overloaded. An error about the event itself would occur again. */
const isTemporary = (error: unknown): boolean => {
  const { kind, status } = error as { readonly kind?: unknown; readonly status?: unknown };
  return kind === 'unreachable' || (typeof status === 'number' && (status >= 500 || status === 429));
};

export function createNovaEvents({ nova, enabled, log, clock, signal, track }: NovaParts): NovaEvents {
  if (!enabled || !nova.isConfigured) return { powerUpdate: () => {} };
  const waiting = new Map<string, PowerEvent>();
  const sending = new Set<string>();

  async function deliver(serverUuid: string, event: PowerEvent): Promise<void> {
    const about = { server: serverUuid, power: event.power };
    const isObsolete = (): boolean => signal.aborted || waiting.has(serverUuid);
    const pauseAfter = (error: unknown, attempt: number): number | undefined =>
      isObsolete() || !isTemporary(error) ? undefined : RETRY_PAUSES_MS[attempt - 1];
    try {
      const refusal = await retry({ clock, signal }, () => send(nova, serverUuid, event, signal), pauseAfter);
      if (refusal !== undefined) log.warn('Nova did not take a power-update event', { ...about, reason: refusal });
    } catch (error) {
      if (!isObsolete()) log.warn('could not send a power-update event to Nova: check [nova]', { ...about, reason: reasonOf(error) });
    }
  }
  function next(): void {
    for (const [serverUuid, event] of waiting) {
      if (sending.size >= CONCURRENT || signal.aborted) return;
      if (sending.has(serverUuid)) continue;
      waiting.delete(serverUuid);
      sending.add(serverUuid);
      void track(
        deliver(serverUuid, event).finally(() => {
          sending.delete(serverUuid);
          next();
        }),
      );
    }
  }
  return {
    powerUpdate(serverUuid, power, globalRequestId) {
      if (!waiting.has(serverUuid) && waiting.size >= MAX_SERVERS) return;
      waiting.set(serverUuid, { power, globalRequestId });
      next();
    },
  };
}
