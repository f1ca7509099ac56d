import { endpoints } from '../../ramdisk-agent/endpoints';
import type { Machine } from '../../ramdisk-agent/machine';
import { parseParameters } from '../../ramdisk-agent/parameters';
import { silentLog } from '../../model/log';
import type { DiscoveredService } from '../../wire/dns/mdns';

const API: DiscoveredService = { addresses: ['10.0.0.1'], port: 6385, params: { protocol: 'http' } };
const SERVICE: DiscoveredService = { addresses: ['10.0.0.2'], port: 5050, params: { protocol: 'http', path: '/inspection/' } };
const TOLD = { ...API, params: { ...API.params, ipa_inspection_callback_url: 'http://told/v1/continue' } };
const NOBODY = { addresses: ['127.0.0.1'], port: 6385, params: {} };
const found = 'http://10.0.0.1:6385';
const service = 'http://10.0.0.2:5050/inspection/v1/continue';

/** The URLs that the agent uses, and the services that it looked up. */
async function resolve(commandLine: string, answers: Readonly<Record<string, DiscoveredService>>): Promise<object> {
  const asked: string[] = [];
  const machine = {
    parameters: parseParameters(commandLine),
    log: { ...silentLog, child: () => machine.log, text: () => '' },
    findService: async (name: string) => {
      asked.push(name);
      return answers[name];
    },
  } as unknown as Machine;
  return { ...(await endpoints(machine, new AbortController().signal)), asked };
}

const both = { baremetal: API, 'baremetal-introspection': SERVICE };
it.each<
  [commandLine: string, answers: Readonly<Record<string, DiscoveredService>>, apiUrls: string[], inspectionUrls: string[], asked: string[]]
>([
  ['', both, [], [], []],
  ['ipa-api-url=http://a,http://b', both, ['http://a', 'http://b'], [], []],
  ['ipa-api-url=http://a ipa-inspection-callback-url=http://c', both, ['http://a'], ['http://c'], []],
  ['ipa-api-url=http://a ipa-use-mdns=1', both, ['http://a'], [], []],
  ['ipa-use-mdns=1', both, [found], [], ['baremetal']],
  ['ipa-use-mdns=1', {}, [], [], ['baremetal']],
  ['ipa-use-mdns=1', { baremetal: NOBODY }, [], [], ['baremetal']],
  ['ipa-use-mdns=0', both, [], [], []],
  ['ipa-api-url=mdns', both, [found], [], ['baremetal']],
  ['ipa-api-url=mdns', { baremetal: TOLD }, [found], ['http://told/v1/continue'], ['baremetal']],
  ['ipa-api-url=mdns ipa-inspection-callback-url=http://c', { baremetal: TOLD }, [found], ['http://c'], ['baremetal']],
  ['ipa-inspection-callback-url=mdns', both, [], [service], ['baremetal-introspection']],
  ['ipa-api-url=http://a ipa-inspection-callback-url=mdns', both, ['http://a'], [service], ['baremetal-introspection']],
  ['ipa-api-url=mdns ipa-inspection-callback-url=mdns', both, [found], [service], ['baremetal', 'baremetal-introspection']],
  [
    'ipa-api-url=mdns ipa-inspection-callback-url=mdns',
    { ...both, baremetal: TOLD },
    [found],
    [service],
    ['baremetal', 'baremetal-introspection'],
  ],
])('endpoints with the parameters "%s"', async (commandLine, answers, apiUrls, inspectionUrls, asked) => {
  expect(await resolve(commandLine, answers)).toEqual({ apiUrls, inspectionUrls, asked });
});

it.each([
  ['ipa-api-url=mdns', {}, 'baremetal'],
  ['ipa-api-url=mdns', { baremetal: NOBODY }, 'baremetal'],
  ['ipa-inspection-callback-url=mdns', {}, 'baremetal-introspection'],
  ['ipa-api-url=mdns ipa-inspection-callback-url=mdns', { baremetal: API }, 'baremetal-introspection'],
])('endpoints fails with "%s" if no service is found', async (commandLine, answers, missing) => {
  await expect(resolve(commandLine, answers)).rejects.toMatchObject({
    type: 'ServiceLookupFailure',
    details: `No service ${missing} was found by multicast DNS`,
  });
});
