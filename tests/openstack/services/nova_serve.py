"""Nova's API, conductor, scheduler and compute service in one process, with a message bus in memory.

nova_serve.py --config-file FILE; PORT in the environment: where the API listens on loopback. CELL0: the URL of the database for servers
without a host. The databases are empty; it makes their tables. With BESIDE, another such process has made them: this one serves a further
compute service, and servers that its own API creates are built by it.
"""
from nova import monkey_patch; monkey_patch.patch(backend='threading')  # noqa: E702 before everything else
import os
import socketserver
import sys
from wsgiref import simple_server

from oslo_log import log as logging
import os_vif
from paste import deploy

from nova import config
from nova import context
from nova import objects
from nova import service
from nova.compute import rpcapi as compute_rpcapi
from nova.conductor import rpcapi as conductor_rpcapi
import nova.conf
from nova.db.api import api as api_database
from nova.db.api import models as api_models
from nova.db.main import api as main_database
from nova.db.main import models as main_models
from nova.objects import host_mapping
from nova.scheduler import rpcapi as scheduler_rpcapi

CONF = nova.conf.CONF


config.parse_args(sys.argv)
logging.setup(CONF, 'nova')
objects.register_all()
os_vif.initialize()

admin = context.get_admin_context()


def make_databases():
    # Nova's migrations take a minute; its models describe the same tables.
    cell0 = os.environ['CELL0']
    # A key of MariaDB has at most 3072 bytes; Nova's migrations shorten these columns too.
    for index in main_models.Migration.__table__.indexes:
        if index.name == 'migrations_by_host_nodes_and_status_idx':
            index.dialect_options['mysql']['length'] = dict.fromkeys(('source_compute', 'source_node', 'dest_compute', 'dest_node'), 100)
    api_models.BASE.metadata.create_all(api_database.get_engine())
    main_models.BASE.metadata.create_all(main_database.get_engine())
    main_models.BASE.metadata.create_all(main_database.create_context_manager(cell0).writer.get_engine())
    for uuid, name, connection in ((objects.CellMapping.CELL0_UUID, 'cell0', cell0),
                                   ('c0000000-0000-4000-8000-000000000001', 'cell1', CONF.database.connection)):
        objects.CellMapping(admin, uuid=uuid, name=name, transport_url=CONF.transport_url, database_connection=connection,
                            disabled=False).create()


if 'BESIDE' not in os.environ:
    make_databases()
services = [service.Service.create(binary='nova-conductor', topic=conductor_rpcapi.RPC_TOPIC),
            service.Service.create(binary='nova-scheduler', topic=scheduler_rpcapi.RPC_TOPIC),
            service.Service.create(binary='nova-compute', topic=compute_rpcapi.RPC_TOPIC,
                                   topic_alt=compute_rpcapi.RPC_TOPIC_ALT)]
for one in services:
    one.start()
host_mapping.discover_hosts(admin, by_service=True)


class Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True
    request_queue_size = 64


application = deploy.loadapp('config:' + CONF.wsgi.api_paste_config, name='osapi_compute')
simple_server.make_server('127.0.0.1', int(os.environ['PORT']), application, Server).serve_forever()
