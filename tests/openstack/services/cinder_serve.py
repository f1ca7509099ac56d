"""Cinder's API, scheduler and volume service in one process, with a message bus in memory: cinder_serve.py --config-file FILE"""
from cinder import monkey_patch; monkey_patch.patch()  # noqa: E702 before everything else
import sys

from oslo_config import cfg
from oslo_log import log as logging
from oslo_service import service as oslo_service

from cinder.cmd import volume as volume_command  # its options
from cinder.common import config
from cinder import coordination
from cinder.db import migration
from cinder import objects
from cinder import rpc
from cinder import service
from cinder import utils
from cinder import version

CONF = cfg.CONF
objects.register_all()
CONF(sys.argv[1:], project='cinder', version=version.version_string())
config.set_middleware_defaults()
logging.setup(CONF, 'cinder')
utils.monkey_patch()
migration.db_sync()
coordination.COORDINATOR.start()
rpc.init(CONF)
launcher = oslo_service.ServiceLauncher(CONF)
launcher.launch_service(service.Service.create(binary='cinder-scheduler'))
backend = CONF.enabled_backends[0]
CONF.register_opt(volume_command.host_opt, group=backend)
launcher.launch_service(service.Service.create(
    host='%s@%s' % (CONF.host, backend), service_name=backend, binary='cinder-volume', coordination=False))
launcher.launch_service(service.WSGIService('osapi_volume'))
launcher.wait()
