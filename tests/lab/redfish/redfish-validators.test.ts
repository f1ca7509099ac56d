/**
 * DMTF's validators at the simulator's Redfish service: of the protocol, and of each resource by its schema. Each finding is a failure,
 * unless a row gives its reason.
 */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fetch, Agent } from 'undici';
import { needs } from '../support/needs';
import { bodiesOf } from '../../../drivers/redfish/events';
import { redfishSchemas } from './redfish-schemas';
import { LOGIN, simulatedBmc, type SimulatedBmc } from './simulated-bmc';
import { programs } from '../support/venv';

const run = promisify(execFile);
jest.setTimeout(600_000);

/** Assertion → why it fails at our service. */
const KNOWN: Readonly<Record<string, string>> = {};

let bmc: SimulatedBmc;
let folder: string;
let certificate: string;
beforeAll(async () => {
  needs({ python3: 'python3-venv', cargo: 'cargo' });
  folder = mkdtempSync(join(tmpdir(), 'redfish-validators-'));
  bmc = await simulatedBmc();
  certificate = join(folder, 'cert.pem');
  writeFileSync(certificate, bmc.certificate);
});
afterAll(async () => {
  await bmc?.close();
  rmSync(folder, { recursive: true });
});

/** Runs a validator. It exits with 1 for any failure; its report has the details. */
const validate = (program: string, words: readonly string[]): Promise<unknown> =>
  run(program, words, {
    env: { ...process.env, REQUESTS_CA_BUNDLE: certificate, SSL_CERT_FILE: certificate },
    timeout: 500_000,
    maxBuffer: 2 ** 26,
  }).catch((error: unknown) => {
    if (typeof (error as { readonly code?: unknown }).code !== 'number') throw error;
  });

it("the simulator's Redfish service passes DMTF's validator of the protocol", async () => {
  const bin = await programs('redfish-protocol-validator', ['redfish-protocol-validator==1.3.2']);
  const words = ['--user', LOGIN.username, '--password', LOGIN.password, '--rhost', bmc.url];
  await validate(join(bin, 'rf_protocol_validator'), [
    ...words,
    '--ca-bundle',
    certificate,
    '--report-type',
    'tsv',
    '--report-dir',
    folder,
  ]);
  const report = readdirSync(folder).find((name) => name.endsWith('.tsv'));
  const rows = readFileSync(join(folder, report!), 'utf8')
    .split('\n')
    .map((line) => line.split('\t'));
  const results = rows.filter(([, , , , result]) => result === 'PASS' || result === 'FAIL');
  const failed = results.filter(([, , , , result]) => result === 'FAIL');
  expect(failed.filter(([assertion]) => !Object.hasOwn(KNOWN, assertion!)).map((row) => row.slice(0, 6).join(' '))).toEqual([]);
  expect(results.filter(([, , , , result]) => result === 'PASS').length).toBeGreaterThan(300);
});

/** Warning of the second validator → its reason. */
const WARNED: Readonly<Record<string, string>> = {
  'Deprecated Property': 'clients in use read these: sushy and Ironic the health of processors, Thermal and Power, the colour of a lamp',
  'Deprecated URI': 'of the same resources, and of the virtual media of a BMC, where Ironic looks when a system has none',
  'Empty String': 'the default of an asset tag is empty',
};
const DRIVES = ['sda', 'sdb'].map((drive) => ({ '@odata.id': `/redfish/v1/Systems/sim-0/Storage/RAID1/Drives/${drive}` }));
/** Adds to the service what it lacks at first: a volume, pending settings, media, a subscriber, a task, a session. */
const CHANGES: readonly (readonly [method: string, path: string, body: object])[] = [
  ['POST', '/Systems/sim-0/Storage/RAID1/Volumes', { RAIDType: 'RAID1', Name: 'data', CapacityBytes: 2 ** 30, Links: { Drives: DRIVES } }],
  ['PATCH', '/Systems/sim-0/Bios/Settings', { Attributes: { TurboMode: 'Disabled' } }],
  ['POST', '/Systems/sim-0/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia', { Image: 'FILES/boot.iso' }],
  ['POST', '/EventService/Subscriptions', { Destination: 'https://127.0.0.1:1/events', Protocol: 'Redfish', Context: 'mine' }],
  ['POST', '/UpdateService/Actions/UpdateService.SimpleUpdate', { ImageURI: 'FILES/firmware' }],
  ['POST', '/SessionService/Sessions', { UserName: LOGIN.username, Password: LOGIN.password }],
  ['POST', '/Systems/sim-0/Actions/ComputerSystem.Reset', { ResetType: 'On' }],
];

it("each resource of the simulator's Redfish service passes DMTF's validator of the schemas", async () => {
  const [bin, schemas] = await Promise.all([programs('redfish-service-validator', ['redfish-service-validator==3.1.8']), redfishSchemas()]);
  const dispatcher = new Agent({ connect: { ca: bmc.certificate } });
  const headers = {
    authorization: `Basic ${Buffer.from(`${LOGIN.username}:${LOGIN.password}`).toString('base64')}`,
    'content-type': 'application/json',
  };
  const files = createServer((_, response) => response.end('firmware bios 9.9\n')).listen(0, '127.0.0.1');
  await once(files, 'listening');
  const url = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
  const refused: string[] = [];
  for (const [method, path, body] of CHANGES) {
    const answer = await fetch(`${bmc.url}/redfish/v1${path}`, {
      method,
      headers,
      body: JSON.stringify(body).replaceAll('FILES', url),
      dispatcher,
    });
    if (!answer.ok) refused.push(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    else await answer.text();
  }
  await dispatcher.close();
  files.closeAllConnections();
  await new Promise((closed) => files.close(closed));
  expect(refused).toEqual([]);

  const words = ['--user', LOGIN.username, '--password', LOGIN.password, '--rhost', bmc.url, '--authtype', 'Basic'];
  const logs = join(folder, 'logs');
  await validate(join(bin, 'rf_service_validator'), [...words, '--skipschema', '--schema_directory', schemas, '--logdir', logs]);
  const file = readdirSync(logs, { recursive: true, encoding: 'utf8' }).find((name) => name.endsWith('.log'));
  let at = '';
  let tried = 0;
  let passed = 0;
  const findings: string[] = [];
  for (const line of readFileSync(join(logs, file!), 'utf8').split('\n')) {
    const [, path] = /INFO - Validating (\S+?)\.\.\.$/.exec(line) ?? [];
    if (path !== undefined) [at, tried] = [path, tried + 1];
    passed += Number(/ Pass: (\d+),/.exec(line)?.[1] ?? 0);
    const [, what, why = ''] = /(?:ERROR|WARNING|CRITICAL) - (FAIL|WARN|.*)(?: - (.*))?$/.exec(line) ?? [];
    if (what === undefined) continue;
    if (what.startsWith('WARN') && Object.keys(WARNED).some((known) => line.includes(`${known} Warning`))) continue;
    findings.push(`${at}: ${what} ${why}`);
  }
  expect(findings).toEqual([]);
  expect(tried).toBeGreaterThan(150);
  expect(passed).toBeGreaterThan(2500);
});

it("the requests for subscriptions to events have what DMTF's schema requires, and nothing that it does not know", async () => {
  const folderOfSchemas = await redfishSchemas();
  const file = readdirSync(folderOfSchemas, { recursive: true, encoding: 'utf8' }).find((name) => name.endsWith('EventDestination_v1.xml'));
  const schema = readFileSync(join(folderOfSchemas, file!), 'utf8');
  const properties = [...schema.matchAll(/<Property Name="(\w+)"[^>]*?(?:\/>|>([\s\S]*?)<\/Property>)/g)];
  const required = properties.filter(([, , about = '']) => about.includes('Redfish.RequiredOnCreate')).map(([, name]) => name!);
  // Of other properties of this type, such as SNMP's, nothing is created.
  const known = new Set(properties.map(([, name]) => name));
  const members = new Set([...schema.matchAll(/<Member Name="(\w+)"/g)].map(([, name]) => name));
  const services = [{}, { EventTypesForSubscription: ['Alert', 'StatusChange', 'MetricReport'] }];
  const bodies = services.flatMap((service) => bodiesOf(service, 'https://192.0.2.1/x', 'bloomery n 0')) as readonly Readonly<
    Record<string, unknown>
  >[];
  expect(bodies).toHaveLength(6);
  for (const body of bodies) {
    expect(Object.keys(body).filter((name) => !known.has(name))).toEqual([]);
    for (const name of ['Destination', 'Protocol']) expect([name, required.includes(name), name in body]).toEqual([name, true, true]);
    for (const name of ['Protocol', 'SubscriptionType', 'EventFormatType'])
      if (name in body) expect([name, members.has(body[name] as string)]).toEqual([name, true]);
  }
});
