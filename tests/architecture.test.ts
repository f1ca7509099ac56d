import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { sourceFiles } from '../scripts/checks/sources.js';

/** Folder → what its files may import besides each other: the files of a folder (not those of folders below it), or one file. */
const FOLDERS: Readonly<Record<string, readonly string[]>> = {
  '': ['commands/program'],
  api: [
    'api/auth',
    'api/http',
    'api/nodes',
    'api/pipeline',
    'api/resources',
    'api/schema',
    'api/ui',
    'conductor/conductor',
    'config/options',
    'model',
    'model/rules/bmc-events',
    'model/rules/health-rules',
    'policy',
    'store/store',
    'wire/bounded-json',
    'wire/http/upgrades',
  ],
  'api/auth': [
    'api/http',
    'api/pipeline',
    'config/ini',
    'config/options',
    'model',
    'policy',
    'store/store',
    'wire/http/openid',
    'wire/keystone',
    'wire/watched-file',
    'wire/worker-thread',
  ],
  'api/http': [
    'config/options',
    'model',
    'model/rules/bmc-events',
    'model/rules/health-alerts',
    'model/rules/out-of-service',
    'store/sql',
    'store/store',
    'wire/bounded-json',
    'wire/http/client-limits',
    'wire/shares',
    'wire/snapshot-files',
  ],
  'api/introspection': [
    'api/auth',
    'api/http',
    'api/pipeline',
    'api/schema',
    'api/send',
    'conductor/conductor',
    'config/options',
    'model',
    'model/rules',
    'policy',
    'store/store',
  ],
  'api/nodes': [
    'api/pipeline',
    'api/schema',
    'conductor/conductor',
    'model',
    'model/agent/erasure',
    'model/rules/bmc-events',
    'model/rules/health-alerts',
    'model/rules/health-reports',
    'model/rules/health-rules',
    'model/rules/out-of-service',
    'model/rules/step-controls',
    'model/rules/step-list',
    'store/store',
  ],
  'api/pipeline': [
    'api/http',
    'api/schema',
    'conductor/conductor',
    'config/options',
    'model',
    'model/rules/agent-token',
    'model/rules/bmc-events',
    'model/rules/health-rules',
    'model/rules/health-smart',
    'model/rules/step-controls',
    'policy',
    'store/store',
    'wire/shares',
    'wire/turns',
  ],
  'api/resources': [
    'api/http',
    'api/nodes',
    'api/pipeline',
    'api/schema',
    'conductor/conductor',
    'config/options',
    'model',
    'model/agent',
    'model/rules',
    'policy',
    'store/store',
    'wire/snapshot-files',
  ],
  'api/schema': ['api/http', 'model'],
  'api/ui': [
    'api/auth',
    'api/http',
    'api/pipeline',
    'conductor/conductor',
    'config/options',
    'model',
    'model/rules/page-policies',
    'model/rules/screen-token',
    'policy',
    'store/store',
    'wire/authorities',
    'wire/bounded-json',
    'wire/http/upgrades',
    'wire/rfb',
    'wire/shares',
    'wire/timeout-signal',
  ],
  boot: [
    'config/options',
    'model',
    'store/database-retry',
    'store/store',
    'store/volumes',
    'wire',
    'wire/http/client-limits',
    'wire/http/listener-tls',
    'wire/images',
    'wire/keystone',
    'wire/oci',
    'wire/openstack',
    'wire/processors',
    'wire/sockets',
  ],
  'boot/dhcp': [
    'boot/discovery',
    'boot/ipxe',
    'boot/requests',
    'config/options',
    'model',
    'store/store',
    'wire',
    'wire/dhcp',
    'wire/sockets',
    'wire/processors',
  ],
  commands: [
    'commands/check',
    'commands/nodes',
    'commands/disks',
    'commands/metal3',
    'commands/probe',
    'config/documents',
    'config/ini',
    'config/load',
    'config/options',
    'config/suggestion',
    'metal3',
    'model',
    'model/rules/default-config',
    'model/rules/out-of-service',
    'model/rules/step-list',
    'policy',
    'server',
    'simulator/bmc',
    'simulator/fleet',
    'simulator/qemu',
    'simulator/recorded',
    'simulator/redfish/makers',
    'store/backup',
    'store/embedded',
    'store/import',
    'store/sql',
    'store/tables',
    'wire',
    'wire/http/connection-text',
    'wire/http/paused-responses',
    'wire/keystone',
    'wire/http/proxy-protocol',
    'wire/redfish/recorded-tree',
  ],
  'commands/check': [
    'boot/boot-templates',
    'boot/dhcp/proxy',
    'boot/dhcp/setup',
    'boot/dhcp/setup6',
    'boot/files',
    'commands/output',
    'commands/setup',
    'conductor/index',
    'config',
    'model',
    'policy/live',
    'server',
    'store/embedded',
    'store/sql',
    'wire',
    'wire/http/listener-tls',
    'wire/keystone',
    'wire/openstack/glance',
    'wire/sockets',
  ],
  'commands/nodes': ['commands', 'model', 'model/rules/console-text', 'model/rules/out-of-service'],
  'commands/disks': ['commands/endpoint', 'commands/output', 'model', 'wire/signing'],
  'commands/metal3': [
    'commands/db',
    'commands/endpoint',
    'commands/output',
    'commands/serve',
    'commands/setup',
    'config/load',
    'config/options',
    'metal3',
    'model',
    'server',
    'wire/http/proxy-protocol',
  ],
  'commands/probe': [
    'commands/output',
    'drivers/redfish',
    'model',
    'server/version',
    'wire',
    'wire/ipmi',
    'wire/ipmi/records',
    'wire/redfish',
  ],
  conductor: [
    'conductor/core',
    'conductor/engine',
    'conductor/flows',
    'conductor/hardware',
    'conductor/inspection/hooks',
    'conductor/inspection/rules',
    'conductor/introspection',
    'conductor/periodic',
    'conductor/requests',
    'conductor/runtime',
    'config/options',
    'drivers/common',
    'drivers/interfaces',
    'drivers/screens',
    'model',
    'model/rules/bmc-events',
    'model/rules/default-config',
    'model/rules/time-limits',
    'store/store',
    'wire/mac-lists',
  ],
  'conductor/core': [
    'conductor/hardware',
    'conductor/runtime',
    'config/options',
    'drivers/agent',
    'drivers/common',
    'drivers/interfaces',
    'drivers/read-hardware',
    'model',
    'model/agent/erasure',
    'model/rules',
    'model/rules/bmc-events',
    'store/database-retry',
    'store/store',
    'store/volumes',
    'wire/mac-lists',
    'wire/signing',
    'wire/timeout-signal',
    'wire/turns',
  ],
  'conductor/engine': [
    'conductor/core',
    'conductor/flows',
    'conductor/hardware',
    'conductor/introspection',
    'conductor/runtime',
    'drivers/agent',
    'drivers/interfaces',
    'model',
    'model/rules/agent-token',
    'model/rules/out-of-service',
    'store/database-retry',
    'store/store',
  ],
  'conductor/flows': [
    'conductor/core',
    'conductor/hardware',
    'conductor/inspection',
    'conductor/requests',
    'conductor/steps',
    'drivers/interfaces',
    'model',
    'model/agent/subject',
    'model/rules/agent-token',
    'model/rules/console-text',
    'model/rules/out-of-service',
    'wire/oci',
    'wire/openstack',
  ],
  'conductor/hardware': ['config/options', 'drivers/interfaces', 'drivers/read-hardware', 'model'],
  'conductor/inspection': [
    'conductor/conductor',
    'conductor/core',
    'conductor/inspection/hooks',
    'conductor/inspection/rules',
    'conductor/requests',
    'drivers/interfaces',
    'model',
    'model/rules/health-hardware',
    'model/rules/health-smart',
    'store/store',
    'wire/openstack',
  ],
  'conductor/inspection/hooks': ['conductor/core', 'conductor/hardware', 'config/options', 'model', 'model/agent'],
  'conductor/inspection/rules': ['conductor/core', 'conductor/inspection/hooks', 'model', 'model/rules', 'wire'],
  'conductor/introspection': [
    'conductor/core',
    'conductor/inspection',
    'conductor/inspection/rules',
    'conductor/runtime',
    'drivers/agent',
    'drivers/common',
    'model',
    'model/rules',
  ],
  'conductor/periodic': [
    'conductor/core',
    'conductor/engine',
    'conductor/introspection',
    'conductor/requests',
    'conductor/runtime',
    'config/options',
    'drivers/common',
    'model',
    'model/rules',
    'model/rules/bmc-events',
    'wire/urls',
  ],
  'conductor/requests': [
    'conductor/core',
    'conductor/hardware',
    'conductor/runtime',
    'conductor/steps',
    'drivers/common',
    'drivers/interfaces',
    'model',
    'model/rules/bmc-events',
    'model/rules/default-config',
    'model/rules/network-ports',
    'model/rules/out-of-service',
    'store/store',
    'wire/snapshot-files',
  ],
  'conductor/rpc': [
    'conductor/conductor',
    'conductor/operations',
    'conductor/runtime',
    'config/options',
    'model',
    'store/store',
    'wire/addresses',
    'wire/http-agent',
    'wire/http/client-limits',
    'wire/http/listener-tls',
    'wire/http/upgrades',
    'wire/shares',
    'wire/timeout-signal',
    'wire/watch-files',
  ],
  'conductor/runtime': ['model', 'model/rules/bmc-events', 'store/store', 'wire/keystone'],
  'conductor/steps': [
    'conductor/core',
    'config/options',
    'drivers/agent',
    'drivers/common/erase-request',
    'drivers/interfaces',
    'model',
    'model/agent/erasure',
    'model/rules/default-config',
    'model/rules/network-ports',
    'model/rules/out-of-service',
    'model/rules/step-controls',
  ],
  config: ['model/idents', 'wire/kernel-arguments', 'wire/http/listener-tls', 'wire/http/openid'],
  demo: ['demo/lab', 'model', 'simulator/fleet', 'wire/timeout-signal'],
  'demo/lab': ['model', 'simulator/hardware', 'simulator/qemu'],
  drivers: [
    'config/options',
    'config/suggestion',
    'drivers/agent',
    'drivers/anaconda',
    'drivers/boot-interfaces',
    'drivers/common',
    'drivers/fake',
    'drivers/graphical',
    'drivers/idrac',
    'drivers/ipmi',
    'drivers/network',
    'drivers/redfish',
    'drivers/redfish/steps',
    'drivers/storage',
    'model',
    'model/rules',
    'wire/http',
    'wire/ipmi',
    'wire/ipmi/records',
    'wire/keystone',
    'wire/redfish',
    'wire/switches',
  ],
  'drivers/agent': [
    'config/options',
    'drivers/common',
    'drivers/dhcp-providers',
    'drivers/interfaces',
    'drivers/oci',
    'drivers/storage',
    'model',
    'model/agent',
    'wire',
    'wire/http',
    'wire/images',
    'wire/oci',
    'wire/openstack',
    'wire/processors',
  ],
  'drivers/anaconda': [
    'drivers/agent',
    'drivers/common',
    'drivers/dhcp-providers',
    'drivers/interfaces',
    'drivers/oci',
    'drivers/storage',
    'model',
    'wire',
    'wire/images',
    'wire/openstack',
    'wire/templates',
  ],
  'drivers/boot-interfaces': [
    'drivers/agent',
    'drivers/common',
    'drivers/dhcp-providers',
    'drivers/interfaces',
    'drivers/redfish',
    'drivers/storage',
    'model',
    'wire',
    'wire/openstack',
    'wire/redfish',
    'wire/processors',
  ],
  'drivers/common': [
    'config/options',
    'drivers/interfaces',
    'drivers/oci',
    'model',
    'model/rules/health-rules',
    'model/agent/erasure',
    'wire',
    'wire/compression',
    'wire/http/s3',
    'wire/images',
    'wire/keystone',
    'wire/oci',
    'wire/openstack',
  ],
  'drivers/dhcp-providers': ['drivers/common', 'drivers/interfaces', 'drivers/network', 'model', 'wire'],
  'drivers/fake': ['config/options', 'drivers/common', 'drivers/interfaces', 'model'],
  'drivers/graphical': [
    'config/options',
    'drivers/common',
    'drivers/interfaces',
    'drivers/redfish',
    'model',
    'model/rules/screen-token',
    'wire/redfish',
    'wire/rfb',
  ],
  'drivers/idrac': [
    'drivers/boot-interfaces',
    'drivers/common',
    'drivers/interfaces',
    'drivers/redfish',
    'drivers/redfish/steps',
    'model',
    'wire/redfish',
  ],
  'drivers/ipmi': [
    'config/options',
    'drivers/common',
    'drivers/interfaces',
    'model',
    'model/rules/health-rules',
    'wire/ipmi',
    'wire/ipmi/records',
  ],
  'drivers/network': [
    'config/options',
    'drivers/common',
    'drivers/interfaces',
    'drivers/noop',
    'model',
    'model/rules',
    'wire',
    'wire/keystone',
    'wire/switches',
  ],
  'drivers/storage': ['drivers/common', 'drivers/interfaces', 'model', 'wire', 'wire/keystone'],
  'drivers/oci': ['model', 'wire', 'wire/images', 'wire/oci'],
  'drivers/redfish': [
    'drivers/common',
    'drivers/interfaces',
    'model',
    'model/rules/health-rules',
    'model/rules/network-ports',
    'wire/redfish',
    'wire/urls',
  ],
  'drivers/redfish/steps': [
    'drivers/agent',
    'drivers/common',
    'drivers/interfaces',
    'drivers/redfish',
    'model',
    'model/rules/network-ports',
    'wire/redfish',
    'wire/urls',
  ],
  migrations: ['migrations/000', 'migrations/001', 'migrations/002', 'migrations/003', 'migrations/004'],
  'migrations/000': [],
  'migrations/001': [],
  'migrations/002': [],
  'migrations/003': [],
  'migrations/004': [],
  metal3: [
    'api/auth/http-basic',
    'api/http/errors',
    'boot',
    'boot/dhcp/service',
    'config/options',
    'model',
    'store/store',
    'wire',
    'wire/http',
  ],
  model: ['model/agent/erasure', 'model/rules/out-of-service'],
  'model/agent': ['model'],
  'model/rules': ['model'],
  policy: ['config/options', 'config/suggestion', 'model', 'wire'],
  'ramdisk-agent': [
    'model',
    'model/agent',
    'model/rules/health-smart',
    'ramdisk-agent/bootc',
    'ramdisk-agent/burnin',
    'ramdisk-agent/disk',
    'ramdisk-agent/erase',
    'ramdisk-agent/inventory',
    'ramdisk-agent/kexec',
    'ramdisk-agent/managers',
    'ramdisk-agent/network',
    'ramdisk-agent/partition-image',
    'ramdisk-agent/raid',
    'ramdisk-agent/resident',
    'ramdisk-agent/system',
    'wire',
    'wire/dns',
    'wire/http',
    'wire/oci/bootc-arguments',
    'wire/sockets',
  ],
  'ramdisk-agent/bootc': ['model', 'model/agent', 'ramdisk-agent/disk', 'ramdisk-agent/system', 'wire/oci/bootc-arguments'],
  'ramdisk-agent/build': [],
  'ramdisk-agent/burnin': [
    'model',
    'model/agent',
    'ramdisk-agent/disk',
    'ramdisk-agent/erase',
    'ramdisk-agent/inventory',
    'ramdisk-agent/machine',
    'ramdisk-agent/system',
    'ramdisk-agent/towards',
    'wire/timeout-signal',
  ],
  'ramdisk-agent/disk': [
    'model',
    'model/agent',
    'ramdisk-agent/formats',
    'ramdisk-agent/inventory',
    'ramdisk-agent/system',
    'wire/images',
    'wire/snapshot-files',
  ],
  'ramdisk-agent/erase': [
    'model',
    'model/agent',
    'ramdisk-agent/disk',
    'ramdisk-agent/inventory',
    'ramdisk-agent/machine',
    'ramdisk-agent/raid',
    'ramdisk-agent/system',
  ],
  'ramdisk-agent/formats': ['model', 'model/agent', 'ramdisk-agent/disk/image', 'ramdisk-agent/system', 'wire/compression', 'wire/images'],
  'ramdisk-agent/inventory': ['model', 'model/rules/health-smart', 'ramdisk-agent/system'],
  'ramdisk-agent/kexec': ['model', 'model/agent', 'ramdisk-agent/disk', 'ramdisk-agent/system', 'wire/sockets'],
  'ramdisk-agent/managers': [
    'model',
    'model/agent',
    'ramdisk-agent/bootc',
    'ramdisk-agent/disk',
    'ramdisk-agent/kexec',
    'ramdisk-agent/machine',
    'ramdisk-agent/steps',
    'ramdisk-agent/system',
    'wire',
  ],
  'ramdisk-agent/network': ['model', 'ramdisk-agent/inventory', 'ramdisk-agent/system', 'wire', 'wire/dhcp'],
  'ramdisk-agent/partition-image': [
    'model',
    'model/agent',
    'ramdisk-agent/disk',
    'ramdisk-agent/inventory',
    'ramdisk-agent/kexec',
    'ramdisk-agent/raid',
    'ramdisk-agent/system',
  ],
  'ramdisk-agent/raid': [
    'model',
    'model/agent',
    'ramdisk-agent/disk',
    'ramdisk-agent/inventory',
    'ramdisk-agent/kexec',
    'ramdisk-agent/system',
  ],
  'ramdisk-agent/resident': ['model', 'model/agent', 'ramdisk-agent/kexec', 'ramdisk-agent/system', 'wire/http'],
  'ramdisk-agent/system': ['model', 'wire', 'wire/snapshot-files'],
  server: [
    'api/auth',
    'api/http',
    'api/introspection/server',
    'api/schema/document',
    'api/server',
    'api/ui/console',
    'api/ui/screen',
    'api/ui/screen-page',
    'boot',
    'boot/dhcp',
    'conductor/conductor',
    'conductor/hardware/create-hardware',
    'conductor/index',
    'conductor/rpc',
    'config',
    'drivers',
    'drivers/agent/discoverd',
    'drivers/common/configured-ramdisk',
    'drivers/fake/log',
    'drivers/ipmi/clients',
    'drivers/network/network-traits',
    'drivers/redfish/steps/bios-registry',
    'model',
    'model/rules',
    'policy',
    'store',
    'store/embedded',
    'wire',
    'wire/dns',
    'wire/http',
    'wire/images/inspection',
    'wire/keystone',
    'wire/openstack/swift',
    'wire/redfish',
    'wire/sockets',
    'wire/switches',
    'wire/processors',
  ],
  simulator: ['wire'],
  'simulator/bmc': ['model', 'simulator/http'],
  'simulator/fleet': [
    'model',
    'simulator/bmc',
    'simulator/hardware',
    'simulator/http',
    'simulator/ipmi',
    'simulator/machine',
    'simulator/qemu',
    'simulator/redfish',
    'simulator/redfish/makers',
    'wire/http',
    'wire/urls',
  ],
  'simulator/hardware': ['model', 'wire/ipmi'],
  'simulator/ipmi': ['model', 'simulator/bmc', 'simulator/hardware', 'wire/ipmi', 'wire/ipmi/records', 'wire/ipmi/server'],
  'simulator/machine': [
    'model',
    'model/agent',
    'simulator/background',
    'simulator/hardware',
    'simulator/http',
    'wire/oci/bootc-arguments',
    'wire/urls',
    'wire/snapshot-files',
  ],
  'simulator/qemu': ['model', 'simulator/hardware', 'simulator/http', 'simulator/machine', 'wire'],
  'simulator/recorded': ['model', 'simulator/http', 'simulator/redfish/protocol', 'wire/redfish'],
  'simulator/redfish': [
    'model',
    'simulator/background',
    'simulator/bmc',
    'simulator/hardware',
    'simulator/http',
    'simulator/redfish/protocol',
    'simulator/redfish/resources',
    'wire/urls',
  ],
  'simulator/redfish/makers': [
    'model',
    'simulator/hardware',
    'simulator/redfish/makers/dell',
    'simulator/redfish/protocol',
    'simulator/redfish/resources',
  ],
  'simulator/redfish/makers/dell': [
    'model',
    'simulator/hardware',
    'simulator/redfish/makers/change',
    'simulator/redfish/protocol',
    'simulator/redfish/resources',
  ],
  'simulator/redfish/protocol': ['model', 'simulator/bmc', 'simulator/hardware', 'simulator/http', 'wire'],
  'simulator/redfish/resources': [
    'model',
    'simulator/bmc',
    'simulator/hardware',
    'simulator/ipmi',
    'simulator/redfish/protocol',
    'wire',
    'wire/ipmi/records',
  ],
  store: ['model', 'store/sql', 'store/tables', 'store/tables/inspection'],
  'store/backup': ['migrations', 'store/sql', 'store/tables'],
  'store/embedded': ['model', 'store/sql', 'wire/child-processes'],
  'store/import': ['model', 'model/rules/retired-hardware'],
  'store/sql': ['migrations', 'model'],
  'store/tables': ['model', 'model/rules/health-alerts', 'model/rules/health-smart', 'store/sql', 'store/tables/inspection'],
  'store/tables/inspection': ['model', 'store/sql', 'store/tables/resources'],
  ui: ['model/rules/page-policies', 'ui/lib', 'ui/views', 'ui/views/console'],
  'ui/lib': ['model', 'model/rules'],
  'ui/views': ['model/json', 'model/rules/page-policies', 'ui', 'ui/lib', 'ui/views/console'],
  'ui/views/console': ['ui', 'ui/lib'],
  wire: ['model/idents'],
  'wire/compression': [],
  'wire/dhcp': ['wire/ipv6'],
  'wire/dns': ['model/idents', 'wire/addresses', 'wire/ipv6', 'wire/shares'],
  'wire/http': ['model/clock', 'model/idents', 'model/json', 'model/log', 'model/text', 'wire'],
  'wire/images': [],
  'wire/ipmi': ['model/clock', 'model/idents', 'model/text', 'wire/child-processes'],
  'wire/ipmi/records': ['wire/ipmi'],
  'wire/ipmi/server': ['wire/ipmi'],
  'wire/keystone': ['model/json', 'model/log', 'model/text', 'wire', 'wire/http/connection-text'],
  'wire/oci': ['model', 'model/agent/errors', 'wire', 'wire/http/connection-text', 'wire/processors'],
  'wire/openstack': ['model/json', 'wire', 'wire/keystone'],
  'wire/processors': [],
  'wire/redfish': ['model/json', 'model/text', 'wire', 'wire/http/connection-text'],
  'wire/rfb': [],
  'wire/switches': ['model/text', 'wire'],
  'wire/signing': [],
  'wire/templates': ['wire'],
  'wire/sockets': ['wire/ipv6'],
};
/** Only these folders may import more than the types of the file. */
const TYPES_ONLY = { file: 'config/options', except: ['config', 'commands'] };
const MAX_FILES = 25;
const MAX_SCRIPT_LINES = 250;

const root = join(__dirname, '..');
const sources = sourceFiles();
const folderOf = (file: string): string => (dirname(file) === '.' ? '' : dirname(file));
const folders = [...new Set(sources.map(folderOf))];

interface Import {
  readonly file: string;
  /** The file that it imports, from the root, without its suffix. */
  readonly target: string;
  readonly typesOnly: boolean;
  /** `*` for all. */
  readonly names: readonly string[];
}
/** Imports of style sheets are not among them. */
const IMPORT = /(?:\b(import|export)\s+(type\s)?([^;'"]*?)from|\bimport|\brequire)\s*\(?\s*'(\.[^']*(?<!\.css))'/g;
function importsOf(file: string): readonly Import[] {
  const text = readFileSync(join(root, file), 'utf8');
  return [...text.matchAll(IMPORT)].map((match) => {
    const [, , type, names, target] = match;
    const path = relative(root, join(root, dirname(file), target!));
    const isFile = ['.ts', '.tsx'].some((suffix) => existsSync(join(root, path + suffix)));
    const imported = { file, target: isFile ? path : join(path, 'index') };
    return { ...imported, typesOnly: type !== undefined, names: names?.match(/\w+|\*/g) ?? [] };
  });
}
const imports = sources.flatMap(importsOf);
const withoutSuffix = (file: string): string => file.replace(/\.tsx?$/, '');
const told = ({ file, target }: Import): string => `${file} imports ${target}`;

it('FOLDERS lists exactly the folders that contain source files', () => {
  expect([...folders].sort()).toEqual(Object.keys(FOLDERS).sort());
});

it.each(folders)('files in %s import only what FOLDERS allows', (folder) => {
  const allowed = FOLDERS[folder] ?? [];
  const refused = imports.filter(
    ({ file, target }) =>
      folderOf(file) === folder && folderOf(target) !== folder && !allowed.includes(folderOf(target)) && !allowed.includes(target),
  );
  expect(refused.map(told)).toEqual([]);
});

it('folders other than config and commands import only types from config/options', () => {
  const values = imports.filter(
    ({ file, target, typesOnly }) => target === TYPES_ONLY.file && !typesOnly && !TYPES_ONLY.except.includes(folderOf(file)),
  );
  expect(values.map(told)).toEqual([]);
});

/** knip checks values (`npm run check`). It accepts types of exported values, whether anything imports them or not. */
it('each exported type is imported by another source file, or marked @internal for the tests', () => {
  const wrong = sources.flatMap((file) => {
    const path = withoutSuffix(file);
    const importers = imports.filter(({ target }) => target === path);
    const isImported = (name: string): boolean => importers.some(({ names }) => names.includes(name) || names.includes('*'));
    const text = readFileSync(join(root, file), 'utf8');
    const commentAt = (end: number): string => (text.endsWith('*/\n', end) ? text.slice(text.lastIndexOf('/**', end), end) : '');
    return [...text.matchAll(/^export (?:type|interface|enum) (\w+)/gm)]
      .filter(({ index, 1: name }) => isImported(name!) === commentAt(index).includes('@internal'))
      .map(({ 1: name }) => `${file} exports ${name}`);
  });
  expect(wrong).toEqual([]);
});

/** The start of the server and the log write to the terminal too; the log escapes what it writes. */
it('commands print by commands/output.ts only, which escapes what controls a terminal', () => {
  const printers = sources
    .filter((file) => /^(?:commands|server)\/|^[^/]+$/.test(file) && file !== 'server/logging.ts')
    .filter((file) => /\bconsole\.\w+\(|process\.std(?:out|err)(?:\.write\(|, )/.test(readFileSync(join(root, file), 'utf8')));
  expect(printers).toEqual(['commands/output.ts']);
});

it('nothing outside tests/ imports from it', () => {
  expect(imports.filter(({ target }) => target.startsWith('tests/')).map(told)).toEqual([]);
});

it('the only program at the root is cli.ts', () => {
  expect(sources.filter((file) => folderOf(file) === '')).toEqual(['cli.ts']);
});

it('agents of undici are made by wire/http-agent.ts only, where each must say how its answers are bounded', () => {
  const makers = sources.filter((file) => /\bnew Agent\(/.test(readFileSync(join(root, file), 'utf8')));
  expect(makers).toEqual(['wire/http-agent.ts']);
});

it('requests of undici are sent by wire/http-agent.ts only, which ends them when they are aborted', () => {
  const sent = /\{[^}]*\brequest\b[^}]*\} from 'undici'|\b(?:agent|dispatcher)\.request\(/;
  expect(sources.filter((file) => sent.test(readFileSync(join(root, file), 'utf8')))).toEqual(['wire/http-agent.ts']);
});

it(`no folder has more than ${MAX_FILES} source files`, () => {
  const counts = folders.map((folder) => [folder, sources.filter((file) => folderOf(file) === folder).length] as const);
  expect(counts.filter(([, count]) => count > MAX_FILES)).toEqual([]);
});

/**
 * Groups of files that import each other, directly or through others; imports of types count. Each group is the list of its imports
 * (Tarjan's algorithm).
 */
function importCycles(): readonly (readonly Import[])[] {
  const edges = new Map(sources.map((file) => [withoutSuffix(file), imports.filter((candidate) => candidate.file === file)]));
  const place = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const groups: (readonly string[])[] = [];
  const visit = (file: string): void => {
    place.set(file, place.size);
    lowest.set(file, place.get(file)!);
    stack.push(file);
    for (const { target } of edges.get(file)!) {
      if (!edges.has(target)) continue;
      if (!place.has(target)) visit(target);
      if (stack.includes(target)) lowest.set(file, Math.min(lowest.get(file)!, lowest.get(target)!));
    }
    if (lowest.get(file) === place.get(file)) groups.push(stack.splice(stack.indexOf(file)).sort());
  };
  for (const file of edges.keys()) if (!place.has(file)) visit(file);
  return groups
    .filter((group) => group.length > 1)
    .map((group) => group.flatMap((file) => edges.get(file)!.filter(({ target }) => group.includes(target))));
}
/** The API of the introspection service has ironic-inspector's words. */
const WITH_PROTOCOLS = /^conductor\/introspection\//;
it('the conductor names no protocol of BMCs: hardware types and interfaces declare what it needs to know', () => {
  const files = sources.filter((file) => file.startsWith('conductor/') && !WITH_PROTOCOLS.test(file));
  expect(files.length).toBeGreaterThan(90);
  expect(files.filter((file) => /ipmi|redfish|idrac|snmp/i.test(readFileSync(join(root, file), 'utf8')))).toEqual([]);
});

/** Programs of their own, which start others with all that they have, and the one place from which the server starts programs. */
const STARTERS = /^(?:simulator|ramdisk-agent|demo|scripts|tests)\/|^commands\/demo\.ts$|^wire\/child-processes\.ts$/;
it('the server starts other programs only by wire/child-processes.ts', () => {
  const starting = sources.filter((path) => !STARTERS.test(path));
  expect(starting.length).toBeGreaterThan(300);
  expect(starting.filter((path) => /^import (?!type ).*'node:child_process'/m.test(readFileSync(join(root, path), 'utf8')))).toEqual([]);
});

it('source files have no circular imports', () => {
  expect(importCycles().map((cycle) => cycle.map(told))).toEqual([]);
});

/** The programs below tools/ have packages of their own. */
const scripts = readdirSync(join(root, 'scripts'), { encoding: 'utf8', recursive: true }).filter(
  (path) => /\.(?:mjs|js)$/.test(path) && !path.startsWith('tools/'),
);
it(`no script has more than ${MAX_SCRIPT_LINES} lines, and no folder of scripts more than ${MAX_FILES} of them`, () => {
  expect(scripts.length).toBeGreaterThan(50);
  const linesOf = (path: string): number => readFileSync(join(root, 'scripts', path), 'utf8').split('\n').length - 1;
  expect(scripts.map((path) => [path, linesOf(path)] as const).filter(([, lines]) => lines > MAX_SCRIPT_LINES)).toEqual([]);
  const counts = [...new Set(scripts.map(dirname))].map(
    (folder) => [folder, scripts.filter((path) => dirname(path) === folder).length] as const,
  );
  expect(counts.filter(([, count]) => count > MAX_FILES)).toEqual([]);
});
it('the types of all scripts are checked, and none is hidden from the check', () => {
  const options: unknown = JSON.parse(readFileSync(join(root, 'scripts/tsconfig.json'), 'utf8'));
  expect(options).toMatchObject({
    compilerOptions: { allowJs: true, checkJs: true },
    include: ['**/*.mjs', '**/*.js'],
    exclude: ['tools'],
  });
  expect(scripts.filter((path) => /@ts-(?:ignore|nocheck|expect-error)/.test(readFileSync(join(root, 'scripts', path), 'utf8')))).toEqual(
    [],
  );
});
