/** Tests of the storage interface `cinder` that run with a Cinder in memory and with a real one. */
import { cinderStorage } from '../../drivers/storage/cinder';
import type { Task } from '../../drivers/interfaces';
import type { Options } from '../../config/options';
import type { JsonObject, NodeRecord, VolumeConnectorRecord, VolumeTargetRecord } from '../../model/records';
import { ServiceError, type ServiceClient } from '../../wire/keystone/services';
import { servicesOf } from './services';
import { NODE_UUID, testTask, type TestTask } from './task';

interface CinderVolume {
  readonly status: string;
  readonly attachments: number;
  readonly metadata: Readonly<Record<string, string>>;
}
export interface Cinder {
  readonly client: ServiceClient;
  /** An available volume. */
  create(): Promise<string>;
  look(id: string): Promise<CinderVolume>;
}

export const IQN: VolumeConnectorRecord = { type: 'iqn', connector_id: 'iqn.2017-08.org.example:node' } as VolumeConnectorRecord;
export const targetOf = (volumeId: string, changes: Partial<VolumeTargetRecord> = {}): VolumeTargetRecord => ({
  id: 1,
  uuid: `7d9a3c0e-3b1c-4f37-8a51-3f6b5a0c9d0${changes.boot_index ?? 0}`,
  node_uuid: NODE_UUID,
  volume_type: 'iscsi',
  volume_id: volumeId,
  boot_index: 0,
  properties: {},
  extra: {},
  created_at: '2026-02-03T04:05:06.000000+00:00',
  updated_at: null,
  revision: 1,
  ...changes,
});

class Died extends Error {}
export interface Made extends TestTask {
  /** The actions of requests and the writes to the database so far, in order. */
  readonly done: string[];
}
/** Called before and after each request and each write. */
type Event = (what: string, when: 'before' | 'after', made: Made) => void;

const nameOf = (path: string, body: unknown): string =>
  path.endsWith('/action') ? Object.keys(body as object)[0]! : path.endsWith('/metadata') ? 'metadata' : 'show';

export function cinderTask(
  { client }: Pick<Cinder, 'client'>,
  targets: readonly VolumeTargetRecord[],
  given: {
    readonly node?: Partial<NodeRecord>;
    readonly internal?: JsonObject;
    readonly event?: Event;
    readonly options?: Partial<Options>;
    readonly connectors?: readonly VolumeConnectorRecord[];
  } = {},
): Made {
  const done: string[] = [];
  const around = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    given.event?.(what, 'before', made);
    done.push(what);
    const result = await work();
    given.event?.(what, 'after', made);
    return result;
  };
  const measured: ServiceClient = {
    ...client,
    request: (path, call) => around(nameOf(path, call?.body), () => client.request(path, call)),
  };
  const base = testTask({
    node: { provision_state: 'deploying', driver_internal_info: given.internal ?? {}, ...given.node },
    targets,
    connectors: given.connectors ?? [IQN],
    options: { 'cinder.action_retry_interval': 5, ...given.options },
    connections: { services: { ...servicesOf(), cinder: measured } },
  });
  const { volumes } = base.task;
  const task: Task = Object.create(base.task, {
    saveInternal: { value: (keys: JsonObject) => around('save on the node', () => base.task.saveInternal(keys)) },
    volumes: {
      value: {
        ...volumes,
        saveProperties: (uuid: string, properties: JsonObject) =>
          around('save on the target', () => volumes.saveProperties(uuid, properties)),
      },
    },
  }) as Task;
  const made: Made = { ...base, task, done };
  return made;
}
/** The same node, which another conductor has taken over. */
const taken = (cinder: Cinder, before: Made, event?: Event): Made =>
  cinderTask(cinder, before.volumeTargets(), { internal: before.node().driver_internal_info, ...(event ? { event } : {}) });

const attach = (made: Made): Promise<void> => cinderStorage.attachVolumes!(made.task);
const detach = (made: Made): Promise<void> => cinderStorage.detachVolumes!(made.task);
const FREE = { status: 'available', attachments: 0 };
const USED = { status: 'in-use', attachments: 1 };

/** The conductor ends at this event: nothing that it does afterwards has an effect. */
const endsAt =
  (index: number, when: 'before' | 'after'): Event =>
  (_what, now, made) => {
    const count = made.done.length - (now === 'after' ? 1 : 0);
    if (now !== when || count !== index) return;
    made.stop(new Died());
    throw new Died();
  };
const ATTACHING = [
  'show',
  'save on the node',
  'os-reserve',
  'os-initialize_connection',
  'os-attach',
  'save on the target',
  'save on the node',
  'metadata',
];
const DETACHING = ['show', 'os-begin_detaching', 'os-terminate_connection', 'os-detach', 'metadata'];
const ENDS = ['before', 'after'] as const;
const every = (steps: readonly string[]) => steps.flatMap((what, index) => ENDS.map((when) => [when, what, index] as const));

export function testCinder(open: () => Cinder): void {
  const attached = async (): Promise<{ readonly id: string; readonly made: Made }> => {
    const id = await open().create();
    const made = cinderTask(open(), [targetOf(id)]);
    await attach(made);
    return { id, made };
  };

  it('the storage interface attaches a volume, saves its connection properties, and detaches it', async () => {
    const { id, made } = await attached();
    expect(made.done).toEqual(ATTACHING);
    const volume = await open().look(id);
    expect(volume).toMatchObject(USED);
    expect(JSON.parse(volume.metadata[`ironic_node_${NODE_UUID}`]!)).toMatchObject({ instance_uuid: NODE_UUID, last_action: 'attached' });
    expect(made.volumeTargets()[0]!.properties).toMatchObject({
      target_iqn: `iqn.2026-01.org.example:${id}`,
      target_portal: '192.0.2.5:3260',
      target_lun: 1,
      auth_method: 'CHAP',
      auth_username: NODE_UUID,
      auth_password: 'chap-secret',
      volume_id: id,
      ironic_volume_uuid: id,
    });
    expect(made.node().driver_internal_info).toEqual({});
    // What is attached already is left alone, with its properties.
    const again = cinderTask(open(), [targetOf(id, { properties: { of: 'another service' } })]);
    await attach(again);
    expect(again.done).toEqual(['show']);
    expect(again.volumeTargets()[0]!.properties).toEqual({ of: 'another service' });
    const end = taken(open(), made);
    await detach(end);
    expect(end.done).toEqual(DETACHING);
    const after = await open().look(id);
    expect(after).toMatchObject(FREE);
    expect(JSON.parse(after.metadata[`ironic_node_${NODE_UUID}`]!)).toMatchObject({ last_action: 'detached' });
    await detach(end);
    expect(end.done.slice(DETACHING.length)).toEqual(['show']);
  });

  it.each(every(ATTACHING))(
    'the storage interface completes or undoes an attachment whose conductor died %s "%s" (event %i)',
    async (when, _what, index) => {
      const [id, other] = [await open().create(), await open().create()];
      for (const [volume, end] of [
        [id, attach],
        [other, detach],
      ] as const) {
        const first = cinderTask(open(), [targetOf(volume)], { event: endsAt(index, when) });
        await expect(attach(first)).rejects.toBeInstanceOf(Died);
        const second = taken(open(), first);
        await end(second);
        expect(await open().look(volume)).toMatchObject(end === attach ? USED : FREE);
        if (end === attach) expect(second.volumeTargets()[0]!.properties).toMatchObject({ target_lun: 1, auth_password: 'chap-secret' });
        expect(second.node().driver_internal_info).toEqual({});
      }
    },
  );

  it.each(every(DETACHING))(
    'the storage interface completes a detachment whose conductor died %s "%s" (event %i)',
    async (when, _what, index) => {
      const { id, made } = await attached();
      await expect(detach(taken(open(), made, endsAt(index, when)))).rejects.toBeInstanceOf(Died);
      await detach(taken(open(), made));
      expect(await open().look(id)).toMatchObject(FREE);
    },
  );

  it.each(['show', 'os-reserve', 'os-initialize_connection', 'os-attach'])(
    'the storage interface leaves no volume attached when "%s" fails for the second one',
    async (failing) => {
      const [first, second] = [await open().create(), await open().create()];
      let fails = false;
      const made: Made = cinderTask(open(), [targetOf(first), targetOf(second, { boot_index: 1 })], {
        event: (what, when) => {
          // At the second volume, once.
          if (when === 'after' && what === 'metadata') fails = true;
          if (when !== 'before' || what !== failing || !fails) return;
          fails = false;
          throw new ServiceError('cinder', 'failing', 'HTTP status 500: it broke', 500);
        },
      });
      await expect(attach(made)).rejects.toMatchObject({ name: 'StorageError', message: expect.stringContaining('it broke') as string });
      for (const id of [first, second]) expect(await open().look(id)).toMatchObject(FREE);
      expect(made.node().driver_internal_info).toEqual({});
    },
  );

  it('the storage interface does not attach or detach a volume that another client has reserved', async () => {
    const id = await open().create();
    await open().client.request(`/volumes/${id}/action`, { method: 'POST', body: { 'os-reserve': null } });
    const made = cinderTask(open(), [targetOf(id)]);
    await expect(attach(made)).rejects.toMatchObject({
      name: 'StorageError',
      message: expect.stringContaining(`Failed to reserve volume ${id} for node ${NODE_UUID}: `) as string,
    });
    expect(await open().look(id)).toMatchObject({ status: 'attaching' });
    await detach(made);
    expect(await open().look(id)).toMatchObject({ status: 'attaching' });
  });

  it('the storage interface detaches nothing for a volume that does not exist, and does not attach it', async () => {
    const made = cinderTask(open(), [targetOf('5b7b9a3e-1d0f-4b0c-9b0e-3f6f0c2f8a99')]);
    await detach(made);
    expect(made.done).toEqual(['show']);
    await expect(attach(made)).rejects.toThrow(/^Failed to get volume 5b7b9a3e-1d0f-4b0c-9b0e-3f6f0c2f8a99 from cinder for node/);
  });
}
