/** What an installer is given: whose images they are, and what errors quote. */
import { Readable } from 'node:stream';
import { checkInstaller } from '../../../drivers/anaconda/installer';
import { givenTemplate } from '../../../drivers/anaconda/kickstart';
import type { ServiceClient } from '../../../wire/keystone/services';
import { servicesOf } from '../../support/services';
import { testTask } from '../../support/task';

const ID = '3a1f0b5c-2d4e-4f60-8a7b-9c0d1e2f3a4b';
const inGlance = (visibility: string) => {
  const image = { id: ID, status: 'active', visibility, owner: 'another', size: 9, disk_format: 'raw', container_format: 'bare' };
  const glance: Partial<ServiceClient> = {
    isConfigured: true,
    projectId: async () => 'service',
    request: async () => ({ status: 200, headers: {}, body: image }),
    stream: async () => ({ status: 200, headers: {}, body: Readable.from([Buffer.from('rootpw x\n')]) }),
  };
  return testTask({ connections: { services: { ...servicesOf(), glance: glance as ServiceClient } } }).task;
};
it('reads a template in Glance that everybody may use, and none of another project', async () => {
  await expect(givenTemplate(inGlance('public'), ID)).resolves.toBe('rootpw x\n');
  await expect(givenTemplate(inGlance('private'), ID)).rejects.toMatchObject({ name: 'ImageNotFound' });
});

it('does not quote the password in the URL of a template', async () => {
  const url = 'http://user:s3cret@127.0.0.1:1/own.ks';
  const error = await givenTemplate(testTask().task, url).catch((thrown: unknown) => thrown as Error);
  expect(error).toMatchObject({ name: 'InvalidParameterValue' });
  expect((error as Error).message).not.toContain('s3cret');
});

const parts = { image_source: 'file:///os.tar', kernel: 'file:///k', ramdisk: 'file:///r', stage2: 'file:///s' };
it.each(['image_source', 'kernel', 'stage2', 'ks_template'])('refuses %s in a registry without a digest', async (name) => {
  const { task } = testTask({
    node: { instance_info: { ...parts, [name]: 'oci://registry.example.org/disk:v1' } },
    options: { 'conductor.file_url_allowed_paths': ['/'] },
  });
  await expect(checkInstaller(task)).rejects.toMatchObject({ status: 400, message: expect.stringContaining('was not specific') as string });
});
