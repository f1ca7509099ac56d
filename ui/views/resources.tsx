/** Resources besides nodes: list, make, edit and delete. The API checks what is written. */
import { useState } from 'preact/hooks';
import { api, may, messageOf } from '../state';
import { FORMS } from '../lib/resource-forms';
import { ResourceForm } from './resource-form';
import { Scrolled, textOf, useApi, type Value } from './shared';

interface Resource {
  /** The path below /v1, and the member of the list. */
  readonly id: string;
  readonly title: string;
  readonly columns: readonly string[];
  /** What a new one begins with. Absent: none can be made here. */
  readonly example?: Value;
  readonly policies: Readonly<Record<'list', string> & Partial<Record<'create' | 'update' | 'delete', string>>>;
}
const policiesOf = (kind: string, list: string) => ({
  ...{ list: `${kind}:${list}`, create: `${kind}:create` },
  ...{ update: `${kind}:update`, delete: `${kind}:delete` },
});
export const RESOURCES: readonly Resource[] = [
  {
    ...{ id: 'deploy_templates', title: 'Deploy templates', columns: ['name', 'steps'], policies: policiesOf('deploy_template', 'get') },
    example: { name: 'CUSTOM_EXAMPLE', steps: [{ interface: 'bios', step: 'apply_configuration', args: { settings: [] }, priority: 150 }] },
  },
  {
    ...{ id: 'runbooks', title: 'Runbooks', columns: ['name', 'public', 'owner', 'steps'], policies: policiesOf('runbook', 'list') },
    example: { name: 'CUSTOM_EXAMPLE', steps: [{ interface: 'deploy', step: 'erase_devices_metadata', args: {}, order: 1 }] },
  },
  {
    ...{ id: 'inspection_rules', title: 'Inspection rules', columns: ['description', 'priority', 'phase', 'conditions', 'actions'] },
    policies: policiesOf('inspection_rule', 'list_all'),
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
    ...{ id: 'conductors', title: 'Conductors', columns: ['hostname', 'alive', 'conductor_group', 'drivers', 'updated_at'] },
    policies: { list: 'conductor:get' },
  },
];
export function Resources({ id }: { readonly id: string }) {
  const { title, columns, example, policies } = RESOURCES.find((resource) => resource.id === id)!;
  const [again, setAgain] = useState(0);
  /** What is edited; null: nothing. */
  const [edited, setEdited] = useState<Value | null>(null);
  const [notice, setNotice] = useState('');
  const { data, error } = useApi(`v1/${id}${id === 'allocations' ? '' : '?detail=true'}`, again);
  const entries = (data?.[id] as readonly Value[] | undefined) ?? [];
  const mayDo = (operation: 'create' | 'update' | 'delete', entry: Value = {}): boolean =>
    policies[operation] !== undefined && may(policies[operation], { owner: textOf(entry['owner']) });
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
      <p>
        {example && mayDo('create') && <button onClick={() => setEdited(example)}>New</button>} <span role="status">{error ?? notice}</span>
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
      <Scrolled label={title}>
        <table>
          <thead>
            <tr>
              {columns.map((name) => (
                <th key={name} scope="col">
                  {name.replaceAll('_', ' ')}
                </th>
              ))}
              {example && <th scope="col">Actions</th>}
            </tr>
          </thead>
          <tbody>
            {entries.map((entry, index) => (
              <tr key={textOf(entry['uuid'] ?? index)}>
                {columns.map((name) => (
                  <td key={name}>{textOf(entry[name])}</td>
                ))}
                {example && (
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
      {data !== undefined && entries.length === 0 && <p>None.</p>}
    </>
  );
}
