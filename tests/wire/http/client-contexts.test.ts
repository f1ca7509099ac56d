import { clientContext } from '../../../wire/http/client-contexts';

/** node:tls ignores text that is no certificate. */
const authority = (at: number): string => `-----BEGIN ${at}`;

it('clientContext returns the same context for the same authorities', () => {
  expect(clientContext('1.2', authority(1))).toBe(clientContext('1.2', authority(1)));
  expect(clientContext('1.2', authority(1))).not.toBe(clientContext('1.2', authority(2)));
  expect(clientContext('1.2')).toBe(clientContext('1.2'));
  expect(clientContext('1.2')).not.toBe(clientContext('1.3'));
});

it('clientContext discards the least recently used contexts', () => {
  const [first, used] = [clientContext('1.2', authority(1)), clientContext('1.2', authority(2))];
  for (let at = 3; at < 502; at++) {
    clientContext('1.2', authority(at));
    expect(clientContext('1.2', authority(2))).toBe(used);
  }
  expect(clientContext('1.2', authority(1))).not.toBe(first);
});
