/** Lists, creates, edits and deletes resources other than nodes. The API checks the input. */
import type { PagePolicy } from '../../model/rules/page-policies';
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { JsonObject } from '../../model/json';
import { api, userMay, messageOf } from '../state';
import { FORMS } from '../lib/resource-forms';
import { Certificate } from './certificate';
import { ResourceForm } from './resource-form';
import { Scrolled, textOf, timeText, useApi } from './shared';

interface Resource {
  /** The path below /v1, and the name of the list in the response. */
  readonly id: string;
  readonly title: string;
  readonly columns: readonly string[];
  /** The purpose of the resources. */
  readonly about?: string;
  /** The initial value of a new resource. Absent: the page cannot create one. */
  readonly example?: JsonObject;
  /** Shows one of them. */
  readonly view?: (props: { readonly uuid: string; readonly close: () => void }) => JSX.Element;
  readonly policies: Readonly<Record<'list', PagePolicy> & Partial<Record<'create' | 'update' | 'delete', PagePolicy>>>;
}
const policiesOf = <Kind extends string, List extends string>(kind: Kind, list: List) =>
  ({
    list: `${kind}:${list}`,
    create: `${kind}:create`,
    update: `${kind}:update`,
    delete: `${kind}:delete`,
  }) as const;
export const RESOURCES: readonly Resource[] = [
  {
    id: 'images',
    title: 'Images',
    columns: ['name', 'description', 'image_source', 'checksum'],
    policies: policiesOf('image', 'get'),
    example: { name: '', image_source: 'https://' },
    about: 'Names for images, to choose from when machines are deployed. The files stay where they are.',
  },
  {
    id: 'snapshots',
    title: 'Snapshots',
    columns: ['uuid', 'node_name', 'description', 'state', 'progress', 'size', 'public', 'owner', 'last_error', 'created_at'],
    policies: { list: 'snapshot:list', update: 'snapshot:update', delete: 'snapshot:delete' },
    about: 'Saved disks of machines. To deploy one, name it as the image: snapshot://UUID.',
  },
  {
    id: 'erasures',
    title: 'Certificates of erasure',
    columns: ['created_at', 'node_name', 'node_uuid', 'instance_uuid', 'step', 'erased', 'skipped', 'serials', 'uuid'],
    policies: { list: 'erasure:list' },
    view: Certificate,
    about: 'Erased disks, also those of nodes that are gone. Each certificate is signed, and can be checked without this server.',
  },
  {
    id: 'deploy_templates',
    title: 'Deploy templates',
    columns: ['name', 'steps'],
    policies: policiesOf('deploy_template', 'get'),
    example: { name: 'CUSTOM_EXAMPLE', steps: [{ interface: 'bios', step: 'apply_configuration', args: { settings: [] }, priority: 150 }] },
  },
  {
    id: 'runbooks',
    title: 'Runbooks',
    columns: ['name', 'public', 'owner', 'steps'],
    policies: policiesOf('runbook', 'list'),
    example: { name: 'CUSTOM_EXAMPLE', steps: [{ interface: 'deploy', step: 'erase_devices_metadata', args: {}, order: 1 }] },
  },
  {
    id: 'default_configs',
    title: 'Default configs',
    columns: ['resource_class', 'property', 'value', 'node_uuid', 'description', 'steps'],
    policies: policiesOf('default_config', 'get'),
    example: {
      resource_class: 'example',
      steps: [{ interface: 'bios', step: 'apply_configuration', args: { settings: [{ name: 'NAME', value: 'VALUE' }] } }],
    },
    about: 'Default arguments of steps: for a resource class, for a value of a property, or for a node.',
  },
  {
    id: 'inspection_rules',
    title: 'Inspection rules',
    columns: ['description', 'priority', 'phase', 'conditions', 'actions'],
    policies: policiesOf('inspection_rule', 'get'),
    example: {
      description: 'Example',
      conditions: [{ op: 'eq', args: ['{inventory[system_vendor][manufacturer]}', 'ACME'] }],
      actions: [{ op: 'set-attribute', args: ['resource_class', 'acme'] }],
    },
  },
  {
    id: 'allocations',
    title: 'Allocations',
    columns: ['name', 'state', 'resource_class', 'node_uuid', 'last_error'],
    example: { name: 'example', resource_class: 'baremetal' },
    policies: policiesOf('allocation', 'list'),
  },
  {
    id: 'conductors',
    title: 'Conductors',
    columns: ['hostname', 'alive', 'conductor_group', 'drivers', 'updated_at'],
    policies: { list: 'conductor:get' },
  },
];
interface Line {
  readonly interface?: string;
  readonly step?: string;
  readonly priority?: number;
  readonly order?: number;
  readonly op?: string;
  readonly args?: unknown;
}
const hasMembers = (value: unknown): boolean => typeof value === 'object' && value !== null && Object.keys(value).length > 0;
/** A step, a condition or an action in one line. */
function lineOf({ interface: kind, step, priority, order, op, args }: Line): string {
  const more = hasMembers(args) ? ` ${JSON.stringify(args)}` : '';
  if (op !== undefined) return `${op}${more}`;
  return `${kind ?? ''}.${step ?? ''}${priority === undefined ? '' : `, priority ${priority}`}${order === undefined ? '' : `, order ${order}`}${more}`;
}
function Cell({ name, entry }: { readonly name: string; readonly entry: JsonObject }) {
  const value = entry[name];
  if (['steps', 'conditions', 'actions'].includes(name) && Array.isArray(value))
    return (
      <ol class="plain">
        {(value as readonly Line[]).map((line, index) => (
          <li key={index}>{lineOf(line)}</li>
        ))}
      </ol>
    );
  if (name === 'checksum') {
    const { image_os_hash_algo: algorithm, image_os_hash_value: hash, image_checksum: checksum } = entry;
    return (
      <>
        {[textOf(checksum), typeof algorithm === 'string' ? `${algorithm} ${textOf(hash).slice(0, 16)}…` : ''].filter(Boolean).join(', ')}
      </>
    );
  }
  if (Array.isArray(value)) return <>{value.map(textOf).join(', ')}</>;
  return <>{name.endsWith('_at') && typeof value === 'string' ? timeText(value) : textOf(value)}</>;
}
/** Their lists show all fields. */
const WITHOUT_DETAIL = ['allocations', 'images', 'snapshots', 'erasures'];
export function Resources({ id }: { readonly id: string }) {
  const { title, columns, example, policies, about, view: View } = RESOURCES.find((resource) => resource.id === id)!;
  const isEditable = policies.update !== undefined || policies.delete !== undefined;
  const [again, setAgain] = useState(0);
  /** The entry that the user edits; null: none. */
  const [edited, setEdited] = useState<JsonObject | null>(null);
  const [shown, setShown] = useState<string | null>(null);
  const [notice, setNotice] = useState('');
  const { data, error } = useApi(`v1/${id}${WITHOUT_DETAIL.includes(id) ? '' : '?detail=true'}`, again);
  const entries = (data?.[id] as readonly JsonObject[] | undefined) ?? [];
  const mayDo = (operation: 'create' | 'update' | 'delete', entry: JsonObject = {}): boolean =>
    policies[operation] !== undefined && userMay(policies[operation], { owner: textOf(entry['owner']) });
  const attempt = async (work: () => Promise<unknown>, done: string): Promise<void> => {
    try {
      await work();
      setEdited(null);
      setNotice(done);
      setAgain((count) => count + 1);
    } catch (problem) {
      setNotice(messageOf(problem));
    }
  };
  return (
    <>
      <h1>{title}</h1>
      {about && <p class="quiet">{about}</p>}
      <p>
        {example && mayDo('create') && (
          <button class="first" onClick={() => setEdited(example)}>
            New
          </button>
        )}{' '}
        <span role="status">{error ?? notice}</span>
      </p>
      {edited && (
        <ResourceForm
          key={textOf(edited['uuid'])}
          {...{ id, entry: edited }}
          {...(FORMS[id] ? { fields: FORMS[id] } : {})}
          cancel={() => setEdited(null)}
          saved={() => void attempt(async () => {}, 'Saved')}
        />
      )}
      {View && shown !== null && <View key={shown} uuid={shown} close={() => setShown(null)} />}
      {entries.length > 0 && (
        <Scrolled label={title}>
          <table>
            <thead>
              <tr>
                {columns.map((name) => (
                  <th key={name} scope="col">
                    {name.replaceAll('_', ' ')}
                  </th>
                ))}
                {(isEditable || View) && <th scope="col">Actions</th>}
              </tr>
            </thead>
            <tbody>
              {entries.map((entry, index) => (
                <tr key={textOf(entry['uuid'] ?? index)}>
                  {columns.map((name) => (
                    <td key={name}>
                      <Cell name={name} entry={entry} />
                    </td>
                  ))}
                  {View && (
                    <td>
                      <button onClick={() => setShown(textOf(entry['uuid']))}>Show</button>
                    </td>
                  )}
                  {isEditable && (
                    <td>
                      {mayDo('update', entry) && <button onClick={() => setEdited(entry)}>Edit</button>}{' '}
                      {mayDo('delete', entry) && (
                        <button
                          class="danger"
                          onClick={() => {
                            if (confirm(`Delete ${textOf(entry['name'] ?? entry['uuid'])}?`))
                              void attempt(() => api.send('DELETE', `v1/${id}/${textOf(entry['uuid'])}`), 'Deleted');
                          }}
                        >
                          Delete
                        </button>
                      )}
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </Scrolled>
      )}
      {typeof data?.['next'] === 'string' && <p>The first {entries.length} only. The API lists the others.</p>}
      {data !== undefined && entries.length === 0 && <p>None.</p>}
    </>
  );
}
