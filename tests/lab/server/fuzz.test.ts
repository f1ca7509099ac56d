/**
 * schemathesis, a third-party program, tests every operation of /v1/openapi.json: no response is a 5xx, and all are as the document
 * declares.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { freePort } from '../../support/free-port';
import { programs, root } from '../support/venv';
import { NEWEST_VERSION } from '../../support/newest';

/** `npm run fuzz -- --minutes 60` for a longer run. */
const SECONDS = Number(process.env['FUZZ_SECONDS'] ?? 90);
const folder = mkdtempSync(join(tmpdir(), 'bloomery-fuzz-'));
let server: RunningServer | undefined;
let url: string;
let schemathesis: string;

beforeAll(async () => {
  schemathesis = join(await programs('schemathesis', ['schemathesis==4.32.5']), 'schemathesis');
  const [port, http] = [await freePort(), await freePort()];
  url = `http://127.0.0.1:${port}`;
  const kinds = ['bios', 'console', 'firmware', 'raid', 'rescue', 'vendor'].map((kind) => [
    `enabled_${kind}_interfaces`,
    `no-${kind},fake`,
  ]);
  const fakes = ['boot', 'deploy', 'management', 'power'].map((kind) => [`enabled_${kind}_interfaces`, 'fake']);
  server = await startServerProcess(folder, {
    DEFAULT: {
      enabled_hardware_types: 'fake-hardware',
      enabled_inspect_interfaces: 'no-inspect,fake,agent',
      enabled_network_interfaces: 'noop',
      enabled_storage_interfaces: 'noop,fake',
      ...(Object.fromEntries([...kinds, ...fakes]) as Record<string, string>),
    },
    api: { host_ip: '127.0.0.1', port },
    boot: { http_host: '127.0.0.1', http_port: http, tftp: 'false' },
  });
}, 600_000);
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

it.each([
  [NEWEST_VERSION, 2 / 3],
  ['1.50', 1 / 3],
])(
  'schemathesis finds no 5xx and no undeclared response at version %s',
  async (version, share) => {
    const words = [
      '--config-file',
      join(root, 'tests/lab/server/schemathesis.toml'),
      'run',
      `${url}/v1/openapi.json?version=${version}`,
      '-H',
      `X-OpenStack-Ironic-API-Version: ${version}`,
      '--max-time',
      String(Math.ceil(SECONDS * share)),
      '--no-color',
    ];
    const { code, output } = await new Promise<{ code: number | string; output: string }>((done) =>
      execFile(schemathesis, words, { cwd: folder, timeout: (SECONDS + 120) * 1000, maxBuffer: 2 ** 26 }, (error, stdout, stderr) =>
        done({ code: error === null ? 0 : (error.code ?? 'killed'), output: stdout + stderr }),
      ),
    );
    if (code !== 0) throw new Error(output.slice(-20_000));
    console.info(output.slice(-600));
  },
  (SECONDS + 150) * 1000,
);
