/** The options that the API reads (section.name); main hands them over. */
export interface ApiOptions {
  readonly 'DEFAULT.default_resource_class': string | null;
  readonly 'DEFAULT.default_conductor_group': string;
  readonly 'api.max_limit': number;
  readonly 'api.public_endpoint': string | null;
  readonly 'api.restrict_lookup': boolean;
  readonly 'api.ramdisk_heartbeat_timeout': number;
  readonly 'api.enable_ramdisk_endpoints': boolean;
  readonly 'api.fragment_cache_size': number;
  readonly 'api.max_json_body_size': number;
  readonly 'api.max_json_body_size_provision': number;
  readonly 'api.max_json_body_size_inspection': number;
  readonly 'api.max_json_body_depth': number;
  readonly 'agent.require_tls': boolean;
  readonly 'conductor.heartbeat_timeout': number;
}
