/** Takes machines from enroll to active through the API, all at the same time, and shows their progress. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client, ShownNode } from './client';
import type { Display } from './progress';

export interface DemoMachine {
  readonly name: string;
  readonly driver: string;
  readonly driverInfo: Readonly<Record<string, unknown>>;
  readonly macs: readonly string[];
}
export interface DemoImage {
  readonly url: string;
  readonly sha256: string;
  readonly format: 'raw' | 'qcow2';
}

const FAILED = /failed$|^error$/;

/** Waits until the node is in `state`. @throws the node's last error when it fails */
async function reach(client: Client, uuid: string, state: string, deadline: number): Promise<void> {
  for (;;) {
    const node = await client.request<ShownNode>('GET', `/v1/nodes/${uuid}`);
    if (node.provision_state === state) return;
    if (FAILED.test(node.provision_state) || (node.provision_state === 'enroll' && node.last_error !== null))
      throw new Error(`${node.name} is in state ${node.provision_state}: ${node.last_error ?? 'no reason given'}`);
    if (Date.now() > deadline) throw new Error(`${node.name} is still in state ${node.provision_state}, on its way to ${state}`);
    await delay(200);
  }
}

async function walkOne(client: Client, machine: DemoMachine, image: DemoImage, deadline: number): Promise<void> {
  const { uuid } = await client.request<ShownNode>('POST', '/v1/nodes', {
    name: machine.name,
    driver: machine.driver,
    driver_info: machine.driverInfo,
    properties: { capabilities: 'boot_mode:bios' },
  });
  for (const address of machine.macs) await client.request('POST', '/v1/ports', { node_uuid: uuid, address });
  const verbs: readonly (readonly [target: string, state: string])[] = [
    ['manage', 'manageable'],
    ['inspect', 'manageable'],
    ['provide', 'available'],
    ['active', 'active'],
  ];
  for (const [target, state] of verbs) {
    const deploying = target === 'active';
    if (deploying)
      await client.request('PATCH', `/v1/nodes/${uuid}`, [
        {
          op: 'replace',
          path: '/instance_info',
          value: {
            image_source: image.url,
            image_os_hash_algo: 'sha256',
            image_os_hash_value: image.sha256,
            image_disk_format: image.format,
          },
        },
      ]);
    const configdrive = { meta_data: { name: machine.name, uuid }, user_data: `#cloud-config\nhostname: ${machine.name}\n` };
    await client.request('PUT', `/v1/nodes/${uuid}/states/provision`, { target, configdrive: deploying ? configdrive : undefined });
    await reach(client, uuid, state, deadline);
  }
}

/**
 * @param deadline milliseconds since the epoch
 * @param stopped ends the walk when it resolves
 * @returns whether all machines are active
 * @throws when a machine fails, or is not active by the deadline
 */
export async function walk(
  client: Client,
  machines: readonly DemoMachine[],
  image: DemoImage,
  display: Display,
  deadline: number,
  stopped: Promise<void>,
): Promise<boolean> {
  const names = new Set(machines.map(({ name }) => name));
  const show = async (): Promise<void> => {
    const { nodes } = await client.request<{ nodes: readonly ShownNode[] }>('GET', '/v1/nodes/detail');
    display.show(nodes.filter(({ name }) => names.has(name)));
  };
  let walking = true;
  const shown = (async () => {
    while (walking) {
      await show();
      await delay(250);
    }
    await show();
    // If the server does not answer any more, the walk below reports that.
  })().catch(() => {});
  try {
    const walked = Promise.all(machines.map((machine) => walkOne(client, machine, image, deadline)));
    return await Promise.race([walked.then(() => true), stopped.then(() => false)]);
  } finally {
    walking = false;
    await shown;
  }
}
