import { ramdiskOf } from '../../../drivers/agent/ramdisk';
import type { RamdiskMode } from '../../../drivers/common/configured-ramdisk';
import type { Options } from '../../../config/options';
import type { JsonObject } from '../../../model/records';
import { NODE_UUID, testTask } from '../../support/task';

const COMMON = { 'conductor.deploy_kernel': '/k', 'conductor.deploy_ramdisk': '/r' };
const BY_ARCH = { 'conductor.deploy_kernel_by_arch': { aarch64: '/ak' }, 'conductor.deploy_ramdisk_by_arch': { aarch64: '/ar' } };
const STRICT = { 'conductor.error_on_ramdisk_config_inconsistency': true };
const ARM = { cpu_arch: 'aarch64' };
const OWN_HALF = `Node ${NODE_UUID} driver_info has an override for deploy_kernel, but not for deploy_ramdisk. This configuration is ambiguous. Node ${NODE_UUID} cannot boot a ramdisk.`;
const ARCH_HALF = `CONF.conductor.deploy_ramdisk_by_arch has a value for aarch64 servers, but doesn't have one in CONF.conductor.deploy_kernel_by_arch. This configuration is ambiguous. Node ${NODE_UUID} cannot boot a ramdisk.`;
const HALF_BY_ARCH = { ...BY_ARCH, 'conductor.deploy_kernel_by_arch': {} };

const given = (info: JsonObject, properties: JsonObject, options: Partial<Options>) =>
  testTask({ node: { driver_info: info, properties }, options });

it.each<[string, JsonObject, JsonObject, Partial<Options>, object, string | null]>([
  ['all nodes', {}, ARM, COMMON, { kernel: '/k', ramdisk: '/r', trusted: true, byArchitecture: {} }, null],
  ["the node's architecture", {}, ARM, { ...COMMON, ...BY_ARCH }, { kernel: '/ak', ramdisk: '/ar', trusted: true }, null],
  [
    'all nodes, for an architecture without a setting',
    {},
    { cpu_arch: 'x86_64' },
    { ...COMMON, ...BY_ARCH },
    { kernel: '/k', ramdisk: '/r', trusted: true, byArchitecture: {} },
    null,
  ],
  [
    'all nodes, for the architecture "constructor"',
    {},
    { cpu_arch: 'constructor' },
    { ...COMMON, ...BY_ARCH },
    { kernel: '/k', ramdisk: '/r', trusted: true, byArchitecture: {} },
    null,
  ],
  [
    'the node',
    { deploy_kernel: 'http://k', deploy_ramdisk: 'http://r' },
    ARM,
    { ...COMMON, ...BY_ARCH, ...STRICT },
    { kernel: 'http://k', ramdisk: 'http://r', trusted: false },
    null,
  ],
  [
    'all nodes, if the node names only a kernel',
    { deploy_kernel: 'http://k' },
    {},
    COMMON,
    { kernel: '/k', ramdisk: '/r', trusted: true, byArchitecture: {} },
    OWN_HALF,
  ],
  [
    'all nodes, if its architecture has only a ramdisk',
    {},
    ARM,
    { ...COMMON, ...HALF_BY_ARCH },
    { kernel: '/k', ramdisk: '/r', trusted: true, byArchitecture: {} },
    ARCH_HALF,
  ],
])('ramdiskOf takes kernel and ramdisk from the settings of %s', (_, info, properties, options, expected, warning) => {
  const { task, complaints } = given(info, properties, options);
  expect(ramdiskOf(task, 'deploy')).toEqual(expected);
  expect(complaints).toEqual(warning === null ? [] : [`${warning} {}`]);
});

it.each<[JsonObject, Partial<Options>, string]>([
  [{ deploy_kernel: 'http://k' }, COMMON, OWN_HALF],
  [{}, { ...COMMON, ...HALF_BY_ARCH }, ARCH_HALF],
])('ramdiskOf rejects an incomplete pair with [conductor]error_on_ramdisk_config_inconsistency: %j', (info, options, message) => {
  expect(() => ramdiskOf(given(info, ARM, { ...options, ...STRICT }).task, 'deploy')).toThrow(
    expect.objectContaining({ name: 'MissingParameterValue', message }) as Error,
  );
});

it.each<[RamdiskMode, Partial<Options>]>([
  ['deploy', { 'conductor.rescue_kernel_by_arch': { aarch64: '/k' }, 'conductor.rescue_ramdisk_by_arch': { aarch64: '/r' } }],
  ['rescue', { ...COMMON, ...BY_ARCH }],
])('ramdiskOf does not use the options of other purposes for the purpose %s', (mode, options) => {
  expect(() => ramdiskOf(given({}, ARM, options).task, mode)).toThrow(`Missing are: ['${mode}_kernel', '${mode}_ramdisk']`);
});
