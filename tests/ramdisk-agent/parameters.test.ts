import { mediumWords, parseParameters, plainMac } from '../../ramdisk-agent/parameters';

it.each([
  ['', { apiUrls: [], inspectionUrls: [], lookupTimeout: 600, listenHost: '::', listenPort: 9999, insecure: false, bootInterface: null }],
  ['quiet ipa-api-url=http://a:6385,http://b:6385', { apiUrls: ['http://a:6385', 'http://b:6385'] }],
  ['ipa-inspection-callback-url=http://a/v1/continue_inspection', { inspectionUrls: ['http://a/v1/continue_inspection'] }],
  ['ipa-inspection-collectors=default,pci-devices', { inspectionCollectors: ['default', 'pci-devices'] }],
  ['ipa-debug=1 ipa-insecure', { debug: true, insecure: true }],
  ['ipa-debug=0 ipa-insecure=False', { debug: false, insecure: false }],
  ['ipa-lookup-timeout=30 ipa-lookup-timeout=40', { lookupTimeout: 40 }],
  ['ipa-agent-token="a b" BOOTIF=01-AA-bb-cc-dd-ee-ff', { agentToken: 'a b', bootInterface: '01-AA-bb-cc-dd-ee-ff' }],
  ['ipa-global-request-id=req-1=2', { globalRequestId: 'req-1=2' }],
])('parseParameters("%s")', (commandLine, expected) => {
  expect(parseParameters(commandLine)).toMatchObject(expected);
});

it('parseParameters keeps the default of a number that is invalid, and warns', () => {
  const warnings: string[] = [];
  expect(parseParameters('ipa-listen-port=high', (message) => warnings.push(message)).listenPort).toBe(9999);
  expect(warnings).toEqual(['Kernel parameter ipa-listen-port is not a number: high']);
});

it.each([
  ['01-AA-bb-cc-dd-ee-ff', 'aa:bb:cc:dd:ee:ff'],
  ['aa:bb:cc:dd:ee:FF', 'aa:bb:cc:dd:ee:ff'],
  ['aa-bb-cc-dd-ee-ff', 'aa:bb:cc:dd:ee:ff'],
  ['20-aa-bb-cc-dd-ee-ff', 'aa:bb:cc:dd:ee:ff'],
])('plainMac(%s) is %s', (given, plain) => {
  expect(plainMac(given)).toBe(plain);
});

it('mediumWords returns the parameters of a medium as a command line', () => {
  const words = mediumWords('ipa-api-url=http://a:6385\r\n\nipa-agent-token=a "b" c\nipa-debug\n');
  expect(words).toBe('ipa-api-url="http://a:6385" ipa-agent-token="a b c" ipa-debug');
  expect(parseParameters(`ipa-debug=0 ${words}`)).toMatchObject({ apiUrls: ['http://a:6385'], agentToken: 'a b c', debug: true });
  expect(mediumWords('')).toBe('');
});
