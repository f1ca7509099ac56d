/**
 * Events of alerts, by statement: one that raises or clears many alerts of a node reads the node's alerts once. An alert of a recorder says
 * so, since it ends with the instance: `begun_at` is the time of the instance's first token, which may get others later.
 */
import type { Knex } from 'knex';

/** @param changes columns of the changed rows, and `change`, the word for what happened to them */
const events = (changes: string): string => `
  WITH changes AS MATERIALIZED (${changes}), nodes_of_changes AS (
    SELECT nodes.uuid, nodes.name, nodes.owner, nodes.lessee, worst.health
    FROM nodes, LATERAL (
      SELECT CASE WHEN bool_or(severity = 'critical') THEN 'critical' WHEN count(*) > 0 THEN 'warning' ELSE 'ok' END AS health
      FROM health_alerts
      WHERE node_uuid = nodes.uuid AND cleared_at IS NULL
        AND (masked_until IS NULL OR masked_until <= (SELECT max(updated_at) FROM changes))
    ) AS worst
    WHERE nodes.uuid IN (SELECT node_uuid FROM changes)
  )
  INSERT INTO events (at, node_uuid, node_name, owner, lessee, kind, payload)
  SELECT changes.updated_at, node.uuid, node.name, node.owner, node.lessee, 'health', json_build_object(
    'health', node.health, 'change', changes.change, 'alert', changes.uuid, 'source', changes.source, 'rule', changes.rule,
    'subject', changes.subject, 'severity', changes.severity, 'text', changes.text, 'since', changes.since,
    'masked_until', changes.masked_until)
  FROM changes JOIN nodes_of_changes AS node ON node.uuid = changes.node_uuid ORDER BY changes.id;`;

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE health_alerts ADD COLUMN of_recorder boolean NOT NULL DEFAULT false;
    ALTER TABLE hardware ADD COLUMN begun_at timestamptz NOT NULL DEFAULT '1970-01-01T00:00:00Z';
    CREATE INDEX health_alerts_of_recorders ON health_alerts (node_uuid) WHERE cleared_at IS NULL AND of_recorder;
    DROP TRIGGER health_alerts_changed ON health_alerts;
    DROP FUNCTION note_health_alert();
    CREATE OR REPLACE FUNCTION note_raised_alerts() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF EXISTS (SELECT 1 FROM after_rows) THEN
        ${events(`SELECT after_rows.*, 'raised' AS change FROM after_rows`)}
      END IF;
      RETURN NULL;
    END $$;
    CREATE OR REPLACE FUNCTION note_changed_alerts() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF EXISTS (SELECT 1 FROM after_rows) THEN
        ${events(`SELECT after_rows.*, CASE
          WHEN after_rows.cleared_at IS NOT NULL THEN 'cleared'
          WHEN before_rows.masked_until IS NOT DISTINCT FROM after_rows.masked_until THEN 'changed'
          WHEN after_rows.masked_until IS NULL THEN 'unmasked'
          ELSE 'masked' END AS change
          FROM after_rows JOIN before_rows ON before_rows.id = after_rows.id`)}
      END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER health_alerts_raised AFTER INSERT ON health_alerts
      REFERENCING NEW TABLE AS after_rows FOR EACH STATEMENT EXECUTE FUNCTION note_raised_alerts();
    CREATE TRIGGER health_alerts_changed AFTER UPDATE ON health_alerts
      REFERENCING OLD TABLE AS before_rows NEW TABLE AS after_rows FOR EACH STATEMENT EXECUTE FUNCTION note_changed_alerts();
  `);
}
