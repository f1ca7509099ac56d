import { createBootRequestLog } from '../../boot/requests';
import { silentLog } from '../../model/log';
import type { NodeBootRequests } from '../../model/records';
import { testClock } from '../support/clock';
import { until } from '../support/until';

/** Records the statements. The first ones fail. */
function recording(failures = 0) {
  const written: (readonly NodeBootRequests[])[] = [];
  let left = failures;
  const noteRequests = async (requests: readonly NodeBootRequests[]): Promise<void> => {
    written.push(requests);
    if (left-- > 0) throw new Error('the database is away');
  };
  return { written, boots: { noteRequests } };
}

it('writes the last request of each protocol, for many nodes with one statement', async () => {
  const { written, boots } = recording();
  const log = createBootRequestLog(boots, testClock(), silentLog);
  log.note('one', 'DHCP');
  log.note('one', 'DHCP');
  log.note('one', 'HTTP');
  log.note('two', 'TFTP');
  await until('the statement', () => written.length > 0);
  const [requests] = written;
  expect(requests!.map(({ node_uuid: uuid, requests: of }) => [uuid, Object.keys(of)])).toEqual([
    ['one', ['DHCP', 'HTTP']],
    ['two', ['TFTP']],
  ]);
  expect(written).toHaveLength(1);
});

it('continues after a failed statement, and writes nothing after stop', async () => {
  const { written, boots } = recording(1);
  const log = createBootRequestLog(boots, testClock(), silentLog);
  log.note('one', 'DHCP');
  await until('the failure', () => written.length === 1);
  log.note('two', 'DHCP');
  await until('the next statement', () => written.length === 2);
  expect(written[1]!.map(({ node_uuid: uuid }) => uuid)).toEqual(['two']);
  log.stop();
  log.note('three', 'DHCP');
  await Promise.resolve();
  expect(written).toHaveLength(2);
});
