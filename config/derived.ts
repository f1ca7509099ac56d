/** Defaults that depend on other options. Ironic's own default applies if the configuration has what it needs. */
import type { LoadedOptions } from './options';

/** An operator who sets one of these expects that Keystone authenticates callers. */
const KEYSTONE_OPTIONS = [
  'keystone_authtoken.auth_url',
  'keystone_authtoken.www_authenticate_uri',
  'keystone_authtoken.auth_type',
] as const;

/** Whether Neutron's networks can be used. */
export const usesNeutron = (options: LoadedOptions): boolean =>
  (['neutron.auth_type', 'neutron.auth_section', 'neutron.endpoint_override'] as const).some((key) => options[key] !== null) &&
  options['DEFAULT.enabled_network_interfaces'].some((name) => name === 'flat' || name === 'neutron');

export const withDerivedDefaults = (options: LoadedOptions): LoadedOptions => ({
  ...options,
  'DEFAULT.auth_strategy': options['DEFAULT.auth_strategy'] ?? (KEYSTONE_OPTIONS.some((key) => options[key] !== null) ? 'keystone' : null),
  'dhcp.dhcp_provider': options['dhcp.dhcp_provider'] ?? (usesNeutron(options) ? 'neutron' : 'none'),
});
