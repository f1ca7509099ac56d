/** From the environment of a container of metal3's Ironic image to the options of ironic.conf, by the table of variables. */
import { Metal3Error, type Environment, type ContainerContext } from './container-context';
import { FIXED_SETTINGS, VARIABLES, type Settings, type Variable } from './variables';

/** Variables of Ironic's own options, which the configuration reader takes itself. */
const isOption = (name: string): boolean => name.startsWith('OS_') && name.includes('__');
const PREFIX = /^(?:IRONIC|IPXE|IPA|HTTPD|HTTP_BASIC|MARIADB|WEBSERVER|VMEDIA|DNSMASQ|DHCP|DEPLOY|PROVISIONING)_/;
/** Variables of security settings. An unknown one is an error, because whoever sets it relies on its effect. */
const GUARD = /(?:TLS|SSL|CERT|CIPHER|CURVE|AUTH|HTPASSWD|PASSWORD|TOKEN|SECURE|VERIFY|ACL|ALLOW|DENY|IGNORE)/;

const NAMES = new Set(VARIABLES.flatMap(({ name, formerly = [] }) => [name, ...formerly]));
/** The value of a variable, by its name or an older one; else its default. */
function valueOf({ name, formerly = [], preset = '' }: Variable, context: ContainerContext): string {
  const given = [name, ...formerly].map((item) => context.get(item)).find((candidate) => candidate !== '');
  return given ?? (typeof preset === 'string' ? preset : preset(context));
}

interface Derived {
  readonly settings: Settings;
  /** Lines for the log. */
  readonly warnings: readonly string[];
}
/** @throws Metal3Error for variables that cannot be used, all in one message */
export function checkVariables(environment: Environment, context: ContainerContext): readonly string[] {
  const given = Object.keys(environment).filter((name) => environment[name] !== '' && !NAMES.has(name) && !isOption(name));
  const unknown = given.filter((name) => PREFIX.test(name)).sort();
  const refusals = [
    ...unknown.filter((name) => GUARD.test(name)).map((name) => `${name}: it is a security setting that has no effect here: remove it`),
    ...VARIABLES.flatMap((variable) => {
      const why = variable.refusal?.(valueOf(variable, context), context);
      return why === undefined ? [] : [`${variable.name}: ${why}`];
    }),
  ];
  if (refusals.length > 0) throw new Metal3Error(refusals.join('\n'));
  return unknown.length === 0 ? [] : [`variables that are not known here and have no effect: ${unknown.join(', ')}`];
}

/** The options of the server in the container `ironic`. @throws Metal3Error */
export function ironicSettings(environment: Environment, context: ContainerContext): Derived {
  const warnings = checkVariables(environment, context);
  const rows = VARIABLES.filter(({ readers }) => readers.includes('ironic'));
  const parts = rows.map((variable) => variable.options?.(valueOf(variable, context), context) ?? {});
  return { settings: Object.assign({}, FIXED_SETTINGS, ...parts) as Settings, warnings };
}

/** The text of ironic.conf. */
export function configurationFile(settings: Settings): string {
  const sections = new Map<string, string[]>();
  for (const [key, value] of Object.entries(settings).sort(([entry], [other]) => (entry < other ? -1 : 1))) {
    const dot = key.indexOf('.');
    if (/[\r\n]/.test(value)) throw new Metal3Error(`[${key.slice(0, dot)}]${key.slice(dot + 1)}: its value has more than one line`);
    const lines = sections.get(key.slice(0, dot)) ?? [];
    // A dollar would begin a reference to another option.
    const written = key === 'inspector.hooks' ? value : value.replaceAll('$', '$$$$');
    sections.set(key.slice(0, dot), [...lines, `${key.slice(dot + 1)} = ${written}`]);
  }
  return [...sections].map(([name, lines]) => `[${name}]\n${lines.join('\n')}\n`).join('\n');
}
