/** The agent's settings on the kernel command line, as a table that one function reads. */

type ParameterKind = 'text' | 'number' | 'flag' | 'list';
interface ParameterRow {
  /** The name on the command line. */
  readonly parameter: string;
  readonly kind: ParameterKind;
  readonly default: string | number | boolean | readonly string[] | null;
}

/** Times are in seconds. Names and defaults are ironic-python-agent's. */
const ROWS = {
  /** Base URLs of the bare metal API, tried in order; `mdns`: found by multicast DNS. */
  apiUrls: { parameter: 'ipa-api-url', kind: 'list', default: [] },
  /** Only with virtual media, whose image is made for this machine alone. */
  agentToken: { parameter: 'ipa-agent-token', kind: 'text', default: null },
  /** Uses multicast DNS when there are no URLs. */
  useMdns: { parameter: 'ipa-use-mdns', kind: 'flag', default: false },
  /** Its presence requests an inspection. */
  inspectionUrls: { parameter: 'ipa-inspection-callback-url', kind: 'list', default: [] },
  inspectionCollectors: { parameter: 'ipa-inspection-collectors', kind: 'list', default: ['default', 'logs'] },
  inspectionDhcpWait: { parameter: 'ipa-inspection-dhcp-wait-timeout', kind: 'number', default: 60 },
  inspectionDhcpAll: { parameter: 'ipa-inspection-dhcp-all-interfaces', kind: 'flag', default: false },
  /** Benchmarks of the collector extra-hardware: cpu, disk, mem. */
  inspectionBenchmarks: { parameter: 'ipa-inspection-benchmarks', kind: 'list', default: [] },
  /** Adds LLDP data to the interfaces of the inventory. */
  collectLldp: { parameter: 'ipa-collect-lldp', kind: 'flag', default: false },
  lldpTimeout: { parameter: 'ipa-lldp-timeout', kind: 'number', default: 30 },
  lookupTimeout: { parameter: 'ipa-lookup-timeout', kind: 'number', default: 600 },
  lookupInterval: { parameter: 'ipa-lookup-interval', kind: 'number', default: 1 },
  listenHost: { parameter: 'ipa-listen-host', kind: 'text', default: '::' },
  listenPort: { parameter: 'ipa-listen-port', kind: 'number', default: 9999 },
  advertiseHost: { parameter: 'ipa-advertise-host', kind: 'text', default: null },
  advertisePort: { parameter: 'ipa-advertise-port', kind: 'number', default: 9999 },
  /** `https`, which this agent always speaks, or `http`. Only for the names of ironic-python-agent: `http` causes a warning. */
  advertiseProtocol: { parameter: 'ipa-advertise-protocol', kind: 'text', default: null },
  /** The interface whose address the conductor gets; null: that of the route to the API. */
  networkInterface: { parameter: 'ipa-network-interface', kind: 'text', default: null },
  /** VLANs to make: `eth0.100`, or interfaces whose switch announces them, or `all`. */
  vlanInterfaces: { parameter: 'ipa-enable-vlan-interfaces', kind: 'list', default: [] },
  /** Of the agent's API, if the server does not set it. */
  tlsMinVersion: { parameter: 'ipa-tls-min-version', kind: 'text', default: '1.2' },
  tlsCipherSuites: { parameter: 'ipa-tls-cipher-suites', kind: 'text', default: null },
  /** Of the agent's own key: p256 or p384. Null: p256, which costs the conductor the least. */
  tlsCertificateCurve: { parameter: 'ipa-tls-certificate-curve', kind: 'text', default: null },
  /** Of the API, in place of the newest that both know. */
  apiVersion: { parameter: 'ipa-ironic-api-version', kind: 'text', default: null },
  addressAttempts: { parameter: 'ipa-ip-lookup-attempts', kind: 'number', default: 6 },
  addressInterval: { parameter: 'ipa-ip-lookup-timeout', kind: 'number', default: 10 },
  hardwareDelay: { parameter: 'ipa-hardware-initialization-delay', kind: 'number', default: 0 },
  diskWaitAttempts: { parameter: 'ipa-disk-wait-attempts', kind: 'number', default: 10 },
  diskWaitDelay: { parameter: 'ipa-disk-wait-delay', kind: 'number', default: 3 },
  /** A disk that does nothing for this time, while it is read or written, hangs. The kernel's own limits, if any, end before it. */
  diskTimeout: { parameter: 'ipa-disk-timeout', kind: 'number', default: 300 },
  /** Accepts any certificate of the API and of image servers. */
  insecure: { parameter: 'ipa-insecure', kind: 'flag', default: false },
  /** PEM file in the ramdisk with certificate authorities that replace the usual ones. Default: those that the server added, if any. */
  caFile: { parameter: 'ipa-ca-file', kind: 'text', default: null },
  globalRequestId: { parameter: 'ipa-global-request-id', kind: 'text', default: null },
  requestTimeout: { parameter: 'ipa-http-request-timeout', kind: 'number', default: 30 },
  imageTimeout: { parameter: 'ipa-image-download-connection-timeout', kind: 'number', default: 60 },
  /** Seconds of all attempts to download an image; 0: no limit. */
  imageMaxDuration: { parameter: 'ipa-image-download-max-duration', kind: 'number', default: 0 },
  imageRetries: { parameter: 'ipa-image-download-connection-retries', kind: 'number', default: 9 },
  imageRetryInterval: { parameter: 'ipa-image-download-connection-retry-interval', kind: 'number', default: 10 },
  /** Priority of the step inject_files, at most 99: at 100 the ramdisk boots. 0: only on request. */
  injectFilesPriority: { parameter: 'ipa-inject-files-priority', kind: 'number', default: 0 },
  ignoreBootloaderFailure: { parameter: 'ipa-ignore-bootloader-failure', kind: 'flag', default: false },
  /** Disks that can discard, and do not promise zeros afterwards, are erased so, and places of them are read back (erase/methods.ts). */
  discardErase: { parameter: 'ipa-enable-discard-erase', kind: 'flag', default: false },
  /** Shared storage is neither erased nor overwritten (disk/guard.ts). */
  guardSharedStorage: { parameter: 'ipa-guard-special-filesystems', kind: 'flag', default: true },
  /** `vmedia`: the ramdisk comes from virtual media. */
  bootMethod: { parameter: 'boot_method', kind: 'text', default: null },
  /** Its time is taken before the first TLS connection. */
  ntpServer: { parameter: 'ipa-ntp-server', kind: 'text', default: null },
  debug: { parameter: 'ipa-debug', kind: 'flag', default: false },
  /** MAC address of the interface that the machine booted from, `01-aa-…` or plain. */
  bootInterface: { parameter: 'BOOTIF', kind: 'text', default: null },
} as const satisfies Record<string, ParameterRow>;

type Plain<K extends ParameterKind> = K extends 'number'
  ? number
  : K extends 'flag'
    ? boolean
    : K extends 'list'
      ? readonly string[]
      : string;
export type Parameters = {
  readonly [Key in keyof typeof ROWS]: (typeof ROWS)[Key]['default'] extends null ? string | null : Plain<(typeof ROWS)[Key]['kind']>;
};

/** @internal */
export const PARAMETER_NAMES: readonly string[] = Object.values(ROWS).map(({ parameter }) => parameter);

/** Parses a kernel command line. The last of equal names counts. A number that is invalid causes a warning and counts as absent. */
export function parseParameters(commandLine: string, warn: (message: string) => void = () => {}): Parameters {
  const given = new Map(words(commandLine).map((word) => split(word)));
  const entries = Object.entries(ROWS as Record<string, ParameterRow>).map(([key, row]) => {
    const text = given.get(row.parameter);
    if (text === undefined) return [key, row.default];
    const value = read(row.kind, text);
    if (value === undefined) warn(`Kernel parameter ${row.parameter} is not a number: ${text}`);
    return [key, value ?? row.default];
  });
  return Object.fromEntries(entries) as Parameters;
}

/** The parameters on a medium of the BMC (lines `name=value`), as words of a command line. */
export const mediumWords = (text: string): string =>
  text
    .split('\n')
    .map((line) => split(line.trim()))
    .filter(([name]) => name !== '')
    .map(([name, value]) => (value === '' ? name : `${name}="${value.replaceAll('"', '')}"`))
    .join(' ');

/** `01-aa-bb-cc-dd-ee-ff` or `aa:bb:cc:dd:ee:ff` → the latter, lower case. */
export const plainMac = (bootInterface: string): string =>
  bootInterface
    .replace(/^[0-9a-f]{2}-(?=(?:[0-9a-f]{2}-){5})/i, '')
    .replaceAll('-', ':')
    .toLowerCase();

/** Splits a command line as the kernel does: spaces inside double quotes do not separate words. */
const words = (commandLine: string): readonly string[] =>
  [...commandLine.matchAll(/(?:[^\s"]|"[^"]*")+/g)].map((match) => match[0].replaceAll('"', ''));

function split(word: string): [string, string] {
  const at = word.indexOf('=');
  return at < 0 ? [word, ''] : [word.slice(0, at), word.slice(at + 1)];
}

function read(kind: ParameterKind, text: string): string | number | boolean | readonly string[] | undefined {
  if (kind === 'text') return text;
  if (kind === 'list') return text.split(',').filter((part) => part !== '');
  if (kind === 'flag') return !['0', 'false', 'no', 'off', 'f', 'n'].includes(text.toLowerCase());
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined;
}
