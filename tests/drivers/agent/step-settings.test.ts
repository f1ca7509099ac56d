import { agentStepProblem } from '../../../drivers/agent/step-settings';
import type { JsonObject } from '../../../model/records';
import { testTask } from '../../support/task';

const OURS = { hardware_manager_version: { BloomeryHardwareManager: '4' } };
const THEIRS = { hardware_manager_version: { generic_hardware_manager: '1.2' } };
function problem(
  step: string,
  node: { readonly info?: JsonObject; readonly internal?: JsonObject; readonly properties?: JsonObject },
  args?: JsonObject,
) {
  const { info = {}, internal = {}, properties = {} } = node;
  const { task } = testTask({ node: { driver_info: info, driver_internal_info: internal, properties } });
  return agentStepProblem(task.node, { interface: 'deploy', step, ...(args ? { args } : {}) });
}

it.each<[string, JsonObject, string]>([
  ['burnin_cpu', { agent_burnin_cpu_timeout: 'soon' }, 'driver_info/agent_burnin_cpu_timeout must be a time'],
  ['burnin_cpu', { agent_burnin_cpu_cpu: -1 }, 'driver_info/agent_burnin_cpu_cpu must be a number'],
  ['burnin_memory', { 'agent_burnin_vm_vm-bytes': 'all' }, 'driver_info/agent_burnin_vm_vm-bytes must be'],
  ['burnin_disk', { agent_burnin_fio_disk_loops: 0 }, 'driver_info/agent_burnin_fio_disk_loops must be'],
  ['burnin_gpu', { agent_burnin_gpu_memory: 'x' }, 'driver_info/agent_burnin_gpu_memory must be'],
  ['burnin_network', {}, 'fio (network): dynamic pairing config is missing agent_burnin_fio_network_pairing_backend_url'],
  ['burnin_network', { agent_burnin_fio_network_config: { role: 'boss', partner: 'x' } }, 'fio (network) found an unknown role: boss'],
])('%s with %j is refused, whatever the agent is', (step, info, text) => {
  for (const internal of [{}, OURS, THEIRS]) expect(problem(step, { info, internal })).toContain(text);
});
it.each<[string, JsonObject]>([
  ['burnin_cpu', { agent_burnin_cpu_timeout: '30d' }],
  ['burnin_cpu', { agent_burnin_cpu_timeout: '1y', agent_burnin_cpu_outputfile: 'burnin of cpu' }],
  ['burnin_memory', { agent_burnin_vm_vm: 5000 }],
  ['burnin_disk', { agent_burnin_fio_disk_loops: 5000 }],
  ['burnin_network', { agent_burnin_fio_network_pairing_backend_url: 'zookeeper://z', agent_burnin_fio_network_pairing_group_name: 'a b' }],
])('%s with %j is refused for our agent alone', (step, info) => {
  for (const internal of [{}, THEIRS]) expect(problem(step, { info, internal })).toBeUndefined();
  expect(problem(step, { info, internal: OURS })).toMatch(/^driver_info\/agent_burnin_/);
});
it('the value of a step counts in the place of driver_info', () => {
  const info = { agent_burnin_cpu_timeout: 'soon' };
  expect(problem('burnin_cpu', { info }, { timeout: 60 })).toBeUndefined();
  expect(problem('burnin_cpu', { info }, { cpu: 1 })).toContain('agent_burnin_cpu_timeout');
});
it('a URL, which may have a password, is not repeated', () => {
  const info = { agent_burnin_fio_network_pairing_backend_url: 'etcd3+http://u:hunter2@h/ x' };
  expect(problem('burnin_network', { info })).toBe('driver_info/agent_burnin_fio_network_pairing_backend_url must be a URL');
});
it('files for an instance are those of the node and of the step', () => {
  const file = { path: '/etc/x', content: 'YQ==' };
  expect(problem('inject_files', { properties: { inject_files: [file] } }, { files: [file] })).toBeUndefined();
  expect(problem('inject_files', { properties: { inject_files: 'x' } })).toContain('node property must be a list, got str');
  expect(problem('inject_files', {}, { files: [{ ...file, mode: 'rw' }] })).toContain('mode must be a number');
});
it('other steps have no such settings', () => expect(problem('erase_devices', {})).toBeUndefined());
