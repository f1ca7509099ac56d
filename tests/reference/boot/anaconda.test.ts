/** Deployment by Anaconda: the real Ironic and our server give the same installer the same files, and take its heartbeats alike. */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DEFAULT_TEMPLATE } from '../../../drivers/anaconda/default-template';
import { until } from '../../../demo/lab/machines';
import { programs } from '../../lab/support/venv';
import { freePort } from '../../support/free-port';
import { startFakeGlance, type FakeGlance } from '../../support/fakes/fake-glance';
import { startFakeRegistry, type FakeRegistry } from '../../support/fakes/oci-registry';
import { startBoth, type Both } from '../both';

jest.setTimeout(900_000);
const folder = mkdtempSync(join(tmpdir(), 'bloomery-anaconda-'));
let both: Both;
let web: Server;
let files: string;
let registry: FakeRegistry;
let glance: FakeGlance;
let tftpPort: number;

const pages: Record<string, string> = {
  '/repo/': 'text/html',
  '/os.tar': 'application/x-tar',
  '/kernel': 'x/k',
  '/ramdisk': 'x/r',
  '/stage2': 'x/s',
};
beforeAll(async () => {
  web = createServer((request, response) => {
    // The real Ironic asks its own web server for an image that it has fetched from Glance.
    const type = request.url?.startsWith('/reference/agent_images/') ? 'x/i' : pages[request.url ?? ''];
    if (type === undefined) response.writeHead(404).end();
    else response.writeHead(200, { 'content-type': type, 'content-length': 4 }).end(request.method === 'HEAD' ? '' : 'file');
  });
  await new Promise<void>((listening) => web.listen(0, '127.0.0.1', listening));
  files = `http://127.0.0.1:${(web.address() as AddressInfo).port}`;
  tftpPort = await freePort();
  glance = await startFakeGlance();
  registry = await startFakeRegistry(join(folder, 'registry.crt'));
  registry.container('bootable');
  registry.artifact('disk', Buffer.alloc(4096));
  const template = join(await programs('ironic', ['ironic==39.0.0']), '..');
  const { stdout } = await promisify(execFile)(join(template, 'bin/python'), [
    '-c',
    "import ironic, os; print(os.path.join(os.path.dirname(ironic.__file__), 'drivers/modules/ks.cfg.template'), end='')",
  ]);
  writeFileSync(join(folder, 'ks.cfg.template'), readFileSync(stdout, 'utf8'));
  both = await startBoth(
    {
      DEFAULT: {
        enabled_deploy_interfaces: 'autodetect,anaconda,direct,ramdisk,bootc',
        autodetect_deploy_interfaces: 'ramdisk,bootc,direct',
        enabled_boot_interfaces: 'ipxe,pxe,fake',
        enabled_management_interfaces: 'fake,noop',
      },
      agent: { require_tls: 'false' },
      anaconda: { default_ks_template: join(folder, 'ks.cfg.template'), insecure_heartbeat: 'true' },
      conductor: {
        deploy_kernel: `${files}/kernel`,
        deploy_ramdisk: `${files}/ramdisk`,
        automated_clean: 'false',
        file_url_allowed_paths: folder,
      },
      glance: { auth_type: 'none', endpoint_override: glance.url },
      inspector: { require_managed_boot: 'false' },
      oci: { verify_ca: registry.ca },
    },
    {
      reference: { deploy: { http_url: `${files}/reference` } },
      ours: { boot: { http_port: '0', http_host: '127.0.0.1', tftp_port: String(tftpPort), tftp_host: '127.0.0.1' } },
    },
  );
}, 1_800_000);
afterAll(async () => {
  await both?.stop();
  await registry?.close();
  await glance?.close();
  web.close();
  web.closeAllConnections();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

type Json = Readonly<Record<string, unknown>>;
async function call(base: string, method: string, path: string, body?: unknown, version = '1.99'): Promise<{ status: number; body: Json }> {
  const answer = await fetch(`${base}${path}`, {
    method,
    headers: { 'content-type': 'application/json', accept: 'application/json', 'x-openstack-ironic-api-version': version },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, body: text === '' ? {} : (JSON.parse(text) as Json) };
}
const sides = () => [both.reference, both.ours] as const;
const faultOf = (body: Json): unknown =>
  typeof body['error_message'] === 'string' ? (JSON.parse(body['error_message']) as Json)['faultstring'] : body;

let made = 0;
/** A node of this UUID on both servers. */
async function enrol(more: Json): Promise<string> {
  const uuid = `bbbbbbbb-0000-4000-8000-${String(++made).padStart(12, '0')}`;
  for (const base of sides()) {
    const node = { uuid, driver: 'fake-hardware', boot_interface: 'ipxe', network_interface: 'noop', ...more };
    const created = await call(base, 'POST', '/v1/nodes', node);
    if (created.status !== 201) throw new Error(JSON.stringify(created.body));
    await call(base, 'POST', '/v1/ports', { node_uuid: uuid, address: `52:54:00:aa:00:${String(made).padStart(2, '0')}` });
    for (const target of ['manage', 'provide']) {
      await call(base, 'PUT', `/v1/nodes/${uuid}/states/provision`, { target });
      await reach(base, uuid, target === 'manage' ? 'manageable' : 'available');
    }
  }
  return uuid;
}
async function reach(base: string, uuid: string, ...states: readonly string[]): Promise<Json> {
  let node: Json = {};
  await until(
    120,
    () => `${base} ${uuid}: ${states.join(' or ')}, is ${JSON.stringify([node['provision_state'], node['last_error']])}`,
    async () => {
      node = (await call(base, 'GET', `/v1/nodes/${uuid}`)).body;
      const state = node['provision_state'] as string;
      if (node['reservation'] === null && state.endsWith(' failed') && !states.includes(state))
        throw new Error(`${base}: ${state}: ${String(node['last_error'])}`);
      return states.includes(state) && node['reservation'] === null;
    },
  );
  return node;
}
const anaconda = (instance: Json): Json => ({ deploy_interface: 'anaconda', instance_info: instance });
/** Ironic takes the image for one of a partition, which needs a size. */
const installs = (more: Json = {}): Json => ({
  image_source: `${files}/os.tar`,
  kernel: `${files}/kernel`,
  ramdisk: `${files}/ramdisk`,
  stage2: `${files}/stage2`,
  root_gb: 10,
  ...more,
});

const KS = 'http://FOLDER/ks.cfg';
/** The kickstart file and the kernel's arguments of a side, without what must differ. */
interface Given {
  readonly kickstart: string;
  readonly args: string;
  readonly token: string;
}
function readGiven(kickstart: string, script: string, base: string, at: string): Given {
  const token = /"agent_token": "([^"]+)"/.exec(kickstart)![1]!;
  const [, , args] = /^kernel (\S+) (.*inst\.ks=.*?)(?: \|\| .*)?$/m.exec(script)!;
  const same = (text: string): string => text.replaceAll(token, 'TOKEN').replaceAll(base, 'API').replaceAll(at, 'http://FOLDER');
  // Ironic invents an id for each request.
  return { kickstart: same(kickstart), args: same(args!).replace(/ ipa-global-request-id=\S+/, ''), token };
}
async function given(uuid: string): Promise<readonly [Given, Given]> {
  const there = (name: string): string => readFileSync(join(both.httpRoot, uuid, name), 'utf8');
  const mac = `52-54-00-aa-00-${String(made).padStart(2, '0')}`;
  const script = await (await fetch(`${both.bootUrl!}/ipxe/${mac}`)).text();
  const ks = /inst\.ks=(\S+)/.exec(script)![1]!;
  const kickstart = await (await fetch(ks)).text();
  return [
    readGiven(there('ks.cfg'), there('config'), both.reference, `${files}/reference/${uuid}`),
    readGiven(kickstart, script, both.ours, ks.replace(/\/ks\.cfg$/, '')),
  ];
}
async function deploy(uuid: string, more: Json = {}): Promise<void> {
  for (const base of sides()) {
    const answer = await call(base, 'PUT', `/v1/nodes/${uuid}/states/provision`, { target: 'active', ...more });
    if (answer.status !== 202) throw new Error(`${base}: ${JSON.stringify(answer.body)}`);
    await reach(base, uuid, 'wait call-back');
  }
}
const told = (node: Json): Json => {
  const { agent_status: status, agent_status_message: message, agent_url: url } = node['driver_internal_info'] as Json;
  return {
    ...Object.fromEntries(
      ['provision_state', 'target_provision_state', 'power_state', 'last_error', 'maintenance', 'fault', 'deploy_interface'].map((name) => [
        name,
        node[name],
      ]),
    ),
    status,
    message,
    url,
  };
};

it('an image: the same kickstart file and command line, and each heartbeat has the same effect', async () => {
  // The fake management interface sets no boot from disk.
  const manual = { driver: 'manual-management', management_interface: 'noop', power_interface: 'fake' };
  const uuid = await enrol({ ...anaconda(installs()), ...manual });
  const valid = await Promise.all(sides().map(async (base) => (await call(base, 'GET', `/v1/nodes/${uuid}/validate`)).body));
  expect([valid[1]!['deploy'], valid[1]!['boot']]).toEqual([valid[0]!['deploy'], valid[0]!['boot']]);
  await deploy(uuid);
  const [there, here] = await given(uuid);
  expect(here.kickstart).toBe(there.kickstart);
  expect(here.args).toBe(there.args);
  expect(here.args).toContain(`inst.ks=${KS} inst.stage2=http://FOLDER initrd=ramdisk`);
  const beats: readonly (readonly [version: string, changes: Json, states: readonly string[]])[] = [
    ['1.72', { agent_token: 'wrong', agent_status: 'start' }, []],
    ['1.72', { agent_status: 'begin' }, []],
    ['1.71', { agent_status: 'start' }, []],
    ['1.72', { agent_status: 'start', callback_url: 'nonsense' }, []],
    ['1.72', {}, []],
    ['1.72', { agent_status: 'start', agent_status_message: 'begun' }, ['wait call-back']],
    ['1.72', { agent_status: 'start', agent_status_message: 'begun again' }, ['wait call-back']],
    ['1.72', { agent_status: 'end', agent_status_message: 'over' }, ['active']],
  ];
  for (const [version, changes, states] of beats) {
    const seen = await Promise.all(
      sides().map(async (base, side) => {
        const body = { callback_url: '', agent_token: [there, here][side]!.token, ...changes };
        const answer = await call(base, 'POST', `/v1/heartbeat/${uuid}`, body, version);
        const fault = answer.status < 300 ? null : faultOf(answer.body);
        const wanted = changes['agent_status_message'];
        if (states[0] === 'wait call-back')
          await until(
            60,
            () => 'the heartbeat',
            async () => JSON.stringify((await call(base, 'GET', `/v1/nodes/${uuid}`)).body).includes(`"${String(wanted)}"`),
          );
        const node = states.length > 0 ? told(await reach(base, uuid, ...states)) : null;
        return [answer.status, fault, node] as const;
      }),
    );
    expect([changes, ...seen[1]!]).toEqual([changes, ...seen[0]!]);
  }
  expect(existsSync(join(both.httpRoot, uuid, 'ks.cfg'))).toBe(false);
});

it('an error, with its words', async () => {
  const uuid = await enrol(anaconda(installs()));
  await deploy(uuid);
  const tokens = (await given(uuid)).map(({ token }) => token);
  const seen = await Promise.all(
    sides().map(async (base, side) => {
      const body = { callback_url: '', agent_token: tokens[side], agent_status: 'error', agent_status_message: 'no disk' };
      const { status } = await call(base, 'POST', `/v1/heartbeat/${uuid}`, body, '1.72');
      return [status, told(await reach(base, uuid, 'deploy failed'))];
    }),
  );
  expect(seen[1]).toEqual(seen[0]);
  expect(seen[1]![1]).toMatchObject({ last_error: 'no disk' });
});

it('a repository', async () => {
  const { stage2: _, ...parts } = installs({ image_source: `${files}/repo/` });
  const uuid = await enrol(anaconda(parts));
  await deploy(uuid);
  const [there, here] = await given(uuid);
  expect(here.kickstart).toBe(there.kickstart);
  expect(here.args).toBe(there.args);
  const nodes = await Promise.all(
    sides().map(async (base) => (await call(base, 'GET', `/v1/nodes/${uuid}`)).body['driver_internal_info'] as Json),
  );
  expect(nodes.map((info) => info['is_source_a_path'])).toEqual([true, true]);
});

/** Words of a kernel's command line that a boot loader's file has, unquoted: of the real Ironic and of ours. */
const LOADERS = {
  bios: { there: /^label boot_anaconda\n[^]*?^append initrd=\S+ (.*)\nipappend 2$/m, here: /^ {2}append (.*)\n {2}ipappend 2$/m },
  uefi: { there: /^menuentry "boot_anaconda" \{\n *linux \S+ (.*)$/m, here: /^linux \S+ (.*)$/m },
} as const;
/** What the real Ironic's loader file selects, and the names under which a loader asks for the file of its machine. */
const SELECTED = { bios: /^default boot_anaconda$/m, uefi: /^set default=boot_anaconda$/m } as const;
const ASKED = {
  bios: (mac: string) => `pxelinux.cfg/01-${mac.replaceAll(':', '-')}`,
  uefi: (mac: string) => `${mac}.conf`,
} as const;
const byTftp = async (name: string): Promise<string> =>
  (await promisify(execFile)('curl', ['-sS', '--max-time', '60', `tftp://127.0.0.1:${tftpPort}/${name}`])).stdout;
async function givenByTftp(uuid: string, mode: 'bios' | 'uefi'): Promise<readonly [Given, Given]> {
  const mac = `52:54:00:aa:00:${String(made).padStart(2, '0')}`;
  const { there, here } = LOADERS[mode];
  const config = readFileSync(join(both.tftpRoot, ASKED[mode](mac)), 'utf8');
  expect(config).toMatch(SELECTED[mode]);
  const file = await byTftp(ASKED[mode](mac));
  const args = here.exec(file)![1]!.replaceAll("'", '');
  const ks = /inst\.ks=(\S+)/.exec(args)![1]!;
  const written = readFileSync(join(both.httpRoot, uuid, 'ks.cfg'), 'utf8');
  const script = (line: string): string => `kernel x ${line.trim()}\n`;
  return [
    readGiven(written, script(there.exec(config)![1]!), both.reference, `${files}/reference/${uuid}`),
    readGiven(await (await fetch(ks)).text(), script(args), both.ours, ks.replace(/\/ks\.cfg$/, '')),
  ];
}

it.each([
  ['bios', 'an image'],
  ['uefi', 'an image'],
  ['bios', 'a repository'],
  ['uefi', 'a repository'],
] as const)('the boot interface pxe with %s and %s: the same command line by TFTP', async (mode, kind) => {
  const { stage2: _, ...parts } = installs({ image_source: `${files}/repo/` });
  const uuid = await enrol({
    ...anaconda(kind === 'an image' ? installs() : parts),
    boot_interface: 'pxe',
    properties: { capabilities: `boot_mode:${mode}` },
  });
  await deploy(uuid);
  const [there, here] = await givenByTftp(uuid, mode);
  expect(here.kickstart).toBe(there.kickstart);
  // Ironic's template of PXELINUX has no repository: its installer finds no second stage. That of GRUB has one.
  const reference =
    mode === 'bios' && kind === 'a repository' ? there.args.replace(/inst\.stage2=$/, `inst.repo=${files}/repo/`) : there.args;
  expect(here.args).toBe(reference);
  expect(here.args).toMatch(kind === 'an image' ? /inst\.stage2=http:\/\/FOLDER$/ : /inst\.repo=http:\S+\/repo\/$/);
});

it('an image of Glance: its properties name the kernel, the ramdisk, the second stage and the template', async () => {
  const image = (data: string, properties: Json = {}): string => {
    const id = `3a1f0b5c-2d4e-4f60-8a7b-${String(glance.images.size).padStart(12, '0')}`;
    const common = { container_format: 'bare', disk_format: 'raw', min_disk: 0, min_ram: 0, tags: [], schema: '/v2/schemas/image' };
    const fields = { ...common, id, name: id, status: 'active', visibility: 'public', owner: 'p', size: data.length, ...properties };
    const sums = { checksum: 'c'.repeat(32), os_hash_algo: 'sha256', os_hash_value: '0'.repeat(64) };
    glance.images.set(id, { fields: { ...sums, ...fields }, data: Buffer.from(data) });
    return id;
  };
  const template = `# of Glance\n${readFileSync(join(folder, 'ks.cfg.template'), 'utf8')}`;
  const parts = { kernel_id: image('kernel'), ramdisk_id: image('ramdisk'), stage2_id: image('stage2'), ks_template: image(template) };
  const whole = image('os', { ...parts, os_type: 'linux', disk_file_extension: '.tar.gz' });
  const lacking = image('os', { kernel_id: parts.kernel_id, ramdisk_id: parts.ramdisk_id });
  const check = async (uuid: string) =>
    Promise.all(sides().map(async (base) => (await call(base, 'GET', `/v1/nodes/${uuid}/validate`)).body));

  const without = await check(await enrol(anaconda({ image_source: lacking, root_gb: 10 })));
  expect(without[1]!['deploy']).toEqual(without[0]!['deploy']);
  expect(without[1]!['deploy']).toMatchObject({ reason: `Image ${lacking} is missing the following properties: stage2_id` });

  const uuid = await enrol(anaconda({ image_source: whole, root_gb: 10 }));
  const valid = await check(uuid);
  expect([valid[1]!['deploy'], valid[1]!['boot']]).toEqual([valid[0]!['deploy'], valid[0]!['boot']]);
  expect(valid[1]!['deploy']).toMatchObject({ result: true });
  await deploy(uuid);
  const [there, here] = await given(uuid);
  const url = /^liveimg --url (.*)$/m;
  expect(here.kickstart.replace(url, 'liveimg')).toBe(there.kickstart.replace(url, 'liveimg'));
  expect(here.kickstart).toMatch(/^# of Glance\n/);
  for (const { kickstart } of [there, here]) expect(url.exec(kickstart)![1]).toMatch(/\.tar\.gz$/);
  expect(here.args).toBe(there.args);
  const nodes = await Promise.all(sides().map(async (base) => (await call(base, 'GET', `/v1/nodes/${uuid}`)).body));
  const kept = nodes.map(({ instance_info: info, driver_internal_info: internal }) => {
    const { kernel, ramdisk, image_source: source } = info as Json;
    const { stage2, ks_template: named } = internal as Json;
    return { kernel, ramdisk, source, stage2, named };
  });
  expect(kept[1]).toEqual(kept[0]);
  expect(kept[1]).toEqual({
    kernel: parts.kernel_id,
    ramdisk: parts.ramdisk_id,
    source: whole,
    stage2: parts.stage2_id,
    named: parts.ks_template,
  });
});

it('what is missing has the same names', async () => {
  // An image without kernel and ramdisk is valid in Ironic, and its machine boots nothing.
  const cases: readonly Json[] = [{}, { image_source: `${files}/os.tar`, kernel: `${files}/kernel` }];
  for (const instance of cases) {
    const uuid = await enrol(anaconda(instance));
    const answers = await Promise.all(
      sides().map(async (base) => {
        const { body } = await call(base, 'GET', `/v1/nodes/${uuid}/validate`);
        return [body['deploy'], body['boot']];
      }),
    );
    expect(answers[1]).toEqual(answers[0]);
  }
});

it('our own templates, and the file with a config drive, are valid for each release of pykickstart', async () => {
  const bin = await programs('pykickstart', ['pykickstart==3.78']);

  const rendered = DEFAULT_TEMPLATE.replaceAll(/\{% if 'insecure[^%]*%\}.*?\{% endif %\}/g, '').replaceAll(
    /\{\{ ks_options\.(\w+) \}\}/g,
    'http://192.0.2.1/$1',
  );
  const [repository, image] = [
    /\{% if 'is_source[^%]*%\}([^]*)\{% else -%\}[^]*\{% endif %\}/,
    /\{% if 'is_source[^%]*%\}[^]*\{% else -%\}([^]*)\{% endif %\}/,
  ].map((part) =>
    rendered
      .replace(part, '$1')
      .replace('http://192.0.2.1/config_drive', "%post\necho 'YQ==' | /usr/bin/base64 --decode > '/var/lib/x y'\n%end"),
  );
  for (const text of [repository!, image!])
    for (const release of ['RHEL8', 'RHEL9', 'RHEL10', 'F40']) {
      writeFileSync(join(folder, 'ks.cfg'), text);
      await promisify(execFile)(join(bin, 'ksvalidator'), ['-v', release, join(folder, 'ks.cfg')]);
    }
});

it('autodetect: the same choices, kept and restored alike', async () => {
  const direct = {
    image_source: `${files}/os.tar`,
    image_checksum: 'd41d8cd98f00b204e9800998ecf8427e',
    image_os_hash_algo: 'sha256',
    image_os_hash_value: '0'.repeat(64),
  };
  const memory = { kernel: `${files}/kernel`, ramdisk: `${files}/ramdisk`, ironic_ramdisk_deploy: true };
  const inRegistry = ['bootable', 'disk', 'absent'].map((tag) => ({ image_source: registry.href(tag) }));
  const chosenFor: unknown[] = [];
  for (const instance of [direct, memory, { ...direct, ironic_ramdisk_deploy: true }, ...inRegistry]) {
    const uuid = await enrol({ instance_info: instance });
    const chosen = async (base: string) => {
      const node = (await call(base, 'GET', `/v1/nodes/${uuid}`)).body;
      return [node['deploy_interface'], (node['driver_internal_info'] as Json)['original_deploy_interface']];
    };
    const seen = await Promise.all(
      sides().map(async (base) => {
        const before = await chosen(base);
        const { status } = await call(base, 'PUT', `/v1/nodes/${uuid}/states/provision`, { target: 'active' });
        await reach(base, uuid, 'wait call-back', 'active', 'deploy failed');
        const during = await chosen(base);
        await call(base, 'PUT', `/v1/nodes/${uuid}/states/provision`, { target: 'deleted' });
        await reach(base, uuid, 'available');
        return [before, status, during, await chosen(base)] as const;
      }),
    );
    expect([instance, seen[1]]).toEqual([instance, seen[0]]);
    chosenFor.push(seen[1]![2][0]);
  }
  expect(chosenFor).toEqual(['direct', 'ramdisk', 'direct', 'bootc', 'direct', 'direct']);
});
