import { readCpuBurnIn, readDiskBurnIn, readGpuBurnIn, readMemoryBurnIn, readNetworkBurnIn } from '../../../model/agent/burnin';
import type { JsonObject } from '../../../model/records';

const READERS: Readonly<Record<string, (info: JsonObject) => unknown>> = {
  burnin_cpu: readCpuBurnIn,
  burnin_gpu: readGpuBurnIn,
  burnin_disk: readDiskBurnIn,
  burnin_memory: readMemoryBurnIn,
  burnin_network: readNetworkBurnIn,
};
const partner = (config: unknown): JsonObject => ({ agent_burnin_fio_network_config: config });

it('the defaults are those of ironic-python-agent', () => {
  expect(readCpuBurnIn({})).toEqual({ workers: 0, seconds: 86_400, outputFile: undefined });
  expect(readMemoryBurnIn({})).toEqual({ workers: 0, seconds: 86_400, outputFile: undefined, memory: { part: 0.98 } });
  expect(readDiskBurnIn({})).toEqual({ loops: 4, seconds: 0, outputFile: undefined, smartTest: false });
  expect(readGpuBurnIn({})).toEqual({ folder: '/opt/gpu-burn', seconds: 86_400, memory: '95%', count: 0 });
  expect(readNetworkBurnIn(partner({ role: 'reader', partner: 'b.example' }))).toEqual({
    seconds: 21_600,
    outputFile: undefined,
    patience: 3600,
    partner: { role: 'reader', host: 'b.example' },
  });
  expect(readNetworkBurnIn({ agent_burnin_fio_network_pairing_backend_url: 'etcd3+http://e:2379' })).toMatchObject({
    patience: 900,
    partner: { backendUrl: 'etcd3+http://e:2379', group: 'ironic.network-burnin' },
  });
});

it.each<[string, JsonObject, object]>([
  ['burnin_cpu', { agent_burnin_cpu_cpu: '4', agent_burnin_cpu_timeout: '2h' }, { workers: 4, seconds: 7200 }],
  [
    'burnin_cpu',
    { agent_burnin_cpu_timeout: 90, agent_burnin_cpu_outputfile: '/var/log/cpu.json' },
    { seconds: 90, outputFile: '/var/log/cpu.json' },
  ],
])('%s takes %j', (_, info, expected) => expect(readCpuBurnIn(info)).toMatchObject(expected));

it.each<[unknown, object]>([
  ['50%', { part: 0.5 }],
  ['512M', { bytes: 512 * 2 ** 20 }],
  ['4g', { bytes: 4 * 2 ** 30 }],
  [1048576, { bytes: 1048576 }],
])('memory of %j', (given, memory) => expect(readMemoryBurnIn({ 'agent_burnin_vm_vm-bytes': given })).toMatchObject({ memory }));

it('a disk burn-in with a time and a self test', () => {
  const info = { agent_burnin_fio_disk_loops: '2', agent_burnin_fio_disk_runtime: '1d', agent_burnin_fio_disk_smart_test: 'True' };
  expect(readDiskBurnIn(info)).toEqual({ loops: 2, seconds: 86_400, outputFile: undefined, smartTest: true });
});

it.each<[string, JsonObject, string]>([
  ['burnin_cpu', { agent_burnin_cpu_timeout: 0 }, 'driver_info/agent_burnin_cpu_timeout must be a time from 1 to 2073600 seconds'],
  ['burnin_cpu', { agent_burnin_cpu_timeout: '9999d' }, 'driver_info/agent_burnin_cpu_timeout must be'],
  ['burnin_cpu', { agent_burnin_cpu_cpu: -1 }, 'driver_info/agent_burnin_cpu_cpu must be a number from 0 to 4096, not -1'],
  ['burnin_cpu', { agent_burnin_cpu_cpu: {} }, 'driver_info/agent_burnin_cpu_cpu must be'],
  ['burnin_cpu', { agent_burnin_cpu_outputfile: '../etc/passwd' }, 'driver_info/agent_burnin_cpu_outputfile must be the path of a file'],
  ['burnin_cpu', { agent_burnin_cpu_outputfile: '/var/../etc/shadow' }, 'driver_info/agent_burnin_cpu_outputfile'],
  ['burnin_memory', { agent_burnin_vm_outputfile: '/dev/sda' }, 'driver_info/agent_burnin_vm_outputfile'],
  ['burnin_disk', { agent_burnin_fio_disk_outputfile: '/proc/sysrq-trigger' }, 'driver_info/agent_burnin_fio_disk_outputfile'],
  ['burnin_network', { agent_burnin_fio_network_outputfile: '/sys/power/state' }, 'driver_info/agent_burnin_fio_network_outputfile'],
  [
    'burnin_disk',
    { agent_burnin_fio_disk_smart_test: 'constructor' },
    'driver_info/agent_burnin_fio_disk_smart_test must be true or false',
  ],
  ['burnin_gpu', { agent_burnin_gpu_install_dir: '/opt/../etc' }, 'driver_info/agent_burnin_gpu_install_dir must be'],
  ['burnin_memory', { 'agent_burnin_vm_vm-bytes': '101%' }, 'driver_info/agent_burnin_vm_vm-bytes must be'],
  ['burnin_memory', { 'agent_burnin_vm_vm-bytes': 'all' }, 'driver_info/agent_burnin_vm_vm-bytes must be'],
  ['burnin_disk', { agent_burnin_fio_disk_loops: 0 }, 'driver_info/agent_burnin_fio_disk_loops must be a number from 1 to 1000'],
  ['burnin_disk', { agent_burnin_fio_disk_smart_test: 'maybe' }, 'driver_info/agent_burnin_fio_disk_smart_test must be true or false'],
  ['burnin_gpu', { agent_burnin_gpu_install_dir: 'gpu; rm -rf /' }, 'driver_info/agent_burnin_gpu_install_dir must be'],
  ['burnin_gpu', { agent_burnin_gpu_memory: '95% --help' }, 'driver_info/agent_burnin_gpu_memory must be'],
  ['burnin_network', {}, 'fio (network): dynamic pairing config is missing agent_burnin_fio_network_pairing_backend_url'],
  ['burnin_network', partner({ role: 'boss', partner: 'x' }), 'fio (network) found an unknown role: boss'],
  ['burnin_network', partner({ role: 'writer' }), 'fio (network) failed to find partner'],
  ['burnin_network', partner({ role: 'writer', partner: '-o x' }), 'driver_info/agent_burnin_fio_network_config/partner must be'],
  ['burnin_network', partner('writer'), 'driver_info/agent_burnin_fio_network_config must be an object'],
])('%s with %j is refused', (step, info, text) => expect(() => READERS[step]!(info)).toThrow(text));
