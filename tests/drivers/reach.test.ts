import { urlForBmc } from '../../drivers/common/media';
import { reachableFrom } from '../../drivers/common/reach';
import { testTask } from '../support/task';

const OWN = { 'DEFAULT.my_ip': '10.0.0.1', 'DEFAULT.my_ipv6': 'fd00::1' } as const;
const URL = 'http://10.0.0.1:8080/a';

it.each([
  ['an agent with an IPv6 address', 'https://[fd00::5]:9999', 'http://[fd00::1]:8080/a'],
  ['a BMC with a bare address', 'fd00::5', 'http://[fd00::1]:8080/a'],
  ['a BMC with a user', 'https://me@[fd00::5]/', 'http://[fd00::1]:8080/a'],
  ['an agent with an IPv4 address', 'https://10.0.0.5:9999', URL],
  ['a host name', 'https://bmc.example', URL],
  ['an unknown peer', undefined, URL],
])('reachableFrom returns a URL that is reachable from %s', (_, peer, expected) => {
  expect(reachableFrom(peer, URL, OWN)).toBe(expected);
});
it('reachableFrom keeps the URL without my_ipv6, with an IPv6 my_ip, and for other hosts', () => {
  expect(reachableFrom('fd00::5', URL, { ...OWN, 'DEFAULT.my_ipv6': null })).toBe(URL);
  expect(reachableFrom('fd00::5', 'http://[fd00::9]/', { ...OWN, 'DEFAULT.my_ip': 'fd00::9' })).toBe('http://[fd00::9]/');
  expect(reachableFrom('fd00::5', 'http://images.example/a', OWN)).toBe('http://images.example/a');
});
it.each([
  ['https://[fd00::5]', {}, 'https://[fd00::1]:8443'],
  ['https://192.0.2.5', {}, 'https://10.0.0.1:8443'],
  ['https://[fd00::5]', { external_http_url: 'https://10.0.0.1' }, 'https://10.0.0.1'],
])('urlForBmc returns a URL that is reachable from the BMC %s', (bmc, more, expected) => {
  const { task } = testTask({
    node: { driver_info: { redfish_address: bmc, ...more } },
    options: { ...OWN, 'deploy.external_http_url': 'https://10.0.0.1:8443' },
  });
  expect(urlForBmc(task)).toBe(expected);
});
