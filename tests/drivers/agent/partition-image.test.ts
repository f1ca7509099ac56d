import { deployedSizes, isPartition, partitionFields, partitionInfo } from '../../../drivers/agent/partition-image';
import type { JsonObject, NodeRecord } from '../../../model/records';
import { NODE_UUID, testTask } from '../../support/task';

const fields = (instance_info: JsonObject, node: Partial<NodeRecord> = {}, options = {}) =>
  partitionFields(testTask({ node: { instance_info, ...node }, options }).task);

describe('partitionFields', () => {
  const bare = { swap_mb: 0, ephemeral_gb: 0, ephemeral_mb: 0, ephemeral_format: null, preserve_ephemeral: false };
  it.each<[JsonObject, JsonObject]>([
    [{ root_gb: 10 }, { ...bare, root_gb: 10, root_mb: 10_240 }],
    [
      { root_gb: '10', swap_mb: '512' },
      { ...bare, root_gb: 10, root_mb: 10_240, swap_mb: 512 },
    ],
    [
      { root_gb: 1, ephemeral_gb: 2, preserve_ephemeral: 'yes' },
      { ...bare, root_gb: 1, root_mb: 1024, ephemeral_gb: 2, ephemeral_mb: 2048, ephemeral_format: 'ext4', preserve_ephemeral: true },
    ],
    [
      { root_gb: 1, ephemeral_gb: 2, ephemeral_format: 'xfs' },
      { ...bare, root_gb: 1, root_mb: 1024, ephemeral_gb: 2, ephemeral_mb: 2048, ephemeral_format: 'xfs' },
    ],
    [
      { root_gb: 1, ephemeral_format: 'xfs' },
      { ...bare, root_gb: 1, root_mb: 1024, ephemeral_format: 'xfs' },
    ],
  ])('of %j', (info, expected) => {
    expect(fields(info)).toEqual(expected);
  });
  it('has the file system of [pxe]default_ephemeral_format', () => {
    expect(fields({ root_gb: 1, ephemeral_gb: 1 }, {}, { 'pxe.default_ephemeral_format': 'xfs' })['ephemeral_format']).toBe('xfs');
  });
  const words = "acceptable values are: '0', '1', 'f', 'false', 'n', 'no', 'off', 'on', 't', 'true', 'y', 'yes'";
  const deployed = { instance: { root_gb: 10, swap_mb: 0, ephemeral_gb: 2 } };
  it.each<[string, JsonObject, Partial<NodeRecord>, string]>([
    ['no root_gb', {}, {}, "Some parameters were missing in node's instance_info. Missing are: ['root_gb']"],
    ['root_gb 0', { root_gb: 0 }, {}, "Some parameters were missing in node's instance_info. Missing are: ['root_gb']"],
    ['root_gb foo', { root_gb: 'foo' }, {}, 'Invalid parameter root_gb: foo is not an integer value.'],
    ['root_gb [1]', { root_gb: [1] }, {}, 'Invalid parameter root_gb: [1] is not an integer value.'],
    ['root_gb -1', { root_gb: -1 }, {}, 'Invalid parameter root_gb: -1 is too small.'],
    ['a huge root_gb', { root_gb: 1e15 }, {}, 'Invalid parameter root_gb: 1000000000000000 is too large.'],
    ['swap_mb', { root_gb: 1, swap_mb: 'bar' }, {}, 'Invalid parameter swap_mb: bar is not an integer value.'],
    ['ephemeral_gb', { root_gb: 1, ephemeral_gb: 'baz' }, {}, 'Invalid parameter ephemeral_gb: baz is not an integer value.'],
    [
      'preserve_ephemeral',
      { root_gb: 1, preserve_ephemeral: 'maybe' },
      {},
      `Invalid parameter preserve_ephemeral: Unrecognized value 'maybe', ${words}`,
    ],
    [
      'ephemeral_format',
      { root_gb: 1, ephemeral_gb: 1, ephemeral_format: 'ext4 -F' },
      {},
      'Invalid parameter ephemeral_format: ext4 -F is not the name of a file system, such as ext2, ext3, ext4, xfs, vfat.',
    ],
    [
      'another layout than the deployed one',
      { root_gb: 10, ephemeral_gb: 3, swap_mb: 5, preserve_ephemeral: true },
      { driver_internal_info: deployed },
      'The following parameters have different values from previous deployment: Deployed value of swap_mb was 0 but requested value is 5. Deployed value of ephemeral_gb was 2 but requested value is 3.',
    ],
    [
      'no room',
      { root_gb: 10, ephemeral_gb: 2, swap_mb: 1025 },
      { properties: { local_gb: 12 } },
      `The partitions of node ${NODE_UUID} do not fit: root_gb 10, ephemeral_gb 2 and swap_mb 1025 need 13313 MiB, and properties/local_gb is 12`,
    ],
    [
      'netboot',
      { root_gb: 1, capabilities: { boot_option: 'netboot' } },
      {},
      "The parameter 'boot_option' from instance_info['capabilities'] has an invalid value: 'netboot'. Acceptable values are: local.",
    ],
  ])('refuses %s', (_, info, node, message) => {
    expect(() => fields(info, node)).toThrow(expect.objectContaining({ status: 400, message }) as Error);
  });
  it.each<[string, JsonObject, Partial<NodeRecord>]>([
    ['the deployed layout', { root_gb: '10', ephemeral_gb: 2, preserve_ephemeral: true }, { driver_internal_info: deployed }],
    ['another layout that preserves nothing', { root_gb: 9, ephemeral_gb: 2 }, { driver_internal_info: deployed }],
    ['a layout to preserve that nobody knows', { root_gb: 10, ephemeral_gb: 2, preserve_ephemeral: true }, {}],
    ['the GiB that inspection leaves out', { root_gb: 10, swap_mb: 1024 }, { properties: { local_gb: '10' } }],
    ['a local_gb that is no size', { root_gb: 10 }, { properties: { local_gb: 'unknown' } }],
    ['another disk than that of local_gb', { root_gb: 10, root_device: { serial: 'S' } }, { properties: { local_gb: 1 } }],
    ['local boot', { root_gb: 1, capabilities: { boot_option: 'local' } }, {}],
  ])('accepts %s', (_, info, node) => {
    expect(() => fields(info, node)).not.toThrow();
  });
});

it.each<[Partial<NodeRecord>, JsonObject]>([
  [{}, { deploy_boot_mode: 'uefi', boot_option: 'local', disk_label: 'gpt' }],
  [{ properties: { capabilities: 'boot_mode:bios' } }, { deploy_boot_mode: 'bios', boot_option: 'local' }],
  [
    { properties: { capabilities: 'boot_mode:bios' }, instance_info: { capabilities: { disk_label: 'gpt' } } },
    { deploy_boot_mode: 'bios', boot_option: 'local', disk_label: 'gpt' },
  ],
])('partitionInfo of %j', (node, expected) => {
  const info = { kernel: 'k', root_gb: 1, root_mb: 1024, swap_mb: 0, ephemeral_mb: 0, ephemeral_format: null, preserve_ephemeral: false };
  const instance_info = { ...node.instance_info, ...info, image_type: 'partition' };
  expect(partitionInfo(testTask({ node: { ...node, instance_info } }).task)).toEqual({
    ...info,
    ramdisk: null,
    image_type: 'partition',
    ...expected,
  });
});

it('deployedSizes are numbers', () => {
  const { task } = testTask({ node: { instance_info: { root_gb: '10', swap_mb: 5 } } });
  expect(deployedSizes(task.node)).toEqual({ root_gb: 10, swap_mb: 5, ephemeral_gb: 0 });
});

it.each<[Record<string, string>, boolean]>([
  [{}, false],
  [{ img_type: 'partition' }, true],
  [{ img_type: 'whole-disk', kernel_id: 'k' }, false],
  [{ kernel_id: 'k' }, true],
  [{ ramdisk_id: 'r' }, true],
])('an image in Glance with %j: partition image %s', (properties, expected) => {
  expect(isPartition(properties)).toBe(expected);
});
