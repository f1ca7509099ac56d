/** An example of each command, for --help and the manual page. */
import type { Command } from 'commander';

/** The words that select a command → its examples. */
export const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  '': ['bloomery serve --config-file ironic.conf', 'bloomery COMMAND --help'],
  serve: [
    'bloomery serve --config-file /etc/ironic/ironic.conf --state-dir /var/lib/bloomery',
    'bloomery serve --roles boot --log-format text',
  ],
  check: ['bloomery check --config-file ironic.conf', 'bloomery check --config-file ironic.conf --json'],
  db: ['bloomery db version'],
  'db version': ['bloomery db version --state-dir /var/lib/bloomery'],
  'db sync': ['DATABASE_URL=postgresql://bloomery@db.example/bloomery bloomery db sync'],
  'db backup': ['bloomery db backup bloomery-$(date +%F).backup', 'bloomery db backup - | ssh backup.example "cat > bloomery.backup"'],
  'db restore': ['bloomery db restore bloomery-2026-03-01.backup', 'bloomery db restore --force bloomery-2026-03-01.backup'],
  token: ['bloomery token list'],
  'token create': ['bloomery token create --name ci --role reader --system --expires 90d'],
  'token list': ['bloomery token list --json'],
  'token revoke': ['bloomery token revoke ci'],
  why: ['bloomery why node-1', 'bloomery why node-1 --json --url https://baremetal.example:6385'],
  console: ['bloomery console log node-1'],
  'console log': ['bloomery console log node-1', 'bloomery console log node-1 --follow'],
  steps: ['bloomery steps node-1', 'bloomery steps node-1 --continue'],
  'default-config': ['bloomery default-config list'],
  'default-config list': ['bloomery default-config list', 'bloomery default-config list --json'],
  'default-config show': ['bloomery default-config show class:gold', 'bloomery default-config show node:node-1'],
  'default-config set': [
    `bloomery default-config set class:gold bios.apply_configuration 'settings=[{"name": "ProcTurboMode", "value": "Enabled"}]'`,
    'bloomery default-config set property:rack=12 deploy.erase_devices --priority 0',
  ],
  'default-config unset': [
    'bloomery default-config unset property:rack=12 deploy.erase_devices',
    'bloomery default-config unset class:gold',
  ],
  resident: ['bloomery resident install node-1'],
  'resident install': ['bloomery resident install node-1 --service https://ironic.example:6385 | ssh root@host sh'],
  'resident show': ['bloomery resident show node-1'],
  'resident revoke': ['bloomery resident revoke node-1'],
  snapshot: ['bloomery snapshot list'],
  'snapshot create': ['bloomery snapshot create node-1 --description "before the upgrade" --wait'],
  'snapshot list': ['bloomery snapshot list --node node-1'],
  'snapshot show': ['bloomery snapshot show UUID --json'],
  'snapshot delete': ['bloomery snapshot delete UUID'],
  health: [
    'bloomery health',
    'bloomery health node-1 --cleared',
    "bloomery health node-1 --report 'it hums' --severity warning --until 3d",
    "bloomery health node-1 --mask 6f7c2d1e-0c3d-4c0a-9d4b-0d7f3a7f5b11 --until 3d --reason 'the spare part is ordered'",
  ],
  erasures: ['bloomery erasures list'],
  'erasures list': ['bloomery erasures list --node node-1', 'bloomery erasures list --serial S4EWNX0R123456'],
  'erasures show': ['bloomery erasures show UUID'],
  'erasures save': ['bloomery erasures save UUID --to /srv/certificates'],
  'erasures verify': ['bloomery erasures verify UUID.json --key site.pem'],
  'out-of-service': [
    "bloomery out-of-service node-1 --reason 'a fan is replaced' --ticket https://tickets.example/4711 --until 3d",
    'bloomery out-of-service node-1 --end',
    'bloomery out-of-service --overdue',
  ],
  policy: ['bloomery policy list --changed'],
  'policy list': ['bloomery policy list --changed'],
  'policy show': ['bloomery policy show baremetal:node:update'],
  'policy check': [
    'bloomery policy check --rule node:update --as owner-member',
    'bloomery policy check --rule node:get --roles reader --project PROJECT --node node-1',
  ],
  'policy sample': ['bloomery policy sample > policy.yaml'],
  'policy validate': ['bloomery policy validate policy.yaml'],
  probe: [
    'bloomery probe https://10.0.0.1 --username admin --ca bmcs.pem',
    'bloomery probe https://10.0.0.1 --username admin --password-file bmc.password --record machine.jsonl',
    'bloomery probe ipmi://10.0.0.1 --username admin --json',
  ],
  simulate: [
    'bloomery simulate --machines 20 --register http://127.0.0.1:6385',
    'bloomery simulate --machines 2 --bmcs ipmi --faults latency=300,loss=0.2',
    'bloomery simulate --tree machine.jsonl --redfish 20000',
  ],
  'simulate control': ['bloomery simulate control', 'bloomery simulate control sim-0 hang', 'bloomery simulate control sim-0 --power off'],
  demo: ['bloomery demo', 'bloomery demo -- --keep --port 6385'],
  completion: ['source <(bloomery completion bash)'],
  manual: ['bloomery manual | man -l -', 'bloomery manual bloomery.conf.5 | man -l -'],
  import: ['bloomery import --ironic-config /etc/ironic/ironic.conf --dry-run', 'bloomery import --ironic-config /etc/ironic/ironic.conf'],
  metal3: ['bloomery metal3 dbsync --config-dir /conf/ironic version'],
  'metal3 ironic': ['bloomery metal3 ironic'],
  'metal3 httpd': ['bloomery metal3 httpd'],
  'metal3 dnsmasq': ['bloomery metal3 dnsmasq'],
  'metal3 exporter': ['bloomery metal3 exporter'],
  'metal3 log-watch': ['bloomery metal3 log-watch'],
  'metal3 probe': ['bloomery metal3 probe'],
  'metal3 database-upgrade': ['bloomery metal3 database-upgrade'],
  'metal3 online-data-migrations': ['bloomery metal3 online-data-migrations'],
  'metal3 networking': ['bloomery metal3 networking'],
  'metal3 hardware-sync': ['bloomery metal3 hardware-sync --namespace metal3 --interval 30'],
  'metal3 recorder': [
    'bloomery metal3 recorder metal3~worker-1 --host worker-1 --image registry.example.org/bloomery:0.1.0 | kubectl apply -f -',
  ],
  'metal3 dbsync': ['bloomery metal3 dbsync --config-dir /conf/ironic upgrade'],
  version: ['bloomery version'],
  config: ['bloomery config > ironic.conf', 'bloomery config --docs > configuration.md'],
};

/** Adds its examples to the help of each command. */
export function addExamples(command: Command, path = ''): void {
  const lines = EXAMPLES[path];
  if (lines) command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`);
  for (const below of command.commands) addExamples(below, `${path} ${below.name()}`.trim());
}
