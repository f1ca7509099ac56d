/** DMTF's protocol validator at the simulator's Redfish: what it finds wrong is a failure, unless a row says why it is so. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { needs } from './needs';
import { LOGIN, simulatedBmc, type SimulatedBmc } from './simulated-bmc';
import { programs } from './venv';

const run = promisify(execFile);
jest.setTimeout(600_000);

/** Assertion → why it fails at our service. */
const KNOWN: Readonly<Record<string, string>> = {};

let bmc: SimulatedBmc;
let folder: string;
beforeAll(async () => {
  needs({ python3: 'python3-venv' });
  folder = mkdtempSync(join(tmpdir(), 'redfish-validators-'));
  bmc = await simulatedBmc();
});
afterAll(async () => {
  await bmc?.close();
  rmSync(folder, { recursive: true });
});

it('conforms to the protocol', async () => {
  const bin = await programs('redfish-protocol-validator', ['redfish-protocol-validator==1.3.2']);
  const words = ['--user', LOGIN.username, '--password', LOGIN.password, '--rhost', bmc.url];
  const certificate = join(folder, 'cert.pem');
  writeFileSync(certificate, bmc.certificate);
  // It ends with 1 for any failure: the report tells which.
  await run(join(bin, 'rf_protocol_validator'), [...words, '--ca-bundle', certificate, '--report-type', 'tsv', '--report-dir', folder], {
    env: { ...process.env, REQUESTS_CA_BUNDLE: certificate, SSL_CERT_FILE: certificate },
    timeout: 500_000,
    maxBuffer: 2 ** 26,
  }).catch((error: unknown) => {
    if (typeof (error as { readonly code?: unknown }).code !== 'number') throw error;
  });
  const report = readdirSync(folder).find((name) => name.endsWith('.tsv'));
  const rows = readFileSync(join(folder, report!), 'utf8')
    .split('\n')
    .map((line) => line.split('\t'));
  const results = rows.filter(([, , , , result]) => result === 'PASS' || result === 'FAIL');
  const failed = results.filter(([, , , , result]) => result === 'FAIL');
  expect(failed.filter(([assertion]) => !Object.hasOwn(KNOWN, assertion!)).map((row) => row.slice(0, 6).join(' '))).toEqual([]);
  expect(results.filter(([, , , , result]) => result === 'PASS').length).toBeGreaterThan(300);
});
