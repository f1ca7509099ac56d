/** What is wrong with machines (docs/health.md). A trigger writes the events, which say how the node is now. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE health_alerts (
      id bigserial CONSTRAINT health_alerts_pkey PRIMARY KEY,
      uuid text COLLATE "C" NOT NULL CONSTRAINT health_alerts_uuid_unique UNIQUE,
      node_uuid text COLLATE "C" NOT NULL CONSTRAINT health_alerts_node_known REFERENCES nodes (uuid) ON DELETE CASCADE,
      source text COLLATE "C" NOT NULL,
      rule text COLLATE "C" NOT NULL,
      subject text COLLATE "C" NOT NULL,
      severity text COLLATE "C" NOT NULL,
      text text COLLATE "C" NOT NULL,
      since timestamptz NOT NULL,
      updated_at timestamptz NOT NULL,
      cleared_at timestamptz,
      until timestamptz,
      reported_by text COLLATE "C",
      masked_until timestamptz,
      mask_reason text COLLATE "C",
      masked_by text COLLATE "C"
    );
    CREATE UNIQUE INDEX health_alerts_open ON health_alerts (node_uuid, source, rule, subject) WHERE cleared_at IS NULL;
    CREATE INDEX health_alerts_of_node ON health_alerts (node_uuid, id);
    CREATE INDEX health_alerts_cleared_at ON health_alerts (cleared_at) WHERE cleared_at IS NOT NULL;
    CREATE OR REPLACE FUNCTION note_health_alert() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      worst text;
      change text := CASE
        WHEN TG_OP = 'INSERT' THEN 'raised'
        WHEN NEW.cleared_at IS NOT NULL THEN 'cleared'
        WHEN OLD.masked_until IS DISTINCT FROM NEW.masked_until THEN CASE WHEN NEW.masked_until IS NULL THEN 'unmasked' ELSE 'masked' END
        ELSE 'changed' END;
    BEGIN
      SELECT CASE WHEN bool_or(severity = 'critical') THEN 'critical' WHEN count(*) > 0 THEN 'warning' ELSE 'ok' END INTO worst
      FROM health_alerts
      WHERE node_uuid = NEW.node_uuid AND cleared_at IS NULL AND (masked_until IS NULL OR masked_until <= NEW.updated_at);
      INSERT INTO events (at, node_uuid, node_name, owner, lessee, kind, payload)
      SELECT NEW.updated_at, uuid, name, owner, lessee, 'health', json_build_object(
        'health', worst, 'change', change, 'alert', NEW.uuid, 'source', NEW.source, 'rule', NEW.rule,
        'subject', NEW.subject, 'severity', NEW.severity, 'text', NEW.text, 'since', NEW.since, 'masked_until', NEW.masked_until)
      FROM nodes WHERE uuid = NEW.node_uuid;
      RETURN NULL;
    END $$;
    CREATE TRIGGER health_alerts_changed AFTER INSERT OR UPDATE ON health_alerts
      FOR EACH ROW EXECUTE FUNCTION note_health_alert();
  `);
}
