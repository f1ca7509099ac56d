import { clientContext } from '../../../wire/http/client-contexts';

/** node:tls ignores text that is no certificate. */
const authority = (at: number): string => `-----BEGIN ${at}`;

it('clientContext returns the same context for the same authorities', () => {
  expect(clientContext(authority(1))).toBe(clientContext(authority(1)));
  expect(clientContext(authority(1))).not.toBe(clientContext(authority(2)));
  expect(clientContext()).toBe(clientContext());
});

it('clientContext discards the least recently used contexts', () => {
  const [first, used] = [clientContext(authority(1)), clientContext(authority(2))];
  for (let at = 3; at < 502; at++) {
    clientContext(authority(at));
    expect(clientContext(authority(2))).toBe(used);
  }
  expect(clientContext(authority(1))).not.toBe(first);
});
