/** The options that the API reads (section.name); main hands them over. */
export interface ApiOptions {
  readonly 'DEFAULT.default_resource_class': string | null;
  readonly 'DEFAULT.default_conductor_group': string;
  readonly 'DEFAULT.default_portgroup_mode': string;
  readonly 'api.max_limit': number;
  readonly 'api.public_endpoint': string | null;
  readonly 'api.restrict_lookup': boolean;
  readonly 'deploy.fast_track': boolean;
  readonly 'api.ramdisk_heartbeat_timeout': number;
  readonly 'api.enable_ramdisk_endpoints': boolean;
  readonly 'api.fragment_cache_size': number;
  readonly 'api.max_json_body_size': number;
  readonly 'api.max_json_body_size_provision': number;
  readonly 'api.max_json_body_size_inspection': number;
  readonly 'api.max_json_body_depth': number;
  readonly 'api.disallow_clean_steps': readonly string[];
  readonly 'api.disallow_deploy_steps': readonly string[];
  readonly 'api.disallow_service_steps': readonly string[];
  readonly 'agent.require_tls': boolean;
  readonly 'auto_discovery.enabled': boolean;
  readonly 'auto_discovery.driver': string | null;

  // The front door.
  readonly 'DEFAULT.auth_strategy': string;
  readonly 'DEFAULT.http_basic_auth_user_file': string;
  readonly 'api.request_timeout': number;
  readonly 'api.log_requests': string;
  readonly 'metrics.agent_backend': string;
  readonly 'metrics.agent_prepend_host': boolean;
  readonly 'metrics.agent_prepend_uuid': boolean;
  readonly 'metrics.agent_prepend_host_reverse': boolean;
  readonly 'metrics.agent_global_prefix': string | null;
  readonly 'metrics_statsd.agent_statsd_host': string;
  readonly 'metrics_statsd.agent_statsd_port': number;
  readonly 'cors.allowed_origin': readonly string[];
  readonly 'cors.allow_credentials': boolean;
  readonly 'cors.expose_headers': readonly string[];
  readonly 'cors.max_age': number;
  readonly 'cors.allow_methods': readonly string[];
  readonly 'cors.allow_headers': readonly string[];
  readonly 'oslo_middleware.enable_proxy_headers_parsing': boolean;

  readonly 'conductor.heartbeat_timeout': number;

  readonly 'conductor.node_history': boolean;
  readonly 'recorder.enabled': boolean;
  readonly 'recorder.max_record_size': number;
  readonly 'recorder.max_pushes_per_minute': number;
  readonly 'recorder.history_max_entries': number;

  readonly 'events.poll_interval': number;
  readonly 'events.keep_alive_interval': number;
  readonly 'events.max_listeners': number;
}
