import type { Knex } from 'knex';

type Row = 'NEW' | 'OLD';
/** Not an SQL function, because passing the row would load its out-of-line values, which is expensive. */
const note = (row: Row, kind: string, payload: string): string =>
  `INSERT INTO events (at, node_uuid, node_name, owner, lessee, kind, payload)
   VALUES (coalesce(${row}.updated_at, ${row}.created_at), ${row}.uuid, ${row}.name, ${row}.owner, ${row}.lessee, '${kind}',
     json_build_object(${payload}));`;
const trigger = (name: string, when: string, body: string): string =>
  `CREATE OR REPLACE FUNCTION note_${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} RETURN NULL; END $$;
   CREATE TRIGGER ${name} AFTER ${when} EXECUTE FUNCTION note_${name}();`;

/** The condition of a change and the payload of its event. Nullable columns need IS DISTINCT FROM. */
const CHANGES: readonly (readonly [kind: string, changed: string, payload: string])[] = [
  [
    'state',
    'OLD.provision_state <> NEW.provision_state OR OLD.target_provision_state IS DISTINCT FROM NEW.target_provision_state',
    `'provision_state', NEW.provision_state, 'target_provision_state', NEW.target_provision_state, 'previous_provision_state', OLD.provision_state`,
  ],
  [
    'power',
    'OLD.power_state IS DISTINCT FROM NEW.power_state OR OLD.target_power_state IS DISTINCT FROM NEW.target_power_state',
    `'power_state', NEW.power_state, 'target_power_state', NEW.target_power_state, 'previous_power_state', OLD.power_state`,
  ],
  [
    'maintenance',
    'OLD.maintenance <> NEW.maintenance OR OLD.fault IS DISTINCT FROM NEW.fault',
    `'maintenance', NEW.maintenance, 'maintenance_reason', NEW.maintenance_reason, 'fault', NEW.fault`,
  ],
  ['error', 'OLD.last_error IS DISTINCT FROM NEW.last_error AND NEW.last_error IS NOT NULL', `'last_error', NEW.last_error`],
];
/** The names of a flow's column, list and index contain its name. */
const FLOWS = ['clean', 'deploy', 'service'] as const;
const stepTrigger = (flow: (typeof FLOWS)[number]): string => {
  const [steps, place, step] = [
    `NEW.driver_internal_info -> '${flow}_steps'`,
    `NEW.driver_internal_info -> '${flow}_step_index'`,
    `NEW.${flow}_step`,
  ];
  const of = `'of', jsonb_array_length(${steps})`;
  return trigger(
    `nodes_${flow}_step`,
    `UPDATE OF ${flow}_step ON nodes FOR EACH ROW WHEN (OLD.${flow}_step::text <> NEW.${flow}_step::text)`,
    `IF jsonb_typeof(${steps}) = 'array' AND jsonb_typeof(${place}) = 'number' THEN
       IF ${step} ->> 'step' IS NULL THEN
         ${note('NEW', 'progress', `'flow', '${flow}', 'done', ${place}, ${of}`)}
       ELSE
         ${note('NEW', 'step', `'flow', '${flow}', 'step', (${step} ->> 'interface') || '.' || (${step} ->> 'step'), 'number', (${place})::integer + 1, ${of}`)}
       END IF;
     END IF;`,
  );
};

/**
 * Events of nodes, written in the same transaction as the change (docs/reference/events.md). Triggers write them, so that no statement can
 * omit them. They fire only for the columns that events contain. store/tables/events.ts explains the column `transaction`.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE events (
      transaction xid8 NOT NULL DEFAULT pg_current_xact_id(),
      id bigserial,
      at timestamptz NOT NULL,
      node_uuid text COLLATE "C" NOT NULL,
      node_name text COLLATE "C",
      owner text COLLATE "C",
      lessee text COLLATE "C",
      kind text COLLATE "C" NOT NULL,
      payload json NOT NULL,
      CONSTRAINT events_pkey PRIMARY KEY (transaction, id)
    );
    CREATE TABLE events_trimmed (
      single boolean CONSTRAINT events_trimmed_pkey PRIMARY KEY DEFAULT true CONSTRAINT events_trimmed_once CHECK (single),
      transaction xid8 NOT NULL,
      id bigint NOT NULL
    );
    ${trigger('nodes_made', 'INSERT ON nodes FOR EACH ROW', note('NEW', 'created', `'driver', NEW.driver, 'provision_state', NEW.provision_state`))}
    ${trigger('nodes_gone', 'DELETE ON nodes FOR EACH ROW', note('OLD', 'deleted', `'driver', OLD.driver, 'provision_state', OLD.provision_state`))}
    ${trigger(
      'nodes_changed',
      `UPDATE OF provision_state, target_provision_state, power_state, target_power_state, maintenance, fault, last_error
       ON nodes FOR EACH ROW WHEN (${CHANGES.map(([, changed]) => `(${changed})`).join(' OR ')})`,
      CHANGES.map(([kind, changed, payload]) => `IF ${changed} THEN ${note('NEW', kind, payload)} END IF;`).join('\n'),
    )}
    ${FLOWS.map(stepTrigger).join('\n')}
  `);
}
