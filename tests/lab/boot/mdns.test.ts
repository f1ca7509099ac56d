/**
 * Multicast DNS between two network namespaces: python-zeroconf and ironic-python-agent's own lookup find our server until it stops, and our
 * lookup finds our server and the real Ironic. Root.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { buildSync } from 'esbuild';
import { until } from '../../../demo/lab/machines';
import { addNamespace, removeNamespace } from '../../../demo/lab/namespace';
import { needs } from '../support/needs';
import { startRealIronic } from '../inspection/real-ironic';
import { startServerProcess } from '../../../demo/lab/server';
import { programs, root } from '../support/venv';

const run = promisify(execFile);
interface Place {
  /** The name of this run's namespace, which is made before the tests. */
  namespace: string;
  readonly link: string;
  readonly address: string;
}
const SERVER: Place = { namespace: 'bdiscoves', link: 'bdiscoves0', address: '10.88.0.1' };
const CLIENT: Place = { namespace: 'bdiscovec', link: 'bdiscovec0', address: '10.88.0.2' };
const PORT = 22510;
const program = join(root, '.cache/lab/mdns-program.js');
let folder: string;
let agent: string;
const running: ChildProcess[] = [];

const inside = (place: Place, ...words: readonly string[]): Promise<string> =>
  run('ip', ['netns', 'exec', place.namespace, ...words], { timeout: 90_000 }).then(({ stdout }) => stdout.trim());
const lookup = (service: string): Promise<string> => inside(CLIENT, process.execPath, program, 'lookup', service);
/** A program that keeps running in a namespace, and its output. */
function start(place: Place, ...words: readonly string[]): { readonly printed: string[]; stop(): Promise<void> } {
  const child = spawn('ip', ['netns', 'exec', place.namespace, ...words], { stdio: ['ignore', 'pipe', 'inherit'] });
  running.push(child);
  const printed: string[] = [];
  // By lines: a chunk of a pipe may end in the middle of one.
  createInterface({ input: child.stdout }).on('line', (line) => void printed.push(line));
  return {
    printed,
    stop: async () => {
      const ended = once(child, 'exit');
      child.kill();
      await ended;
    },
  };
}
const announce = async (place: Place, port: number): Promise<ReturnType<typeof start>> => {
  const url = `http://${place.address}:${port}/`;
  const one = start(place, process.execPath, program, 'announce', 'baremetal', url, place.link);
  await until(
    240,
    () => `the announcement to be ready: ${one.printed.join()}`,
    () => one.printed.includes('ready'),
  );
  return one;
};

/** Looks a service up with ironic-python-agent's own mDNS module. */
const FIND = `
import sys
from ironic_python_agent import mdns
from oslo_config import cfg
cfg.CONF([], project='x', default_config_files=[])
try:
    print(*mdns.get_endpoint(sys.argv[1]))
except Exception as error:
    print('nothing:', type(error).__name__)
`;
const BROWSE = `
import os, sys, time, zeroconf
def told(zeroconf, service_type, name, state_change):
    os.write(1, f'{state_change.name} {name}\\n'.encode())
with zeroconf.Zeroconf(interfaces=[sys.argv[1]]) as zc:
    zeroconf.ServiceBrowser(zc, '_openstack._tcp.local.', handlers=[told])
    time.sleep(600)
`;

beforeAll(async () => {
  needs({ ip: 'iproute2', python3: 'python3-venv' });
  folder = mkdtempSync(join(tmpdir(), 'bdiscove-'));
  for (const place of [SERVER, CLIENT]) place.namespace = await addNamespace(place.namespace);
  await run('ip', ['link', 'add', SERVER.link, 'netns', SERVER.namespace, 'type', 'veth', 'peer', CLIENT.link, 'netns', CLIENT.namespace]);
  for (const { namespace, link, address } of [SERVER, CLIENT])
    for (const words of [`addr add ${address}/24 dev ${link}`, `link set ${link} up`])
      await run('ip', ['-n', namespace, ...words.split(' ')]);
  buildSync({
    entryPoints: [join(__dirname, 'mdns-program.ts')],
    outfile: program,
    bundle: true,
    platform: 'node',
    packages: 'external',
    logLevel: 'error',
  });
  agent = join(await programs('ironic-python-agent', ['ironic-python-agent==13.0.0']), 'python');
}, 900_000);
afterAll(async () => {
  for (const child of running) if (child.exitCode === null) child.kill('SIGKILL');
  for (const { namespace } of [SERVER, CLIENT]) await removeNamespace(namespace).catch(() => {});
  rmSync(folder, { recursive: true, force: true });
});

it('ironic-python-agent and our lookup find our server by multicast DNS until the server stops', async () => {
  const browser = start(CLIENT, agent, '-c', BROWSE, CLIENT.address);
  const server = await startServerProcess(
    join(folder, 'ours'),
    {
      DEFAULT: {
        my_ip: SERVER.address,
        auth_strategy: 'noauth',
        enabled_hardware_types: 'manual-management',
        debug: 'True',
        listen_port: PORT + 1,
        enable_mdns: 'True',
      },
      api: { host_ip: '0.0.0.0', port: PORT },
      conductor: { enable_mdns: 'True' },
      mdns: { interfaces: SERVER.link },
    },
    SERVER.namespace,
    ['--roles', 'api,conductor,inspector'],
  );
  try {
    await until(
      240,
      () => `zeroconf's browser to report the service: ${browser.printed.join()}`,
      () => browser.printed.includes('Added baremetal._openstack._tcp.local.'),
    );
    expect(await inside(CLIENT, agent, '-c', FIND, 'baremetal')).toBe(`http://${SERVER.address}:${PORT} {'ipa_debug': 'True'}`);
    expect(await lookup('baremetal')).toBe(`http://${SERVER.address}:${PORT}`);
    expect(await inside(CLIENT, agent, '-c', FIND, 'baremetal-introspection')).toMatch(`http://${SERVER.address}:${PORT + 1} `);
    expect(await lookup('baremetal-introspection')).toBe(`http://${SERVER.address}:${PORT + 1}`);
  } finally {
    await server.stop();
  }
  await until(
    240,
    () => `zeroconf's browser to report the removal: ${browser.printed.join()}`,
    () => browser.printed.includes('Removed baremetal._openstack._tcp.local.'),
  );
  expect(await lookup('baremetal')).toBe('');
  await browser.stop();
});

it('our lookup finds the real Ironic by multicast DNS', async () => {
  const settings = { conductor: { enable_mdns: 'True' }, mdns: { interfaces: SERVER.address } };
  const ironic = await startRealIronic(join(folder, 'ironic'), SERVER.address, PORT, settings, SERVER.namespace);
  try {
    let url = '';
    await until(
      240,
      () => `the announcement of the real Ironic: ${url}`,
      async () => (url = await lookup('baremetal')) !== '',
    );
    expect(url).toBe(ironic.url);
  } finally {
    await ironic.stop();
  }
}, 1_800_000);

it('the first server keeps the service name against a server with another URL, and shares it with one that has the same URL', async () => {
  const first = await announce(SERVER, 1000);
  await until(
    240,
    () => 'the announcement of the first server',
    async () => (await lookup('baremetal')) === `http://${SERVER.address}:1000`,
  );
  const second = await announce(CLIENT, 2000);
  await until(
    240,
    () => `the second server to give up the name: ${second.printed.join()}`,
    () => second.printed.some((line) => line.includes('another server has this name')),
  );
  expect(await lookup('baremetal')).toBe(`http://${SERVER.address}:1000`);
  expect(first.printed).toEqual(['ready']);
  const same = start(CLIENT, process.execPath, program, 'announce', 'baremetal', `http://${SERVER.address}:1000/`, CLIENT.link);
  await first.stop();
  await until(
    240,
    () => `the server with the same URL to answer: ${same.printed.join()}`,
    async () => (await lookup('baremetal')) === `http://${SERVER.address}:1000`,
  );
  expect(same.printed).toEqual(['ready']);
  await same.stop();
  await second.stop();
});
