/** The deploy interface bootc, without the flows: what it refuses, and what the agent is told. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootcDeploy } from '../../../drivers/agent/bootc';
import { done, failed, wait } from '../../../drivers/interfaces';
import type { JsonObject, NodeRecord } from '../../../model/records';
import { fakeBoot, fakeManagement } from '../../../drivers/fake/fake';
import { type FakeAgent, result, startFakeAgent } from '../../support/fakes/fake-agent';
import { testTask } from '../../support/task';

const IMAGE = 'oci://registry.example.com:5000/os/debian:13';
const DIGEST = `sha256:${'a'.repeat(64)}`;
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const given = (instance_info: JsonObject, node: Partial<NodeRecord> = {}, options = {}) =>
  testTask({ node: { ...node, instance_info }, options, driver: { boot: fakeBoot, deploy: bootcDeploy } });

describe('validate', () => {
  const valid = (info: JsonObject, node: Partial<NodeRecord> = {}) => bootcDeploy.validate!(given(info, node).task);
  it.each<[JsonObject]>([
    [{ image_source: IMAGE }],
    [{ image_source: `oci://registry.example.com/a/b-c/d.e@${DIGEST}` }],
    [{ image_source: `oci://[fd00::1]:5000/os:latest@${DIGEST}` }],
    [{ image_source: IMAGE, image_pull_secret: base64('u:p'), bootc_authorized_keys: 'ssh-ed25519 A', bootc_tpm2_luks: 'false' }],
    [{ image_source: IMAGE, bootc_authorized_keys: null, bootc_tpm2_luks: null }],
  ])('accepts %j', (info) => expect(valid(info)).resolves.toBeUndefined());
  it.each<[JsonObject, string]>([
    [{}, 'Invalid image href None.'],
    [{ image_source: 'http://x/image.raw' }, 'Invalid image href http://x/image.raw.'],
    [{ image_source: 'docker://x/image' }, 'Invalid image href docker://x/image.'],
    [{ image_source: 'oci://' }, 'Invalid image href oci://.'],
    [{ image_source: 'oci://registry' }, 'Invalid image href oci://registry.'],
    [{ image_source: 'oci://--help/x' }, 'Invalid image href oci://--help/x.'],
    [{ image_source: 'oci://r/x --y' }, 'Invalid image href oci://r/x --y.'],
    [{ image_source: 'oci://r/../x' }, 'Invalid image href oci://r/../x.'],
    [{ image_source: 'oci://user:pw@r/x' }, 'Invalid image href oci://user:pw@r/x.'],
    [{ image_source: 'oci://r/x@sha256:ab' }, 'Invalid image href oci://r/x@sha256:ab.'],
    [{ image_source: 'oci://r/x:a:b' }, 'Invalid image href oci://r/x:a:b.'],
    [{ image_source: 'oci://r/Capital' }, 'Invalid image href oci://r/Capital.'],
    [{ image_source: 'OCI://r/x' }, 'Invalid image href OCI://r/x.'],
    [
      { image_source: IMAGE, bootc_authorized_keys: ['a'] },
      'instance_info/bootc_authorized_keys must be a text of at most 65536 characters',
    ],
    [
      { image_source: IMAGE, bootc_authorized_keys: 'a'.repeat(65_537) },
      'instance_info/bootc_authorized_keys must be a text of at most 65536 characters',
    ],
    [{ image_source: IMAGE, bootc_tpm2_luks: 'perhaps' }, 'instance_info/bootc_tpm2_luks must be true or false'],
    [{ image_source: IMAGE, image_pull_secret: 5 }, 'instance_info/image_pull_secret is not a string'],
    [{ image_source: IMAGE, root_device: { size: 'much' } }, 'Failed to validate the root device hints'],
  ])('refuses %j', (info, message) =>
    expect(valid(info)).rejects.toMatchObject({ status: 400, message: expect.stringContaining(message) as string }),
  );
});

describe('steps', () => {
  let agent: FakeAgent;
  beforeEach(async () => {
    agent = await startFakeAgent(() => ({ body: result('execute_deploy_step', 'RUNNING') }));
  });
  afterEach(() => agent.close());
  const stepOf = (name: string) => bootcDeploy.steps!.find(({ step }) => step === name)!;

  it("are Ironic's", () => {
    const steps = bootcDeploy.steps!.filter(({ priority }) => priority.deploy !== undefined);
    expect(steps.map(({ step, priority }) => [step, priority.deploy])).toEqual([
      ['deploy', 100],
      ['execute_bootc_install', 80],
      ['prepare_instance_boot', 60],
      ['set_boot_to_disk', 60],
      ['tear_down_agent', 40],
      ['switch_to_tenant_network', 30],
      ['boot_instance', 20],
    ]);
  });

  const login = { 'deploy.image_server_auth_strategy': 'http_basic', 'deploy.image_server_user': 'u', 'deploy.image_server_password': 'p' };
  const folder = mkdtempSync(join(tmpdir(), 'bootc-logins-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const auths = { 'registry.example.com:5000': { auth: base64('f:p') }, 'registry.example.com': { auth: base64('o:p') } };
  writeFileSync(join(folder, 'auth.json'), JSON.stringify({ auths }));
  const file = { 'oci.authentication_config': join(folder, 'auth.json') };
  it.each<[string, JsonObject, JsonObject, Readonly<Record<string, string>>, string | null]>([
    ['no secret', {}, {}, {}, null],
    ['a secret of container tools', { image_pull_secret: base64('u:p') }, {}, {}, base64(base64('u:p'))],
    ['user and password', { image_pull_secret: 'u:p' }, { image_pull_secret: 'other' }, {}, base64(base64('u:p'))],
    ['the secret of the node', {}, { image_pull_secret: base64('n:p') }, login, base64(base64('n:p'))],
    ['the login for image servers', {}, {}, { ...login, ...file }, base64(base64('u:p'))],
    ['the login of the file', {}, {}, file, base64(base64('f:p'))],
    ['a secret that is no pair', { image_pull_secret: 'a token' }, {}, file, base64('a token')],
  ])('execute_bootc_install tells the agent %s', async (_, info, driver_info, options, secret) => {
    const { task } = given(
      { image_source: IMAGE, configdrive: 'H4sI', bootc_authorized_keys: 'ssh-ed25519 A', ...info },
      {
        driver_info,
        driver_internal_info: { agent_url: agent.url },
      },
      options,
    );
    expect(await stepOf('execute_bootc_install').run(task, {})).toEqual(wait);
    const { name, params } = agent.asked.find(({ body }) => body !== undefined)!.body!;
    expect(name).toBe('deploy.execute_deploy_step');
    expect(params['step']).toEqual({
      interface: 'deploy',
      step: 'execute_bootc_install',
      priority: 80,
      args: { image_source: IMAGE, configdrive: 'H4sI', oci_pull_secret: secret },
    });
    expect(params['node']).toMatchObject({ instance_info: { bootc_authorized_keys: 'ssh-ed25519 A' } });
    const { step: sentStep, ...rest } = params;
    expect(sentStep).toBeDefined();
    expect(JSON.stringify(rest)).not.toMatch(new RegExp(`${base64('u:p')}|u:p|${base64('n:p')}|a token`));
  });

  it.each<[JsonObject, number]>([
    [{}, 1],
    [{ vendor: 'Lenovo' }, 0],
    [{ vendor: 'lenovo' }, 0],
    [{ vendor: 'ACME' }, 1],
  ])('set_boot_to_disk on a machine with %j sets the boot device %i times', async (properties, times) => {
    const set = jest.fn<Promise<void>, [unknown, string, boolean]>(async () => {});
    const { task } = testTask({ node: { properties }, driver: { management: { ...fakeManagement, setBootDevice: set } } });
    expect(await stepOf('set_boot_to_disk').run(task, {})).toEqual(done);
    expect(set.mock.calls.map(([, device, persistent]) => [device, persistent])).toEqual(Array(times).fill(['disk', true]));
  });
  it('set_boot_to_disk fails with the reason', async () => {
    const setBootDevice = () => Promise.reject(new Error('the BMC is away'));
    const { task, node } = testTask({ driver: { management: { ...fakeManagement, setBootDevice } } });
    expect(await stepOf('set_boot_to_disk').run(task, {})).toEqual(
      failed(`Failed to change the boot device to disk when deploying node ${node().uuid}: the BMC is away`),
    );
  });
});
