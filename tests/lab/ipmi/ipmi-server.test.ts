/**
 * IPMI through the whole server, with either client: the errors for a BMC that cannot be used and their time, and that no secret is
 * visible.
 */
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PRIVILEGE } from '../../../wire/ipmi/constants';
import type { JsonObject } from '../../../model/records';
import { freePort } from '../../support/free-port';
import { testBmc, type TestBmc } from '../../wire/ipmi/bmc';
import { needs } from '../support/needs';
import { startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { timeoutSignal } from '../../../wire/timeout-signal';

const PASSWORD = 'hunter2-and-more';
const KG = '5ec2e7f00d';
/** [ipmi]command_retry_timeout, seconds. */
const TIMEOUT = 10;
const OFF = 0x60;
const ON = 0x61;

describe.each(['native', 'ipmitool'])('the server with [ipmi]client = %s', (client) => {
  let folder: string;
  let server: RunningServer;
  let bmc: TestBmc;
  let url: string;
  let on = true;
  let [watching, commandLines] = [true, ''];
  let watched: Promise<void>;
  beforeAll(async () => {
    needs({ ipmitool: 'ipmitool' });
    folder = mkdtempSync(join(tmpdir(), 'bloomery-ipmi-server-'));
    bmc = await testBmc({
      users: [
        { name: 'admin', password: PASSWORD, privilege: PRIVILEGE.ADMINISTRATOR },
        { name: 'guest', password: PASSWORD, privilege: PRIVILEGE.USER },
      ],
      cipherSuites: [3, 17],
      reply: () => ({ completionCode: 0, data: Buffer.from([on ? ON : OFF, 0, 0]) }),
    });
    const [port, terminal] = [await freePort(), await freePort()];
    url = `http://127.0.0.1:${port}`;
    server = await startServerProcess(folder, {
      DEFAULT: { enabled_hardware_types: 'ipmi', enabled_console_interfaces: 'ipmitool-socat,no-console', debug: 'true' },
      api: { host_ip: '127.0.0.1', port },
      boot: { http_port: 0, tftp: 'false' },
      ipmi: { client, command_retry_timeout: TIMEOUT, min_command_interval: 1, debug: 'true' },
      conductor: { sync_power_state_interval: 2, power_state_sync_max_retries: 1, power_failure_recovery_interval: 2 },
      console: { port_range: `${terminal}:${terminal + 1}` },
    });
    // Watches the command lines of all processes while the tests run.
    watched = (async () => {
      while (watching) {
        for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
          try {
            const line = readFileSync(`/proc/${pid}/cmdline`, 'latin1');
            if (/ipmitool|KGKEY/.test(line)) commandLines += `${line}\n`;
          } catch {
            // The process has ended.
          }
        await new Promise((done) => setTimeout(done, 5));
      }
    })();
  });
  afterAll(async () => {
    watching = false;
    await watched;
    await server?.stop();
    await bmc?.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const call = async (method: string, path: string, body?: unknown): Promise<JsonObject> => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { 'X-OpenStack-Ironic-API-Version': '1.95', 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: timeoutSignal(60_000),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text === '' ? {} : (JSON.parse(text) as JsonObject);
  };
  const enrol = async (info: JsonObject): Promise<string> => {
    const known = { ipmi_address: '127.0.0.1', ipmi_port: bmc.port, ipmi_username: 'admin', ipmi_password: PASSWORD };
    const given = Object.entries({ ...known, ...info }).filter(([, value]) => value !== null);
    const node = await call('POST', '/v1/nodes', {
      driver: 'ipmi',
      driver_info: Object.fromEntries(given),
      console_interface: 'ipmitool-socat',
    });
    return String(node['uuid']);
  };
  const until = async (uuid: string, holds: (node: JsonObject) => boolean, seconds: number): Promise<JsonObject> => {
    const end = Date.now() + seconds * 1000;
    for (;;) {
      const node = await call('GET', `/v1/nodes/${uuid}`);
      if (holds(node)) return node;
      if (Date.now() > end) throw new Error(`not within ${seconds} s: ${JSON.stringify(node)}`);
      await new Promise((done) => setTimeout(done, 100));
    }
  };
  const manage = async (uuid: string): Promise<JsonObject> => {
    await call('PUT', `/v1/nodes/${uuid}/states/provision`, { target: 'manage' });
    return until(uuid, ({ target_provision_state: target }) => target === null, 240);
  };

  it.each<[string, JsonObject, RegExp]>([
    ['a wrong password', { ipmi_password: 'hunter3' }, /Reason: wrong password/],
    ['a wrong user name', { ipmi_username: 'nobody' }, /Reason: the BMC refused a session: wrong user name/],
    [
      'a cipher suite that the BMC does not offer',
      { ipmi_cipher_suite: 8 },
      /Reason: the BMC refused a session: the BMC does not offer the cipher suite/,
    ],
    ['a privilege level that the user does not have', { ipmi_username: 'guest' }, /the user may not have the privilege level asked for/],
    ['a wrong K_g key', { ipmi_hex_kg_key: KG }, /Reason: wrong K_g key/],
    ['no BMC address', { ipmi_address: null }, /Missing the following IPMI credentials in node's driver_info: \['ipmi_address'\]/],
    ['an invalid port', { ipmi_port: 'abc' }, /ipmi_port "abc" is not a valid port/],
    ['a password that is not a text', { ipmi_password: ['hunter3'] }, /ipmi_password is not a text/],
    ['a host name without an address', { ipmi_address: 'bmc.invalid' }, /cannot resolve the address of the BMC bmc\.invalid/],
    ['a BMC that does not respond', { ipmi_port: 9 }, /the BMC at 127\.0\.0\.1 port 9 does not answer/],
  ])('fails to verify a node with %s, and names the reason in last_error', async (_, info, expected) => {
    const uuid = await enrol(info);
    const node = await manage(uuid);
    expect(node).toMatchObject({ provision_state: 'enroll', power_state: null, last_error: expect.stringMatching(expected) as unknown });
    expect(JSON.stringify(node)).not.toMatch(/hunter|5ec2e7/);
    if (/driver_info|not a valid port|not a text/.test(expected.source)) {
      const { power } = (await call('GET', `/v1/nodes/${uuid}/validate`)) as { power: JsonObject };
      expect(power).toMatchObject({ result: false, reason: expect.stringMatching(expected) as unknown });
    }
    await call('DELETE', `/v1/nodes/${uuid}`);
  });

  it('does not take a BMC that stops responding for a machine that is off, but sets maintenance', async () => {
    on = true;
    const uuid = await enrol({});
    expect(await manage(uuid)).toMatchObject({ provision_state: 'manageable', power_state: 'power on', last_error: null });
    bmc.mute(true);
    const states = new Set<unknown>();
    const node = await until(
      uuid,
      ({ power_state: state, maintenance }) => {
        states.add(state);
        return maintenance === true;
      },
      90,
    );
    bmc.mute(false);
    expect(states.has('power off')).toBe(false);
    expect(node).toMatchObject({ fault: 'power failure', maintenance_reason: expect.stringContaining('does not answer') as unknown });
    expect(JSON.stringify(node)).not.toMatch(/hunter/);
    await until(uuid, ({ maintenance }) => maintenance === false, 60);
  });

  it('connects to the BMC when a client connects to the console, which shows an error of the BMC', async () => {
    const uuid = await enrol({});
    await manage(uuid);
    await call('PUT', `/v1/nodes/${uuid}/states/console`, { enabled: true });
    await until(uuid, ({ console_enabled: enabled }) => enabled === true, 20);
    const { console_info: info } = (await call('GET', `/v1/nodes/${uuid}/states/console`)) as { console_info: JsonObject };
    const port = Number(/:(\d+)$/.exec(String(info['url']))?.[1]);
    const socket = connect(port, new URL(String(info['url'])).hostname);
    const [said] = (await once(socket, 'data')) as [Buffer];
    // This BMC has no serial-over-LAN: the console says so.
    expect(said.toString()).toMatch(/serial-over-LAN|Activate Payload/);
    socket.destroy();
    await call('PUT', `/v1/nodes/${uuid}/states/console`, { enabled: false });
    await until(uuid, ({ console_enabled: enabled }) => enabled === false, 20);
  });

  it('shows no password and no key in its log and in the process list', () => {
    const log = readFileSync(server.log, 'utf8');
    expect(log.length).toBeGreaterThan(1000);
    expect(log).not.toMatch(/hunter|5ec2e7/i);
    if (client === 'ipmitool') expect(commandLines).toContain('ipmitool');
    expect(commandLines).not.toMatch(/hunter|5ec2e7/i);
  });
});
