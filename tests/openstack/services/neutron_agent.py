"""networking-baremetal's agent, and the part of Neutron that takes its reports, in one process with a message bus in memory.

neutron_agent.py --config-file FILE …: the configuration of Neutron, and the section `ironic` of the agent.
"""
import sys

from neutron.common import config
from oslo_config import cfg

config.register_common_config_options()

from networking_baremetal import neutron_client  # noqa: E402 they read the options
from networking_baremetal.agent import agent_config, ironic_neutron_agent  # noqa: E402
from neutron import manager  # noqa: E402
from neutron.conf.plugins.ml2.drivers.ovn import ovn_conf  # noqa: E402
from neutron_lib.plugins import directory  # noqa: E402
from oslo_service import service  # noqa: E402

agent_config.register_agent_opts(cfg.CONF)
neutron_client.get_session(neutron_client.NEUTRON_GROUP)
ovn_conf.register_opts()
config.init(sys.argv[1:], default_config_files=[])
config.setup_logging()
manager.init()
directory.get_plugin().start_rpc_state_reports_listener()
launcher = service.Launcher(cfg.CONF, restart_method='mutate')
launcher.launch_service(ironic_neutron_agent.BaremetalNeutronAgent())
launcher.wait()
