/** The image instead of metal3's: crun runs its programs, with the environment that ironic-standalone-operator writes. */
import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { hashSync } from 'bcryptjs';
import { addNamespace, removeNamespace } from '../../../demo/lab/namespace';
import { needs } from '../support/needs';
import { containerCommand, unpackImage } from './image';
import { MAKING_MS } from './release';

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'bloomery-lab-metal3-'));
const shared = join(folder, 'shared');
const ADDRESS = '172.22.0.2';
const CLIENT = '52:54:00:aa:00:01';
let host: string;
let clients: string;

/** The variables of all three containers (metal3's operator, containers.go). */
const POD = [
  'IRONIC_LISTEN_PORT=6385',
  'IRONIC_ACCESS_PORT=6385',
  'HTTP_PORT=6180',
  'LISTEN_ALL_INTERFACES=true',
  `PROVISIONING_IP=${ADDRESS}`,
];
const IRONIC = ['IRONIC_USE_MARIADB=false', 'IRONIC_EXPOSE_JSON_RPC=false', 'IRONIC_JSON_RPC_PORT=6189'];
const PROXY = ['IRONIC_PRIVATE_PORT=unix', 'IRONIC_REVERSE_PROXY_SETUP=true', 'VMEDIA_TLS_PORT=6183'];
/** bcrypt's prefix as Go writes it, and no newline at the end. */
const USERS = `IRONIC_HTPASSWD=a:${hashSync('b', 4).replace(/^\$2b/, '$2a')}`;

interface Container {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly ended: Promise<number | null>;
  /** Sends SIGTERM to its first process. @returns its exit status */
  stop(): Promise<number | null>;
}
const running = new Set<Container>();
function start(name: string, program: string, env: readonly string[], certificates = false): Container {
  const command = containerCommand({
    folder,
    name,
    words: [program],
    network: name === 'dnsmasq',
    scratch: ['/conf', '/data'],
    env: ['PATH=/usr/sbin:/usr/bin:/sbin:/bin', ...env],
    mounts: { ...(name === 'dnsmasq' ? {} : { '/shared': shared }), ...(certificates ? { '/certs': join(folder, 'certs') } : {}) },
  });
  const child = spawn('ip', ['netns', 'exec', host, ...command], { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (piece: string) => (text += piece));
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  const container: Container = {
    child,
    ended,
    output: () => text,
    stop: async () => {
      child.kill('SIGTERM');
      running.delete(container);
      return ended;
    },
  };
  running.add(container);
  return container;
}
async function ready(container: Container): Promise<void> {
  const isReady = new Promise<void>((done) => {
    const look = (): void => {
      if (/^bloomery: (?:ready in|\S+ is ready)/m.test(container.output())) done();
    };
    container.child.stdout!.on('data', look);
    look();
  });
  const failed = container.ended.then((code) => Promise.reject(new Error(`it ended with ${code}: ${container.output()}`)));
  await Promise.race([isReady, failed]);
}
const inHost = async (...words: readonly string[]): Promise<string> =>
  (await run('ip', ['netns', 'exec', host, ...words], { timeout: 60_000 })).stdout;
/** The HTTP status of a request, by curl. */
const status = async (...words: readonly string[]): Promise<number> =>
  Number(await inHost('curl', '-skgo', '/dev/null', '--max-time', '30', '-w', '%{http_code}', ...words));
const api = (scheme: string): string => `${scheme}://127.0.0.1:6385`;

beforeAll(async () => {
  needs({ mmdebstrap: 'mmdebstrap', crun: 'crun', ip: 'iproute2', curl: 'curl', openssl: 'openssl', busybox: 'busybox-static' });
  await unpackImage(folder);
  mkdirSync(shared);
  chownSync(shared, 997, 994);
  for (const name of ['ironic', 'vmedia']) {
    const path = join(folder, 'certs', name);
    mkdirSync(path, { recursive: true });
    const words = [
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-days',
      '3',
      '-subj',
      '/CN=ironic',
      '-addext',
      `subjectAltName=IP:${ADDRESS}`,
    ];
    execFileSync('openssl', [...words, '-keyout', join(path, 'tls.key'), '-out', join(path, 'tls.crt')], { stdio: 'ignore' });
    execFileSync('chmod', ['-R', 'a+rX', path]);
  }
  host = await addNamespace('bloomery-metal3');
  clients = await addNamespace('bloomery-metal3-c');
  for (const command of [
    `-n ${host} link add prov0 type bridge`,
    `-n ${host} link set prov0 up`,
    `-n ${host} addr add ${ADDRESS}/24 dev prov0`,
    `-n ${host} link add near0 master prov0 type veth peer name eth0 address ${CLIENT} netns ${clients}`,
    `-n ${host} link set near0 up`,
    `-n ${clients} link set eth0 up`,
  ])
    await run('ip', command.split(' '));
}, MAKING_MS);
afterAll(async () => {
  await Promise.all([...running].map((container) => container.stop()));
  for (const namespace of [host, clients]) await removeNamespace(namespace);
  rmSync(folder, { recursive: true, force: true });
});

it("the image has metal3's programs, the tools of its probes, and a name for user 997", () => {
  const programs = ['runironic', 'runhttpd', 'rundnsmasq', 'runlogwatch.sh', 'runironic-exporter', 'runironic-networking'];
  const more = ['rundatabase-upgrade', 'runonline-data-migrations', 'ironic-readiness', 'ironic-liveness', 'ironic', 'ironic-dbsync'];
  for (const name of [...programs, ...more]) expect(statSync(join(folder, 'rootfs/bin', name)).mode & 0o111).toBe(0o111);
  const found = execFileSync(
    'chroot',
    [join(folder, 'rootfs'), '/bin/sh', '-c', 'for name in curl ss grep sh; do command -v $name; done; id -nu 997'],
    {
      encoding: 'utf8',
    },
  );
  expect(found.trim().split('\n')).toHaveLength(5);
});

describe('without TLS', () => {
  const containers: Container[] = [];
  beforeAll(async () => {
    containers.push(start('ironic', '/bin/runironic', [...POD, ...IRONIC, USERS]), start('httpd', '/bin/runhttpd', POD));
    await Promise.all(containers.map(ready));
  });

  it('runironic serves the API on IPv4 and IPv6, with and without /v1, and requires the password', async () => {
    const url = api('http');
    expect(await status('-I', `${url}/v1`)).toBe(200);
    expect(await status('http://[::1]:6385/v1')).toBe(200);
    expect(await status(`${url}/nodes`)).toBe(401);
    expect(await status('-u', 'a:b', `${url}/nodes`)).toBe(200);
    expect(await status('-u', 'a:wrong', `${url}/nodes`)).toBe(401);
    expect(await status(`${url}/v1/lookup`)).not.toBe(401);
    const root = JSON.parse(await inHost('curl', '-s', `${url}/`)) as { readonly versions: readonly unknown[] };
    expect(root.versions).toHaveLength(1);
  });

  it('runhttpd serves the iPXE scripts of machines and the files of the shared volume', async () => {
    const url = 'http://127.0.0.1:6180';
    expect(await status('-I', `${url}/images/ironic-python-agent.kernel`)).toBe(404);
    writeFileSync(join(shared, 'html/images/ironic-python-agent.kernel'), 'a kernel');
    expect(await status('-I', `${url}/images/ironic-python-agent.kernel`)).toBe(200);
    for (const path of ['boot.ipxe', 'inspector.ipxe', `ipxe/${CLIENT.replaceAll(':', '-')}`])
      expect(await status(`${url}/${path}`)).toBe(200);
    expect(await inHost('curl', '-s', `${url}/ipxe/${CLIENT.replaceAll(':', '-')}`)).toContain(`${url}/inspector.ipxe`);
    expect(await inHost('curl', '-s', `${url}/inspector.ipxe`)).toContain('ipa-inspection-callback-url=');
  });

  it('both containers exit with status 0 on SIGTERM', async () => {
    expect(await Promise.all(containers.map((container) => container.stop()))).toEqual([0, 0]);
  });
});

describe('with TLS', () => {
  const containers: Container[] = [];
  beforeAll(async () => {
    containers.push(
      start('ironic', '/bin/runironic', [...POD, ...IRONIC, ...PROXY, 'SEND_SENSOR_DATA=true', 'OS_DEFAULT__HOST=c1'], true),
      start('httpd', '/bin/runhttpd', [...POD, ...PROXY, USERS], true),
    );
    await Promise.all(containers.map(ready));
    mkdirSync(join(shared, 'html/redfish'), { recursive: true });
    writeFileSync(join(shared, 'html/redfish/x.iso'), 'media');
    writeFileSync(join(shared, 'html/images/a.qcow2'), 'image');
  });

  it('runironic listens on a Unix socket, and runhttpd serves the API and requires the password', async () => {
    expect(statSync(join(shared, 'ironic.sock')).mode & 0o777).toBe(0o666);
    const url = api('https');
    expect(await status('--tlsv1.3', '-I', `${url}/v1`)).toBe(200);
    expect(await status(`${url}/nodes`)).toBe(401);
    expect(await status(`${url}/v1/lookup/../nodes`, '--path-as-is')).toBe(401);
    expect(await status('-u', 'a:b', `${url}/nodes`)).toBe(200);
    expect(await status(`${url}/lookup`)).not.toBe(401);
    expect(await status('-X', 'POST', `${url}/continue_inspection`)).not.toBe(401);
    const answer = await inHost('curl', '-sku', 'a:b', '-H', 'X-OpenStack-Ironic-API-Version: 1.81', `${url}/conductors`);
    expect(JSON.parse(answer)).toMatchObject({ conductors: [{ hostname: 'c1', alive: true }] });
  });

  it.each([
    ['http://127.0.0.1:6180/redfish/x.iso', 403],
    ['https://127.0.0.1:6183/redfish/x.iso', 200],
    ['https://127.0.0.1:6183/images/a.qcow2', 403],
    ['https://127.0.0.1:6385/images/a.qcow2', 200],
    ['http://127.0.0.1:6180/images/a.qcow2', 403],
  ])('a request for %s gets status %i', async (url, expected) => {
    expect(await status(url)).toBe(expected);
  });

  it("runironic-exporter serves the server's metrics, and bloomery_up 0 after the server has stopped", async () => {
    const exporter = start('exporter', '/bin/runironic-exporter', []);
    await ready(exporter);
    expect(await inHost('curl', '-s', 'http://127.0.0.1:9608/metrics')).toContain('bloomery_build_info');
    expect(await Promise.all(containers.map((container) => container.stop()))).toEqual([0, 0]);
    expect(await inHost('curl', '-s', 'http://127.0.0.1:9608/metrics')).toContain('bloomery_up 0');
    expect(await exporter.stop()).toBe(0);
  });
});

it('rundnsmasq serves DHCP and TFTP as user 997, with the boot file of each architecture', async () => {
  const container = start('dnsmasq', '/bin/rundnsmasq', [
    ...POD,
    'DHCP_RANGE=172.22.0.10,172.22.0.100,255.255.255.0',
    'GATEWAY_IP=172.22.0.1',
  ]);
  await ready(container);
  const script = join(folder, 'lease.sh');
  writeFileSync(script, '#!/bin/sh\n[ "$1" = bound ] && echo "$ip $router $boot_file"\n', { mode: 0o755 });
  const offers = { '0000': 'undionly.kpxe', '0007': 'snponly-x86_64.efi', '0009': 'snponly-x86_64.efi', '000b': 'snponly-arm64.efi' };
  for (const [architecture, file] of Object.entries(offers)) {
    const words = [
      '-i',
      'eth0',
      '-f',
      '-n',
      '-q',
      '-R',
      '-t',
      '5',
      '-T',
      '3',
      '-V',
      'PXEClient',
      '-x',
      `0x5d:${architecture}`,
      '-s',
      script,
    ];
    const { stdout } = await run('ip', ['netns', 'exec', clients, 'busybox', 'udhcpc', ...words], { timeout: 60_000 });
    expect(stdout).toMatch(new RegExp(`^172\\.22\\.0\\.\\d+ 172\\.22\\.0\\.1 ${file}$`, 'm'));
  }
  const loaded = await inHost(
    'curl',
    '-s',
    '--max-time',
    '30',
    '-o',
    '/dev/null',
    '-w',
    '%{size_download}',
    `tftp://${ADDRESS}/snponly-x86_64.efi`,
  );
  expect(Number(loaded)).toBeGreaterThan(100_000);
  expect(await container.stop()).toBe(0);
});

it.each([
  ['an address that no interface gets', ['PROVISIONING_IP=192.0.2.9', 'IRONIC_IP_WAIT_TIMEOUT=1'], 'no interface has the address'],
  ['MariaDB', [...POD, 'IRONIC_USE_MARIADB=true'], 'Bloomery has no MariaDB'],
  ['an unknown variable for protection', [...POD, 'IRONIC_TLS_CLIENT_VERIFY=true'], 'it is a security setting'],
])('runironic exits with status 1 with %s', async (_, env, message) => {
  const container = start('ironic', '/bin/runironic', env);
  expect(await container.ended).toBe(1);
  running.delete(container);
  expect(container.output()).toContain(message);
});
