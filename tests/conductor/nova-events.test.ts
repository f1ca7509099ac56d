import { createNovaEvents } from '../../conductor/runtime/nova-events';
import type { Log } from '../../model/log';
import { ServiceError, type ServiceCall, type ServiceClient } from '../../wire/keystone/services';

const SERVER = 'f167a065-39de-45cb-aa56-36c663d6a96b';

/** @param answers for each request: the code of the event, or an error */
function pretendNova(answers: readonly (number | Error)[], { enabled = true, isConfigured = true } = {}) {
  const calls: ServiceCall[] = [];
  const complaints: string[] = [];
  const work: Promise<unknown>[] = [];
  const complain = (message: string, fields?: object): void => void complaints.push(`${message} ${JSON.stringify(fields)}`);
  const log: Log = { debug: () => {}, info: () => {}, warn: complain, error: complain, child: () => log };
  const nova = {
    isConfigured,
    request: async (path: string, call: ServiceCall) => {
      expect(path).toBe('/os-server-external-events');
      const answer = answers[calls.push(call) - 1] ?? 200;
      if (answer instanceof Error) throw answer;
      return { status: 200, headers: {}, body: { events: [{ code: answer }] } };
    },
  } as unknown as ServiceClient;
  const track = <T>(value: Promise<T>): Promise<T> => {
    work.push(value);
    return value;
  };
  const clock = { sleep: async () => {} };
  const events = createNovaEvents({ nova, enabled, log, clock, signal: new AbortController().signal, track });
  const settled = async (): Promise<void> => {
    for (let done = 0; done < work.length; done++) await work[done];
  };
  const sent = (): unknown[] => calls.map(({ body }) => (body as { events: unknown[] }).events[0]);
  return { events, calls, complaints, settled, sent };
}
const event = (tag: string): object => ({ name: 'power-update', server_uuid: SERVER, tag });

test('sends an event with the microversion and the request ID', async () => {
  const { events, calls, sent, settled, complaints } = pretendNova([]);
  events.powerUpdate(SERVER, 'power on', 'req-1');
  await settled();
  expect(sent()).toEqual([event('POWER_ON')]);
  expect(calls[0]).toMatchObject({ method: 'POST', globalRequestId: 'req-1', headers: { 'openstack-api-version': 'compute 2.76' } });
  expect(complaints).toEqual([]);
});

test('sends only the last of the power states that follow while an event is being sent', async () => {
  const { events, sent, settled } = pretendNova([]);
  for (const power of ['power off', 'power on', 'power off', 'power on'] as const) events.powerUpdate(SERVER, power);
  await settled();
  expect(sent()).toEqual([event('POWER_OFF'), event('POWER_ON')]);
});

test('tries three times if Nova does not answer, and once if Nova refuses', async () => {
  const away = new ServiceError('nova', 'unreachable', 'refused');
  const silent = pretendNova([away, new ServiceError('nova', 'failing', 'HTTP status 503', 503), away]);
  silent.events.powerUpdate(SERVER, 'power off');
  await silent.settled();
  expect(silent.calls).toHaveLength(3);
  expect(silent.complaints).toEqual([expect.stringContaining('could not send a power-update event')]);
  const refusing = pretendNova([new ServiceError('nova', 'failing', 'HTTP status 404', 404)]);
  refusing.events.powerUpdate(SERVER, 'power off');
  await refusing.settled();
  expect(refusing.calls).toHaveLength(1);
  const failed = pretendNova([422]);
  failed.events.powerUpdate(SERVER, 'power off');
  await failed.settled();
  expect([failed.calls.length, failed.complaints]).toEqual([1, [expect.stringContaining('code 422')]]);
});

test.each([{ enabled: false }, { isConfigured: false }])('sends nothing with %j', async (settings) => {
  const { events, calls, settled } = pretendNova([], settings);
  events.powerUpdate(SERVER, 'power on');
  await settled();
  expect(calls).toEqual([]);
});
