"""Swift's proxy, account, container and object servers in one process; objects are in memory.

swift_serve.py FOLDER: has swift.conf and proxy.conf, and gets the rings and the databases. PORT in the environment: that of the proxy, on
loopback.
"""
import eventlet
eventlet.monkey_patch()
import os  # noqa: E402
import sys  # noqa: E402

from eventlet import wsgi  # noqa: E402
from swift.common import storage_policy, utils  # noqa: E402
from swift.common.ring import RingBuilder  # noqa: E402
from swift.common.wsgi import SwiftHttpProtocol, loadapp  # noqa: E402

folder = sys.argv[1]
utils.set_swift_dir(folder)
utils.validate_hash_conf()
storage_policy.reload_storage_policies()
SERVER = """[DEFAULT]
swift_dir = %(folder)s
devices = %(folder)s/devices
mount_check = false
[pipeline:main]
pipeline = server
[app:server]
use = egg:swift#%(entry)s
conn_timeout = 60
node_timeout = 600
"""
os.makedirs(os.path.join(folder, 'devices/disk'), exist_ok=True)
listeners = []
for ring, entry in (('account', 'account'), ('container', 'container'), ('object', 'mem_object')):
    listener = eventlet.listen(('127.0.0.1', 0))
    builder = RingBuilder(1, 1, 0)
    builder.add_dev({'region': 1, 'zone': 1, 'ip': '127.0.0.1', 'port': listener.getsockname()[1], 'device': 'disk', 'weight': 1})
    builder.rebalance()
    builder.get_ring().save(os.path.join(folder, ring + '.ring.gz'))
    config = os.path.join(folder, ring + '.conf')
    with open(config, 'w') as file:
        file.write(SERVER % {'folder': folder, 'entry': entry})
    listeners.append((listener, config))
listeners.append((eventlet.listen(('127.0.0.1', int(os.environ['PORT']))), os.path.join(folder, 'proxy.conf')))
servers = [eventlet.spawn(wsgi.server, listener, loadapp(config), protocol=SwiftHttpProtocol) for listener, config in listeners]
servers[-1].wait()
