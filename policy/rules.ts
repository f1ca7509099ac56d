/**
 * The rules of Ironic 39, with their defaults, and our own. A policy file replaces them one by one.
 * tests/policy/ironic-rules.txt has Ironic's, and a test compares.
 */
type Scope = 'system' | 'project';
export interface PolicyRow {
  /** As in policy files. */
  readonly name: string;
  readonly check: string;
  /** The scopes that a token may have. Empty: any. */
  readonly scopes: readonly Scope[];
  readonly help: string;
  /**
   * The rule before system scope. With [oslo_policy]enforce_new_defaults off, passing its check is enough.
   * `name`: the rule had another name, and a policy file that replaces that one replaces this one too.
   */
  readonly former?: { readonly name?: string; readonly check: string };
  /** Not a rule of Ironic. */
  readonly ours?: true;
}

const any = (...checks: readonly string[]): string => checks.map((check) => `(${check})`).join(' or ');

const OWNER = 'project_id:%(node.owner)s';
const LESSEE = 'project_id:%(node.lessee)s';
const ALLOCATION_OWNER = 'project_id:%(allocation.owner)s';
const RUNBOOK_OWNER = 'project_id:%(runbook.owner)s';
const SNAPSHOT_OWNER = 'project_id:%(snapshot.owner)s';
const ERASURE_OWNER = 'project_id:%(erasure.owner)s';
const ERASURE_LESSEE = 'project_id:%(erasure.lessee)s';

const SYSTEM_ADMIN = 'role:admin and system_scope:all';
const SYSTEM_SERVICE = 'role:service and system_scope:all';
const SYSTEM_MEMBER = '(role:member and system_scope:all) or rule:service_role';
const SYSTEM_READER = `(role:reader and system_scope:all) or (${SYSTEM_SERVICE}) or rule:service_role`;
const OWNER_ADMIN = `role:admin and ${OWNER}`;
const OWNER_MANAGER = `role:manager and ${OWNER}`;
const OWNER_MEMBER = `role:member and ${OWNER}`;
const OWNER_READER = `role:reader and ${OWNER}`;
const OWNER_SERVICE = `role:service and ${OWNER}`;
const LESSEE_ADMIN = `role:admin and ${LESSEE}`;
const LESSEE_MANAGER = `role:manager and ${LESSEE}`;

const ANY_READER = any('role:reader', 'role:service');
const SERVICE_OR_ADMIN = any(SYSTEM_ADMIN, SYSTEM_SERVICE);
const READERS = any(SYSTEM_READER, `role:reader and (${OWNER} or ${LESSEE})`, OWNER_SERVICE);
const USERS = any(SYSTEM_MEMBER, `role:member and (${OWNER} or ${LESSEE})`, SYSTEM_SERVICE);
const OWNER_READERS = any(SYSTEM_READER, SYSTEM_SERVICE, OWNER_READER, OWNER_SERVICE);
const OWNER_MEMBERS = any(SYSTEM_MEMBER, SYSTEM_SERVICE, OWNER_MEMBER, OWNER_SERVICE);
const OWNER_MEMBERS_LESSEE_ADMINS = any(SYSTEM_MEMBER, SYSTEM_SERVICE, OWNER_MEMBER, LESSEE_ADMIN, LESSEE_MANAGER, OWNER_SERVICE);
const OWNER_ADMINS = any(SYSTEM_MEMBER, SYSTEM_SERVICE, OWNER_ADMIN, OWNER_MANAGER, OWNER_SERVICE);
const STRICT_OWNER_ADMINS = any(SYSTEM_ADMIN, SYSTEM_SERVICE, OWNER_ADMIN, OWNER_MANAGER, OWNER_SERVICE);
const OWNER_LESSEE_ADMINS = any(SYSTEM_MEMBER, SYSTEM_SERVICE, OWNER_ADMIN, OWNER_MANAGER, LESSEE_ADMIN, LESSEE_MANAGER, OWNER_SERVICE);
const ALLOCATION_MEMBERS = any(SYSTEM_MEMBER, `role:member and ${ALLOCATION_OWNER}`);
const SNAPSHOT_MEMBERS = any(SYSTEM_MEMBER, `role:member and ${SNAPSHOT_OWNER}`);
const RUNBOOK_MANAGERS = `${any(SYSTEM_MEMBER, `role:manager and ${RUNBOOK_OWNER}`)} or role:service`;

const LEGACY_ADMIN = 'rule:is_admin';
const LEGACY_OBSERVER = 'rule:is_admin or rule:is_observer';

const ANY: readonly Scope[] = [];
const BOTH: readonly Scope[] = ['system', 'project'];
const SYSTEM: readonly Scope[] = ['system'];
const PROJECT: readonly Scope[] = ['project'];

// One row a line, however long: a table is read by its columns.
// prettier-ignore
export const POLICIES: readonly PolicyRow[] = [
  { name: 'admin_api', check: 'role:admin or role:administrator', scopes: ANY, help: 'Administrators before system scope.' },
  { name: 'public_api', check: 'is_public_api:True', scopes: ANY, help: 'Requests that need no authentication.' },
  { name: 'show_password', check: '!', scopes: ANY, help: 'Show the secrets in driver_info and driver_internal_info. Handle with care.' },
  { name: 'show_instance_secrets', check: '!', scopes: ANY, help: 'Show the secrets in instance_info. Handle with care.' },
  { name: 'service_role', check: 'role:service and project_name:%(config.service_project_name)s', scopes: ANY, help: 'Services with the rights of the system: [DEFAULT]rbac_service_role_elevated_access.' },
  { name: 'is_member', check: '(project_domain_id:default or project_domain_id:None) and (project_name:demo or project_name:baremetal)', scopes: ANY, help: 'The projects of administrators before system scope.' },
  { name: 'is_observer', check: 'rule:is_member and (role:observer or role:baremetal_observer)', scopes: ANY, help: 'Readers before system scope.' },
  { name: 'is_admin', check: 'rule:admin_api or (rule:is_member and role:baremetal_admin)', scopes: ANY, help: 'Administrators before system scope, by project or role.' },
  { name: 'is_node_owner', check: OWNER, scopes: ANY, help: 'The project that owns the node.' },
  { name: 'is_node_lessee', check: LESSEE, scopes: ANY, help: 'The project that leases the node.' },
  { name: 'is_allocation_owner', check: ALLOCATION_OWNER, scopes: ANY, help: 'The project that owns the allocation.' },
  { name: 'baremetal:node:create', check: SERVICE_OR_ADMIN, scopes: BOTH, help: 'Create nodes.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:node:create:self_owned_node', check: '(role:admin) or (role:service)', scopes: BOTH, help: 'Create nodes that belong to the own project ([api]project_admin_can_manage_own_nodes).' },
  { name: 'baremetal:node:list', check: ANY_READER, scopes: BOTH, help: 'List the nodes that the own project owns or leases.', former: { check: 'rule:baremetal:node:get' } },
  { name: 'baremetal:node:list_all', check: SYSTEM_READER, scopes: BOTH, help: 'List the nodes of all projects.', former: { check: 'rule:baremetal:node:get' } },
  { name: 'baremetal:node:get', check: READERS, scopes: BOTH, help: 'See a node. To others it does not exist.', former: { check: LEGACY_OBSERVER } },
  { name: 'baremetal:node:get:filter_threshold', check: SYSTEM_READER, scopes: BOTH, help: 'See all fields of a node; for others, the rules of single fields decide.', former: { name: 'baremetal:node:get', check: LEGACY_OBSERVER } },
  { name: 'baremetal:node:get:last_error', check: OWNER_READERS, scopes: BOTH, help: 'See last_error of a node.', former: { name: 'baremetal:node:get', check: LEGACY_OBSERVER } },
  { name: 'baremetal:node:get:reservation', check: OWNER_READERS, scopes: BOTH, help: 'See reservation of a node.', former: { name: 'baremetal:node:get', check: LEGACY_OBSERVER } },
  { name: 'baremetal:node:get:driver_internal_info', check: OWNER_READERS, scopes: BOTH, help: 'See driver_internal_info of a node.', former: { name: 'baremetal:node:get', check: LEGACY_OBSERVER } },
  { name: 'baremetal:node:get:driver_info', check: OWNER_READERS, scopes: BOTH, help: 'See driver_info of a node.', former: { name: 'baremetal:node:get', check: LEGACY_OBSERVER } },
  { name: 'baremetal:node:update:driver_info', check: OWNER_MEMBERS, scopes: BOTH, help: 'Change driver_info of a node.', former: { name: 'baremetal:node:update', check: LEGACY_ADMIN } },
  { name: 'baremetal:node:update:properties', check: OWNER_MEMBERS, scopes: BOTH, help: 'Change the properties of a node.', former: { name: 'baremetal:node:update', check: LEGACY_ADMIN } },
  { name: 'baremetal:node:update:chassis_uuid', check: SYSTEM_ADMIN, scopes: BOTH, help: 'Change the chassis of a node.', former: { name: 'baremetal:node:update', check: LEGACY_ADMIN } },
  { name: 'baremetal:node:update:instance_uuid', check: OWNER_MEMBERS, scopes: BOTH, help: 'Change instance_uuid of a node.', former: { name: 'baremetal:node:update', check: LEGACY_ADMIN } },
  { name: 'baremetal:node:update:lessee', check: OWNER_MEMBERS, scopes: BOTH, help: 'Lease a node to a project, or end the lease.', former: { name: 'baremetal:node:update', check: LEGACY_ADMIN } },
  { name: 'baremetal:node:update:owner', check: SYSTEM_MEMBER, scopes: BOTH, help: 'Change the owner of a node.', former: { name: 'baremetal:node:update', check: LEGACY_ADMIN } },
  { name: 'baremetal:node:update:driver_interfaces', check: OWNER_ADMINS, scopes: BOTH, help: 'Change the driver of a node and its interfaces.', former: { name: 'baremetal:node:update', check: LEGACY_ADMIN } },
  { name: 'baremetal:node:update:network_data', check: OWNER_MEMBERS, scopes: BOTH, help: 'Change network_data of a node.', former: { name: 'baremetal:node:update', check: LEGACY_ADMIN } },
  { name: 'baremetal:node:update:conductor_group', check: SYSTEM_MEMBER, scopes: BOTH, help: 'Change the conductor group of a node.', former: { name: 'baremetal:node:update', check: LEGACY_ADMIN } },
  { name: 'baremetal:node:update:name', check: OWNER_MEMBERS, scopes: BOTH, help: 'Rename a node.', former: { name: 'baremetal:node:update', check: LEGACY_ADMIN } },
  { name: 'baremetal:node:update:retired', check: OWNER_MEMBERS, scopes: BOTH, help: 'Retire a node, with its reason.', former: { name: 'baremetal:node:update', check: LEGACY_ADMIN } },
  { name: 'baremetal:node:update', check: USERS, scopes: BOTH, help: 'Change the fields of a node that have no rule of their own.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:node:update_extra', check: USERS, scopes: BOTH, help: 'Change extra of a node.', former: { check: 'rule:baremetal:node:update' } },
  { name: 'baremetal:node:update_instance_info', check: OWNER_MEMBERS_LESSEE_ADMINS, scopes: BOTH, help: 'Change instance_info and instance_name of a node.', former: { check: 'rule:baremetal:node:update' } },
  { name: 'baremetal:node:update_owner_provisioned', check: SYSTEM_ADMIN, scopes: SYSTEM, help: 'Change the owner of an active node.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:node:delete', check: SYSTEM_ADMIN, scopes: BOTH, help: 'Delete nodes.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:node:delete:self_owned_node', check: OWNER_ADMIN, scopes: BOTH, help: 'Delete nodes of the own project ([api]project_admin_can_manage_own_nodes).' },
  { name: 'baremetal:node:validate', check: OWNER_MEMBERS_LESSEE_ADMINS, scopes: BOTH, help: 'Validate the interfaces of a node.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:node:set_maintenance', check: OWNER_MEMBERS_LESSEE_ADMINS, scopes: BOTH, help: 'Set maintenance of a node.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:node:clear_maintenance', check: OWNER_MEMBERS_LESSEE_ADMINS, scopes: BOTH, help: 'End maintenance of a node.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:node:get_boot_device', check: OWNER_ADMINS, scopes: BOTH, help: 'Read the boot device of a node, and which ones it supports.', former: { check: LEGACY_OBSERVER } },
  { name: 'baremetal:node:set_boot_device', check: OWNER_ADMINS, scopes: BOTH, help: 'Set the boot device of a node.', former: { name: 'baremetal:node:set_maintenance', check: LEGACY_ADMIN } },
  { name: 'baremetal:node:get_indicator_state', check: READERS, scopes: BOTH, help: 'Read the indicators of a node.', former: { check: LEGACY_OBSERVER } },
  { name: 'baremetal:node:set_indicator_state', check: OWNER_MEMBERS, scopes: BOTH, help: 'Set indicators of a node.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:node:inject_nmi', check: OWNER_ADMINS, scopes: BOTH, help: 'Send a non-maskable interrupt to a node.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:node:get_states', check: READERS, scopes: BOTH, help: 'Read the power and provision states of a node.', former: { check: LEGACY_OBSERVER } },
  { name: 'baremetal:node:set_power_state', check: USERS, scopes: BOTH, help: 'Change the power state of a node.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:node:set_boot_mode', check: USERS, scopes: BOTH, help: 'Change the boot mode of a node.', former: { name: 'baremetal:node:set_power_state', check: LEGACY_ADMIN } },
  { name: 'baremetal:node:set_secure_boot', check: USERS, scopes: BOTH, help: 'Turn secure boot of a node on or off.', former: { name: 'baremetal:node:set_power_state', check: LEGACY_ADMIN } },
  { name: 'baremetal:node:set_provision_state', check: OWNER_MEMBERS_LESSEE_ADMINS, scopes: BOTH, help: 'Change the provision state of a node.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:node:set_provision_state:clean_steps', check: OWNER_MEMBERS_LESSEE_ADMINS, scopes: BOTH, help: 'Clean a node with own steps.' },
  { name: 'baremetal:node:set_provision_state:service_steps', check: OWNER_MEMBERS_LESSEE_ADMINS, scopes: BOTH, help: 'Service a node with own steps.' },
  { name: 'baremetal:node:set_raid_state', check: OWNER_MEMBERS, scopes: BOTH, help: 'Set the RAID configuration of a node.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:node:get_console', check: OWNER_MEMBERS, scopes: BOTH, help: 'Read how to reach the console of a node.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:node:set_console_state', check: OWNER_MEMBERS, scopes: BOTH, help: 'Turn the console of a node on or off.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:node:vif:list', check: READERS, scopes: BOTH, help: 'List the VIFs of a node.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:node:vif:attach', check: OWNER_MEMBERS_LESSEE_ADMINS, scopes: BOTH, help: 'Attach VIFs to a node.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:node:vif:detach', check: OWNER_MEMBERS_LESSEE_ADMINS, scopes: BOTH, help: 'Detach VIFs from a node.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:node:traits:list', check: READERS, scopes: BOTH, help: 'List the traits of a node.', former: { check: LEGACY_OBSERVER } },
  { name: 'baremetal:node:traits:set', check: OWNER_ADMINS, scopes: BOTH, help: 'Add traits to a node, or replace them.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:node:traits:delete', check: OWNER_ADMINS, scopes: BOTH, help: 'Remove traits from a node.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:node:bios:get', check: READERS, scopes: BOTH, help: 'Read the BIOS settings of a node.', former: { check: LEGACY_OBSERVER } },
  { name: 'baremetal:node:disable_cleaning', check: SYSTEM_ADMIN, scopes: BOTH, help: 'Turn automated cleaning of a node off.', former: { check: 'rule:baremetal:node:update' } },
  { name: 'baremetal:node:history:get', check: OWNER_READERS, scopes: BOTH, help: 'Read the history of a node.', former: { name: 'baremetal:node:get', check: LEGACY_OBSERVER } },
  { name: 'baremetal:node:inventory:get', check: OWNER_READERS, scopes: BOTH, help: 'Read the inventory of a node.', former: { name: 'baremetal:node:get', check: LEGACY_OBSERVER } },
  { name: 'baremetal:node:update:shard', check: SYSTEM_ADMIN, scopes: BOTH, help: 'Change the shard of a node.' },
  { name: 'baremetal:shards:get', check: SYSTEM_READER, scopes: BOTH, help: 'List the shards.' },
  { name: 'baremetal:node:update:parent_node', check: SYSTEM_MEMBER, scopes: BOTH, help: 'Change the parent of a node.' },
  { name: 'baremetal:node:update:disable_power_off', check: SYSTEM_ADMIN, scopes: BOTH, help: 'Change disable_power_off of a node.' },
  { name: 'baremetal:node:firmware:get', check: READERS, scopes: BOTH, help: 'Read the firmware components of a node.' },
  { name: 'baremetal:node:vmedia:attach', check: USERS, scopes: BOTH, help: 'Attach virtual media to a node.' },
  { name: 'baremetal:node:vmedia:detach', check: USERS, scopes: BOTH, help: 'Detach virtual media from a node.' },
  { name: 'baremetal:node:vmedia:get', check: READERS, scopes: BOTH, help: 'Read the virtual media of a node.' },
  { name: 'baremetal:port:get', check: READERS, scopes: BOTH, help: 'See a port.', former: { check: LEGACY_OBSERVER } },
  { name: 'baremetal:port:list', check: ANY_READER, scopes: BOTH, help: 'List the ports of nodes that the own project owns or leases.', former: { check: 'rule:baremetal:port:get' } },
  { name: 'baremetal:port:list_all', check: SYSTEM_READER, scopes: BOTH, help: 'List the ports of all projects.', former: { check: 'rule:baremetal:port:get' } },
  { name: 'baremetal:port:create', check: STRICT_OWNER_ADMINS, scopes: BOTH, help: 'Create ports.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:port:delete', check: STRICT_OWNER_ADMINS, scopes: BOTH, help: 'Delete ports.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:port:update', check: OWNER_ADMINS, scopes: BOTH, help: 'Change ports.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:portgroup:get', check: READERS, scopes: BOTH, help: 'See a portgroup.', former: { check: LEGACY_OBSERVER } },
  { name: 'baremetal:portgroup:create', check: STRICT_OWNER_ADMINS, scopes: BOTH, help: 'Create portgroups.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:portgroup:delete', check: STRICT_OWNER_ADMINS, scopes: BOTH, help: 'Delete portgroups.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:portgroup:update', check: OWNER_ADMINS, scopes: BOTH, help: 'Change portgroups.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:portgroup:list', check: ANY_READER, scopes: BOTH, help: 'List the portgroups of nodes that the own project owns or leases.', former: { name: 'baremetal:portgroup:get', check: LEGACY_OBSERVER } },
  { name: 'baremetal:portgroup:list_all', check: SYSTEM_READER, scopes: BOTH, help: 'List the portgroups of all projects.', former: { name: 'baremetal:portgroup:get', check: LEGACY_OBSERVER } },
  { name: 'baremetal:chassis:get', check: SYSTEM_READER, scopes: SYSTEM, help: 'See and list chassis.', former: { check: LEGACY_OBSERVER } },
  { name: 'baremetal:chassis:create', check: SYSTEM_ADMIN, scopes: SYSTEM, help: 'Create chassis.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:chassis:delete', check: SYSTEM_ADMIN, scopes: SYSTEM, help: 'Delete chassis.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:chassis:update', check: SYSTEM_MEMBER, scopes: SYSTEM, help: 'Change chassis.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:driver:get', check: SYSTEM_READER, scopes: SYSTEM, help: 'See and list drivers.', former: { check: LEGACY_OBSERVER } },
  { name: 'baremetal:driver:get_properties', check: SYSTEM_READER, scopes: SYSTEM, help: 'Read the properties of a driver.', former: { check: LEGACY_OBSERVER } },
  { name: 'baremetal:driver:get_raid_logical_disk_properties', check: SYSTEM_READER, scopes: SYSTEM, help: 'Read the RAID properties of a driver.', former: { check: LEGACY_OBSERVER } },
  { name: 'baremetal:node:vendor_passthru', check: SYSTEM_ADMIN, scopes: BOTH, help: 'List and call vendor methods of nodes.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:driver:vendor_passthru', check: SYSTEM_ADMIN, scopes: SYSTEM, help: 'List and call vendor methods of drivers.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:node:ipa_heartbeat', check: '', scopes: ANY, help: 'Heartbeats of ramdisks.', former: { check: 'rule:public_api' } },
  { name: 'baremetal:driver:ipa_lookup', check: '', scopes: ANY, help: 'Lookups of ramdisks.', former: { check: 'rule:public_api' } },
  { name: 'baremetal:driver:ipa_continue_inspection', check: '', scopes: ANY, help: 'Inspection data of ramdisks.' },
  { name: 'baremetal:volume:list_all', check: SYSTEM_READER, scopes: BOTH, help: 'List the volume connectors and targets of all projects.', former: { name: 'baremetal:volume:get', check: LEGACY_OBSERVER } },
  { name: 'baremetal:volume:list', check: ANY_READER, scopes: BOTH, help: 'List the volume connectors and targets of nodes that the own project owns or leases.', former: { name: 'baremetal:volume:get', check: LEGACY_OBSERVER } },
  { name: 'baremetal:volume:get', check: READERS, scopes: BOTH, help: 'See volume connectors and targets.', former: { check: LEGACY_OBSERVER } },
  { name: 'baremetal:volume:create', check: OWNER_LESSEE_ADMINS, scopes: BOTH, help: 'Create volume connectors and targets.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:volume:delete', check: OWNER_LESSEE_ADMINS, scopes: BOTH, help: 'Delete volume connectors and targets.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:volume:update', check: OWNER_MEMBERS_LESSEE_ADMINS, scopes: BOTH, help: 'Change volume connectors and targets.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:volume:view_target_properties', check: `(${SYSTEM_READER}) or (role:admin)`, scopes: BOTH, help: 'See the properties of volume targets.', former: { name: 'baremetal:volume:update', check: LEGACY_ADMIN } },
  { name: 'baremetal:conductor:get', check: SYSTEM_READER, scopes: BOTH, help: 'See and list conductors.', former: { check: LEGACY_OBSERVER } },
  { name: 'baremetal:allocation:get', check: `(${SYSTEM_READER}) or (role:reader and ${ALLOCATION_OWNER})`, scopes: BOTH, help: 'See an allocation. To others it does not exist.', former: { check: LEGACY_OBSERVER } },
  { name: 'baremetal:allocation:list', check: ANY_READER, scopes: BOTH, help: 'List the allocations of the own project.', former: { check: 'rule:baremetal:allocation:get' } },
  { name: 'baremetal:allocation:list_all', check: SYSTEM_READER, scopes: BOTH, help: 'List the allocations of all projects.', former: { check: 'rule:baremetal:allocation:get and is_admin_project:True' } },
  { name: 'baremetal:allocation:create', check: `(${SYSTEM_MEMBER}) or (role:member)`, scopes: BOTH, help: 'Create allocations.', former: { check: 'rule:is_admin and is_admin_project:True' } },
  { name: 'baremetal:allocation:create_restricted', check: SYSTEM_MEMBER, scopes: BOTH, help: 'Create allocations for another owner, or for none.', former: { check: 'rule:baremetal:allocation:create' } },
  { name: 'baremetal:allocation:delete', check: ALLOCATION_MEMBERS, scopes: BOTH, help: 'Delete allocations.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:allocation:update', check: ALLOCATION_MEMBERS, scopes: BOTH, help: 'Change allocations.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:allocation:create_pre_rbac', check: '(rule:is_member and role:baremetal_admin) or (is_admin_project:True and role:admin)', scopes: PROJECT, help: 'Create allocations without an owner, as administrators could before system scope.' },
  { name: 'baremetal:events:post', check: SYSTEM_ADMIN, scopes: SYSTEM, help: 'Post events of external services.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:deploy_template:get', check: SYSTEM_READER, scopes: BOTH, help: 'See and list deploy templates.', former: { check: LEGACY_OBSERVER } },
  { name: 'baremetal:deploy_template:create', check: SYSTEM_ADMIN, scopes: BOTH, help: 'Create deploy templates.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:deploy_template:delete', check: SYSTEM_ADMIN, scopes: BOTH, help: 'Delete deploy templates.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:deploy_template:update', check: SYSTEM_ADMIN, scopes: BOTH, help: 'Change deploy templates.', former: { check: LEGACY_ADMIN } },
  { name: 'baremetal:runbook:get', check: `(${SYSTEM_READER}) or (role:reader and ${RUNBOOK_OWNER}) or role:service`, scopes: BOTH, help: 'See a runbook.' },
  { name: 'baremetal:runbook:list', check: ANY_READER, scopes: BOTH, help: 'List the runbooks of the own project, and the public ones.' },
  { name: 'baremetal:runbook:list_all', check: SYSTEM_READER, scopes: BOTH, help: 'List the runbooks of all projects.' },
  { name: 'baremetal:runbook:create', check: `(${SYSTEM_MEMBER}) or role:manager or role:service`, scopes: BOTH, help: 'Create runbooks.' },
  { name: 'baremetal:runbook:delete', check: RUNBOOK_MANAGERS, scopes: BOTH, help: 'Delete runbooks.' },
  { name: 'baremetal:runbook:update', check: RUNBOOK_MANAGERS, scopes: BOTH, help: 'Change runbooks.' },
  { name: 'baremetal:runbook:update:public', check: SYSTEM_MEMBER, scopes: BOTH, help: 'Make a runbook public, or private again.' },
  { name: 'baremetal:runbook:update:owner', check: SYSTEM_MEMBER, scopes: BOTH, help: 'Change the owner of a runbook.' },
  { name: 'baremetal:runbook:use', check: RUNBOOK_MANAGERS, scopes: BOTH, help: 'Clean or service nodes with a runbook.' },
  { name: 'baremetal:inspection_rule:get', check: SYSTEM_READER, scopes: BOTH, help: 'See an inspection rule.' },
  { name: 'baremetal:inspection_rule:list_all', check: SYSTEM_READER, scopes: BOTH, help: 'List the inspection rules.' },
  { name: 'baremetal:inspection_rule:create', check: SYSTEM_ADMIN, scopes: BOTH, help: 'Create inspection rules.' },
  { name: 'baremetal:inspection_rule:update', check: SYSTEM_ADMIN, scopes: BOTH, help: 'Change inspection rules.' },
  { name: 'baremetal:inspection_rule:delete', check: SYSTEM_ADMIN, scopes: BOTH, help: 'Delete inspection rules.' },
  { name: 'baremetal:image:get', check: ANY_READER, scopes: BOTH, help: 'See and list images with names.', ours: true },
  { name: 'baremetal:image:create', check: SYSTEM_MEMBER, scopes: BOTH, help: 'Give images names.', ours: true },
  { name: 'baremetal:image:update', check: SYSTEM_MEMBER, scopes: BOTH, help: 'Change images with names.', ours: true },
  { name: 'baremetal:image:delete', check: SYSTEM_MEMBER, scopes: BOTH, help: 'Delete images with names.', ours: true },
  { name: 'baremetal:default_config:get', check: SYSTEM_READER, scopes: BOTH, help: 'See and list default configs.', ours: true },
  { name: 'baremetal:default_config:create', check: SYSTEM_ADMIN, scopes: BOTH, help: 'Create default configs.', ours: true },
  { name: 'baremetal:default_config:update', check: SYSTEM_ADMIN, scopes: BOTH, help: 'Change default configs.', ours: true },
  { name: 'baremetal:default_config:delete', check: SYSTEM_ADMIN, scopes: BOTH, help: 'Delete default configs.', ours: true },
  { name: 'baremetal:node:default_config:get', check: READERS, scopes: BOTH, help: 'Read the default config of a node, and what differs on its machine.', ours: true },
  { name: 'baremetal:node:out_of_service:set', check: OWNER_MEMBERS_LESSEE_ADMINS, scopes: BOTH, help: 'Take a node out of service.', ours: true },
  { name: 'baremetal:node:out_of_service:clear', check: OWNER_MEMBERS_LESSEE_ADMINS, scopes: BOTH, help: 'Put a node back into service.', ours: true },
  { name: 'baremetal:health_rule:get', check: ANY_READER, scopes: BOTH, help: 'List the rules of health.', ours: true },
  { name: 'baremetal:node:health:get', check: READERS, scopes: BOTH, help: 'See how a node is: its provision state, and the alerts that people and programs report.', ours: true },
  { name: 'baremetal:node:health:machine', check: OWNER_READERS, scopes: BOTH, help: 'See the alerts about the machine itself, which quote its BMC and its hardware.', ours: true },
  { name: 'baremetal:node:health:report', check: OWNER_MEMBERS_LESSEE_ADMINS, scopes: BOTH, help: 'Report an alert about a node.', ours: true },
  { name: 'baremetal:node:health:mask', check: OWNER_MEMBERS, scopes: BOTH, help: 'Mask an alert about a node until a date.', ours: true },
  { name: 'baremetal:node:health:clear', check: OWNER_MEMBERS, scopes: BOTH, help: 'Clear an alert about a node.', ours: true },
  { name: 'baremetal:node:hardware:get', check: OWNER_READERS, scopes: BOTH, help: 'Read the hardware records of a node, and their changes.', ours: true },
  { name: 'baremetal:node:hardware:token', check: OWNER_ADMINS, scopes: BOTH, help: 'Create and revoke the tokens of recorders.', ours: true },
  { name: 'baremetal:node:hardware:register', check: any(SYSTEM_MEMBER, SYSTEM_SERVICE, 'role:recorder'), scopes: ANY, help: 'Register recorders of deployed hosts, which get tokens of their own.', ours: true },
  { name: 'baremetal:node:hardware:push', check: '', scopes: ANY, help: 'Hardware records of recorders, which have a token of their own.', ours: true },
  { name: 'baremetal:node:resident_agent:get', check: OWNER_READERS, scopes: BOTH, help: 'See the agent in the deployed system of a node.', ours: true },
  { name: 'baremetal:node:resident_agent:token', check: OWNER_ADMINS, scopes: BOTH, help: 'Create and revoke the tokens of agents in deployed systems.', ours: true },
  { name: 'baremetal:node:redfish_events', check: '', scopes: ANY, help: 'Events of BMCs, which have a key of their own.', ours: true },
  { name: 'baremetal:node:resident_agent:register', check: '', scopes: ANY, help: 'Registrations of agents in deployed systems, which have a token of their own.', ours: true },
  { name: 'baremetal:node:snapshot:create', check: OWNER_MEMBERS_LESSEE_ADMINS, scopes: BOTH, help: 'Save a disk of a node as an image.', ours: true },
  { name: 'baremetal:snapshot:get', check: `(${SYSTEM_READER}) or (role:reader and ${SNAPSHOT_OWNER})`, scopes: BOTH, help: 'See and deploy a snapshot that is not public.', ours: true },
  { name: 'baremetal:snapshot:list', check: ANY_READER, scopes: BOTH, help: 'List the snapshots of the own project, and the public ones.', ours: true },
  { name: 'baremetal:snapshot:list_all', check: SYSTEM_READER, scopes: BOTH, help: 'List the snapshots of all projects.', ours: true },
  { name: 'baremetal:snapshot:update', check: SNAPSHOT_MEMBERS, scopes: BOTH, help: 'Change the description of a snapshot.', ours: true },
  { name: 'baremetal:snapshot:update:public', check: SYSTEM_MEMBER, scopes: BOTH, help: 'Make a snapshot public, or private again.', ours: true },
  { name: 'baremetal:snapshot:delete', check: SNAPSHOT_MEMBERS, scopes: BOTH, help: 'Delete snapshots.', ours: true },
  { name: 'baremetal:snapshot:write', check: '', scopes: ANY, help: 'Parts of snapshots from agents, which have a token of their own.', ours: true },
  { name: 'baremetal:node:set_provision_state:erase', check: OWNER_MEMBERS, scopes: BOTH, help: 'Choose how the disks of a node are erased when it is released, and which are kept.', ours: true },
  { name: 'baremetal:erasure:get', check: any(SYSTEM_READER, `role:reader and (${ERASURE_OWNER} or ${ERASURE_LESSEE})`), scopes: BOTH, help: 'See a certificate of erasure.', ours: true },
  { name: 'baremetal:erasure:list', check: ANY_READER, scopes: BOTH, help: 'List the certificates of erasure of the own project.', ours: true },
  { name: 'baremetal:erasure:list_all', check: SYSTEM_READER, scopes: BOTH, help: 'List the certificates of erasure of all projects.', ours: true },
  { name: 'introspection:status', check: SYSTEM_READER, scopes: BOTH, help: 'See introspections.', ours: true },
  { name: 'introspection:start', check: SYSTEM_ADMIN, scopes: BOTH, help: 'Start introspections.', ours: true },
  { name: 'introspection:abort', check: SYSTEM_ADMIN, scopes: BOTH, help: 'Abort introspections.', ours: true },
  { name: 'introspection:data', check: SYSTEM_ADMIN, scopes: BOTH, help: 'Read the reports of introspections.', ours: true },
  { name: 'introspection:reapply', check: SYSTEM_ADMIN, scopes: BOTH, help: 'Process reports of introspections again.', ours: true },
  { name: 'introspection:rule:get', check: SYSTEM_ADMIN, scopes: BOTH, help: 'See the rules of the introspection service.', ours: true },
  { name: 'introspection:rule:create', check: SYSTEM_ADMIN, scopes: BOTH, help: 'Create rules of the introspection service.', ours: true },
  { name: 'introspection:rule:delete', check: SYSTEM_ADMIN, scopes: BOTH, help: 'Delete rules of the introspection service.', ours: true },
];
